/* The device of plain.c with one thing wrong, which the compiler's -D says, or the option `kernel`: what the
 * kernels of aten::mm, aten::zero_ and aten::meshgrid return. */
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
  if (strcmp(how, "index") == 0) {
    const TenonDevice next = {v.device.backend, (int8_t)(v.device.index + 1)};
    return new_tensor(call, 0, v.sizes[0], v.sizes[0], v.dtype, next);
  }
  if (strcmp(how, "device") == 0) return new_tensor(call, 0, v.sizes[0], v.sizes[0], v.dtype, cpu);
  if (strcmp(how, "argument") == 0 || strcmp(how, "view") == 0) {
    TenonTensor* same = call->args[0].p;
    if (*how == 'a')
      host->tensor_retain(same);
    else if ((status = host->tensor_as_strided(same, v.sizes, v.strides, v.ndim, v.offset, &same)))
      return status;
    call->results[0].p = same;
    call->result_tags[0] = TENON_CELL_TENSOR;
    return NULL;
  }
  status = new_tensor(call, 0, v.sizes[0], v.sizes[0], v.dtype, v.device);
  if (!status && strcmp(how, "two") == 0)
    status = new_tensor(call, 1, v.sizes[0], v.sizes[0], v.dtype, v.device);
  return status;
}

/* Tensors as a list, which an operator makes. */
static TenonStatus* as_list(const TenonCall* call, TenonTensor* const* tensors, uint64_t count) {
  const TenonOperator* op = NULL;
  TenonList list = {0};
  TenonCell cell = {0};
  const uint8_t tag = TENON_CELL_TENSOR_LIST;
  TenonStatus* status = host->op_find("aten::broadcast_tensors", &op);
  if (status) return status;
  list.data = (void*)tensors;
  list.size = count;
  cell.p = &list;
  return host->op_call(op, &cell, &tag, 1, call->results, call->result_tags, 1);
}

/* The grids of two vectors, wrong in the way that `data` says. */
static TenonStatus* grids(void* self, void* data, const TenonCall* call) {
  const char* how = data;
  const TenonList* vectors = call->args[0].p;
  TenonTensorView x = {0}, y = {0};
  TenonTensor* made[3] = {NULL, NULL, NULL};
  TenonStatus* status = NULL;
  const TenonDevice cpu = {0, -1};
  const uint64_t count = strcmp(how, "three") == 0 ? 3 : strcmp(how, "one") == 0 ? 1 : 2;
  const int shape = strcmp(how, "shape") == 0, device = strcmp(how, "device") == 0;
  uint64_t i;
  (void)self;
  x.struct_size = y.struct_size = sizeof x;
  if (strcmp(how, "none") == 0) return NULL;
  if ((status = host->tensor_view(((TenonTensor* const*)vectors->data)[0], &x))) return status;
  if ((status = host->tensor_view(((TenonTensor* const*)vectors->data)[1], &y))) return status;
  for (i = 0; !status && i < count; ++i) {
    const int wide = strcmp(how, "dtype") == 0 || (i == 1 && strcmp(how, "second") == 0);
    int64_t sizes[2];
    sizes[0] = shape ? 1 : x.sizes[0];
    sizes[1] = y.sizes[0];
    status = host->tensor_empty(sizes, NULL, 2, wide ? TENON_DTYPE_FLOAT64 : x.dtype, device ? cpu : x.device,
                                &made[i]);
  }
  if (!status) status = as_list(call, made, count);
  for (i = 0; i < count; ++i)
    if (made[i]) host->tensor_release(made[i]);
  return status;
}

static char kernel[16];
#ifdef REGISTER
static TenonTag tag; /* of an operator that it declares */
#endif

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
  if (!status)
    status =
        host->register_kernel(registrar, "aten::meshgrid", "PrivateUse1", grids, kernel, __FILE__, __LINE__);
  return status;
#endif
}

#ifdef DEVICES
static int32_t other_count(void* self) {
  (void)self;
  return DEVICES;
}
#endif

#ifdef ZERO
/* stream_new, raw_alloc or host_alloc that succeeds and gives nothing. */
static TenonStatus* gives_zero(void* self, int32_t index, uint64_t* out) {
  (void)self, (void)index;
  *out = 0;
  return NULL;
}
static TenonStatus* zero_address(void* self, int32_t index, uint64_t nbytes, TenonAddress* out) {
  (void)nbytes;
  return gives_zero(self, index, out);
}
static TenonStatus* zero_host_address(void* self, uint64_t nbytes, void** out) {
  (void)self, (void)nbytes;
  *out = NULL;
  return NULL;
}
static TenonStatus* free_host_address(void* self, void* address, uint64_t nbytes) {
  (void)self, (void)address, (void)nbytes;
  return NULL;
}
#endif

#ifdef FULL
static TenonStatus* no_memory(void* self, int32_t index, uint64_t nbytes, TenonAddress* out) {
  (void)self, (void)index, (void)nbytes, (void)out;
  return host->status_new(TENON_ERROR_OUT_OF_MEMORY, "the lease has expired");
}
#endif

#ifdef GRANULARITY
static TenonStatus* with_granularity(void* self, int32_t index, TenonDeviceProperties* out) {
  TenonStatus* status = properties(self, index, out);
  out->map_granularity = GRANULARITY;
  return status;
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
#ifdef ZERO
  changed.stream_new = gives_zero;
  changed.event_new = gives_zero;
  changed.host_alloc = zero_host_address;
  changed.host_free = free_host_address;
  if (options->num_options > 0) changed.raw_alloc = zero_address;
#endif
#ifdef FULL
  changed.raw_alloc = no_memory;
#endif
#ifdef GRANULARITY
  changed.properties = with_granularity;
#endif
#ifdef ALONE
  changed.ALONE = (void*)(uintptr_t)&tenon_plugin_v1;
#endif
#ifdef SIZE
  out->struct_size = SIZE;
#endif
#ifdef TABLE_SIZE
  changed.struct_size = TABLE_SIZE;
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
