/* The device of plain.c with one thing wrong, which the compiler's -D says, or the option `kernel`: what the
 * kernel of aten::mm, or aten::zero_, returns. */
#define tenon_plugin_v1 plain_plugin_v1
#include "../plain/plain.c"
#undef tenon_plugin_v1

static TenonStatus* new_tensor(const TenonCall* call, uint32_t result, int64_t rows, int64_t columns,
                               TenonDType dtype, TenonDevice device) {
  const int64_t sizes[2] = {rows, columns};
  TenonTensor* made = NULL;
  TenonStatus* status = host->tensor_empty(sizes, NULL, 2, dtype, device, &made);
  if (status) return status;
  call->results[result].p = made;
  call->result_tags[result] = TENON_CELL_TENSOR;
  return NULL;
}

/* A kernel that is wrong in the way that `data` says. */
static TenonStatus* wrong(void* self, void* data, const TenonCall* call) {
  const char* how = data;
  TenonTensorView v = {0};
  TenonStatus* status = NULL;
  const TenonDevice cpu = {0, -1};
  (void)self;
  v.struct_size = sizeof v;
  if ((status = host->tensor_view(call->args[0].p, &v))) return status;
  if (strcmp(how, "none") == 0) return NULL;
  if (strcmp(how, "status") == 0) return host->status_new(TENON_ERROR_RUNTIME, "the kernel's own sentence");
  if (strcmp(how, "int") == 0) {
    call->results[0].i = 1;
    call->result_tags[0] = TENON_CELL_INT;
    return NULL;
  }
  if (strcmp(how, "dtype") == 0)
    return new_tensor(call, 0, v.sizes[0], v.sizes[0], TENON_DTYPE_FLOAT64, v.device);
  if (strcmp(how, "shape") == 0) return new_tensor(call, 0, 1, v.sizes[0], v.dtype, v.device);
  if (strcmp(how, "device") == 0) return new_tensor(call, 0, v.sizes[0], v.sizes[0], v.dtype, cpu);
  status = new_tensor(call, 0, v.sizes[0], v.sizes[0], v.dtype, v.device);
  if (!status && strcmp(how, "two") == 0)
    status = new_tensor(call, 1, v.sizes[0], v.sizes[0], v.dtype, v.device);
  return status;
}

static char kernel[16];

static TenonStatus* register_kernels(void* self, TenonRegistrar* registrar) {
  (void)self;
#ifdef REGISTER
  return REGISTER;
#else
  TenonStatus* status = NULL;
  if (!*kernel) return NULL;
  status = host->register_kernel(registrar, "aten::mm", "PrivateUse1", wrong, kernel, __FILE__, __LINE__);
  if (!status)
    status =
        host->register_kernel(registrar, "aten::zero_", "PrivateUse1", wrong, kernel, __FILE__, __LINE__);
  return status;
#endif
}

#ifdef DEVICES
static int32_t other_count(void* self) {
  (void)self;
  return DEVICES;
}
#endif

#ifndef EXPORT
#define EXPORT tenon_plugin_v1
#endif
TenonStatus* EXPORT(const TenonHost* given, const TenonOptions* options, TenonPlugin* out) {
  static TenonDeviceTable changed;
  const TenonOptions none = {sizeof(TenonOptions), 0, NULL};
  TenonStatus* status = plain_plugin_v1(given, &none, out);
  if (status) return status;
  if (options->num_options > 0) strncpy(kernel, options->options[0].value, sizeof kernel - 1);
  changed = *out->table;
  out->table = &changed;
  out->register_kernels = register_kernels;
#ifdef NEEDS_MINOR
  out->needs_minor = NEEDS_MINOR;
#endif
#ifdef SHORT
  changed.struct_size = offsetof(TenonDeviceTable, SHORT);
#endif
#ifdef WITHOUT
  changed.WITHOUT = NULL;
#endif
#ifdef AND_WITHOUT
  changed.AND_WITHOUT = NULL;
#endif
#ifdef NAME
  out->name = NAME;
#endif
#ifdef KEY
  out->key = KEY;
#endif
#ifdef NO_TABLE
  out->table = NULL;
#endif
#ifdef DEVICES
  changed.device_count = other_count;
#endif
#ifdef FAILS
  return host->status_new(TENON_ERROR_RUNTIME, "it will not open");
#endif
#ifdef NEEDED
  {
    extern int NEEDED(void);
    (void)NEEDED();
  }
#endif
  return NULL;
}
