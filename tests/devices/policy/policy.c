/* The device in plain C, which says what of it may run on host copies: option fallback=blocked (all but sort)
 * or fallback=selective (sub.Tensor alone). */
#define tenon_plugin_v1 plain_device
#include "../plain/plain.c"
#undef tenon_plugin_v1

static TenonStatus* register_kernels(void* self, TenonRegistrar* registrar) {
  TenonStatus* failed;
  if (strcmp((const char*)self, "blocked") == 0) return host->register_fallback(registrar, "aten::sort", 0);
  failed = host->register_fallback(registrar, NULL, 0);
  return failed ? failed : host->register_fallback(registrar, "aten::sub.Tensor", 1);
}

TenonStatus* tenon_plugin_v1(const TenonHost* given, const TenonOptions* options, TenonPlugin* out) {
  const TenonOptions none = {sizeof none, 0, NULL};
  TenonStatus* failed = plain_device(given, &none, out);
  const int blocked = options->num_options == 1 && strcmp(options->options[0].value, "blocked") == 0;
  out->self = blocked ? (void*)"blocked" : (void*)"selective";
  out->name = (const char*)out->self;
  out->key = blocked ? "Choosy" : "Picky";
  out->register_kernels = &register_kernels;
  return failed;
}
