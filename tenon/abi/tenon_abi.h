/* The contract between Tenon and a device that is built outside it: plain C11, nothing to link against. A
 * plug-in exports one function, `tenon_plugin_v1`; whatever else either side calls is in a table of
 * functions. docs/backends.md says in words what each function promises; plugin.h is C++17 above it.
 *
 * Rules that hold for every function here.
 * - It returns NULL where it succeeded, or a status, which belongs to the caller. Exceptions do not cross.
 * - A struct that may grow begins with its size, as its writer knows it. A reader looks only at what the size
 * covers.
 * - Numbers, once released, keep their meaning; new ones are appended.
 * - Texts are UTF-8 that ends with 0. What is passed lives until the call returns, unless it says otherwise.
 * - Sizes and strides are in elements, the innermost dimension last; addresses are the device's own.
 */
#ifndef TENON_ABI_H_
#define TENON_ABI_H_

#include "tenon/abi/tenon_program.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the interface. The major number is in the name of the export; the minor one grows with each
 * function or field that is appended. A plug-in says which minor version it needs. */
#define TENON_ABI_MAJOR 1
#define TENON_ABI_MINOR 3

/* ---- Status ---- */

/* Why a call failed: made by TenonHost.status_new, freed by whoever receives it. */
typedef struct TenonStatus TenonStatus;

/* Not a failure: the device does not serve this call (a dtype, say) and has written nothing. Tenon runs it on
 * host copies. Only where a function says so. */
#define TENON_DECLINED ((TenonStatus*)1)

typedef enum TenonErrorKind {
  TENON_ERROR_VALUE = 0,           /* An argument has a value that is not allowed. */
  TENON_ERROR_TYPE = 1,            /* A wrong type or dtype. */
  TENON_ERROR_INDEX = 2,           /* A position out of range. */
  TENON_ERROR_SHAPE = 3,           /* Sizes or strides that do not fit. */
  TENON_ERROR_NOT_IMPLEMENTED = 4, /* Nothing runs this here. */
  TENON_ERROR_OUT_OF_MEMORY = 5,   /* Of raw_alloc and its kin: Tenon frees what it keeps and asks again. */
  TENON_ERROR_DEVICE = 6,          /* The device is missing, or has failed. */
  TENON_ERROR_RUNTIME = 7,         /* The state of things forbids it. */
  TENON_ERROR_INTERNAL = 8         /* A mistake in the plug-in itself. */
} TenonErrorKind;

/* ---- Values: what a kernel is called with ---- */

/* What a cell holds. Values of up to 64 bits are in the cell, smaller ones in its low bytes with zeros above;
 * a cell points to larger ones, which belong to it. */
typedef enum TenonCellTag {
  TENON_CELL_NONE = 0,
  TENON_CELL_INT = 1,           /* int64_t */
  TENON_CELL_FLOAT = 2,         /* double */
  TENON_CELL_BOOL = 3,          /* 0 or 1 */
  TENON_CELL_DTYPE = 4,         /* TenonDType */
  TENON_CELL_DEVICE = 5,        /* TenonDevice */
  TENON_CELL_LAYOUT = 6,        /* 0 strided, 1 sparse, 2 sparse CSR, 3 blocked */
  TENON_CELL_MEMORY_FORMAT = 7, /* 0 contiguous, 1 preserve, 2 channels last, 3 channels last in 3d */
  TENON_CELL_TENSOR = 8,        /* TenonTensor*, one reference; NULL for an undefined one */
  TENON_CELL_GENERATOR = 9,     /* TenonGenerator*, one reference; NULL for the default one */
  TENON_CELL_SCALAR = 10,       /* TenonScalar* */
  TENON_CELL_STR = 11,          /* This and the following: TenonList*, here of char, without a 0 at its end */
  TENON_CELL_INT_LIST = 12,     /* of int64_t */
  TENON_CELL_FLOAT_LIST = 13,   /* of double */
  TENON_CELL_BOOL_LIST = 14,    /* of uint8_t, 0 or 1 */
  TENON_CELL_SCALAR_LIST = 15,  /* of TenonScalar */
  TENON_CELL_TENSOR_LIST = 16,  /* of TenonTensor* */
  TENON_CELL_STORAGE = 17       /* TenonStorage*, one reference */
} TenonCellTag;

typedef struct TenonTensor TenonTensor;
typedef struct TenonStorage TenonStorage;
typedef struct TenonGenerator TenonGenerator;

typedef union TenonCell {
  int64_t i;
  double d;
  uint8_t b;
  TenonDevice device;
  void* p;
} TenonCell;

typedef struct TenonScalar {
  uint8_t kind; /* 0 bool, 1 integer, 2 floating, 3 complex */
  union {
    int64_t i; /* of a bool or an integer */
    double d;  /* the real part */
  } value;
  double imaginary;
} TenonScalar;

typedef struct TenonList {
  void* data;
  uint64_t size;
} TenonList;

/* A tensor, as it is when it is looked at. The lists live as long as the tensor keeps its shape. */
typedef struct TenonTensorView {
  uint32_t struct_size;
  TenonDType dtype;
  uint8_t layout;
  TenonDevice device;
  TenonAddress address; /* Of the element [0, ..., 0]. */
  const int64_t* sizes;
  const int64_t* strides; /* May be 0 or negative. */
  uint64_t ndim;
  int64_t numel;
  int64_t offset; /* Of that element in the storage. */
  TenonAddress storage_address;
  uint64_t storage_bytes;
  uint32_t flags; /* TENON_TENSOR_* */
} TenonTensorView;

#define TENON_TENSOR_CONTIGUOUS 1u
#define TENON_TENSOR_WRAPPED_NUMBER 2u /* A number that promotes as one. */
#define TENON_TENSOR_PINNED 4u

typedef struct TenonOperator TenonOperator;

/* A position in the stream of a seed, in blocks of 128 bits. The stubs of random operators get it as a list
 * of three: seed, offset, and 0 or, while their stream is captured, the address of two 64-bit numbers on its
 * device. Each replay sets those anew: the work reads the seed from the first when it runs, and adds `offset`
 * to the second. */
typedef struct TenonPhilox {
  uint64_t seed;
  uint64_t offset;
} TenonPhilox;

/* One call of a kernel. The arguments are the caller's: a kernel reads them and retains what it keeps.
 * Results are new references, stored in `results` with their tags: a tensor that was written is retained and
 * returned. */
typedef struct TenonCall {
  uint32_t struct_size;
  uint32_t num_args;
  uint32_t num_results;
  const TenonOperator* op; /* NULL in the call of a stub. */
  uint64_t keys;
  const TenonCell* args;
  const uint8_t* arg_tags; /* TenonCellTag */
  TenonCell* results;
  uint8_t* result_tags;
  TenonStream stream; /* The current stream of the device that the call is for. */
} TenonCall;

/* A kernel, or the function of a stub. `self` is the plug-in's, `data` what it was registered with. May
 * return TENON_DECLINED. */
typedef TenonStatus* (*TenonKernel)(void* self, void* data, const TenonCall* call);

/* ---- What the host offers ---- */

/* Collects what a plug-in registers while it is loaded. */
typedef struct TenonRegistrar TenonRegistrar;

/* Since 1.3. What a declaration says of an operator besides its schema, under PyTorch's names. */
typedef enum TenonTag {
  TENON_TAG_CORE = 0,
  TENON_TAG_CUDAGRAPH_UNSAFE = 1,
  TENON_TAG_DATA_DEPENDENT_OUTPUT = 2,
  TENON_TAG_DYNAMIC_OUTPUT_SHAPE = 3,
  TENON_TAG_FLEXIBLE_LAYOUT = 4,
  TENON_TAG_GENERATED = 5,
  TENON_TAG_INPLACE = 6,
  TENON_TAG_INPLACE_VIEW = 7,
  TENON_TAG_MAYBE_ALIASING_OR_MUTATING = 8,
  TENON_TAG_NEEDS_CONTIGUOUS_STRIDES = 9,
  TENON_TAG_NEEDS_EXACT_STRIDES = 10,
  TENON_TAG_NEEDS_FIXED_STRIDE_ORDER = 11,
  TENON_TAG_NONDETERMINISTIC_BITWISE = 12,
  TENON_TAG_NONDETERMINISTIC_SEEDED = 13,
  TENON_TAG_OUT = 14,
  TENON_TAG_OUT_VARIANT = 15,
  TENON_TAG_POINTWISE = 16,
  TENON_TAG_PT2_COMPLIANT_TAG = 17,
  TENON_TAG_REDUCTION = 18,
  TENON_TAG_VIEW_COPY = 19
} TenonTag;

typedef struct TenonHost {
  uint32_t struct_size;
  uint32_t minor; /* TENON_ABI_MINOR of the host. */

  TenonStatus* (*status_new)(TenonErrorKind kind, const char* message); /* Copies the message. */
  TenonErrorKind (*status_kind)(const TenonStatus*);
  const char* (*status_message)(const TenonStatus*); /* Lives as long as the status. */
  void (*status_free)(TenonStatus*);                 /* NULL and TENON_DECLINED are allowed. */

  TenonTensor* (*tensor_retain)(TenonTensor*); /* Returns its argument. */
  void (*tensor_release)(TenonTensor*);
  TenonStatus* (*tensor_view)(const TenonTensor*,
                              TenonTensorView* out); /* `struct_size` is set by the caller. */
  /* New tensors. `strides` NULL: contiguous. */
  TenonStatus* (*tensor_empty)(const int64_t* sizes, const int64_t* strides, uint64_t ndim, TenonDType dtype,
                               TenonDevice device, TenonTensor** out);
  /* Another tensor over the same storage, outside autograd. */
  TenonStatus* (*tensor_as_strided)(TenonTensor*, const int64_t* sizes, const int64_t* strides, uint64_t ndim,
                                    int64_t offset, TenonTensor** out);
  /* Gives a tensor other sizes, contiguous, as out= does: its storage grows where it must. */
  TenonStatus* (*tensor_resize)(TenonTensor*, const int64_t* sizes, uint64_t ndim);

  /* Looks an operator up: "aten::add.Tensor". Operators live as long as the process. */
  TenonStatus* (*op_find)(const char* name, const TenonOperator** out);
  const char* (*op_name)(const TenonOperator*);
  /* Calls an operator through the dispatcher. */
  TenonStatus* (*op_call)(const TenonOperator*, const TenonCell* args, const uint8_t* arg_tags,
                          uint32_t num_args, TenonCell* results, uint8_t* result_tags, uint32_t num_results);
  /* Frees what a result cell refers to. */
  void (*cell_free)(TenonCell*, uint8_t tag);
  /* Runs the call of a kernel on host copies, as if the plug-in had none. */
  TenonStatus* (*cpu_fallback)(const TenonCall*);

  /* Declares an operator: "myops::twice(Tensor self) -> Tensor". */
  TenonStatus* (*register_schema)(TenonRegistrar*, const char* schema);
  /* Registers a kernel for an operator ("aten::add.Tensor"). PrivateUse1 and AutogradPrivateUse1 as `key`
   * mean this device, whatever it is called; NULL makes it a catch-all kernel. `file` lives as long as the
   * plug-in. */
  TenonStatus* (*register_kernel)(TenonRegistrar*, const char* op, const char* key, TenonKernel, void* data,
                                  const char* file, int line);
  /* Fills in a stub for this device: `tenon stubs` lists names and signatures. `signature` says what the
   * function takes and returns, "(Tensor dst, Scalar value) -> ()"; its types must be those of the stub. */
  TenonStatus* (*register_stub)(TenonRegistrar*, const char* stub, const char* signature, TenonKernel,
                                void* data);
  /* Whether an operator without a kernel runs on host copies; `op` NULL: all of which nothing is said.
   * Without a call all do. An operator that may not is an error, which names who has it. */
  TenonStatus* (*register_fallback)(TenonRegistrar*, const char* op, int32_t falls_back);

  /* Takes `blocks` blocks of 128 bits from a generator's stream (NULL: the default one). */
  TenonStatus* (*generator_take)(TenonGenerator*, uint64_t blocks, TenonPhilox* out);

  /* Since 1.2. As register_kernel, for a kernel of known types: `signature` says what it takes and returns,
   * "(Tensor self, int dim) -> (Tensor, Tensor)". Loading is refused if they are not those of the schema. */
  TenonStatus* (*register_typed_kernel)(TenonRegistrar*, const char* op, const char* key,
                                        const char* signature, TenonKernel, void* data, const char* file,
                                        int line);
  /* Since 1.2. The dtype of new tensors where nothing says which. */
  TenonDType (*default_dtype)(void);
  /* Since 1.3. As register_schema, with tags. Loading is refused for a number that is no TenonTag, and for a
   * tag that contradicts the schema. */
  TenonStatus* (*register_operator)(TenonRegistrar*, const char* schema, const TenonTag* tags,
                                    uint32_t num_tags);
} TenonHost;

/* ---- What a device offers ---- */

typedef struct TenonDeviceProperties {
  uint32_t struct_size;
  uint32_t reserved;
  const char* description; /* Lives as long as the plug-in. */
  uint64_t total_memory;   /* In bytes; 0 where it is not known. */
  uint64_t granularity; /* What raw_alloc's addresses and sizes are multiples of: a power of two from 64 to 2
                           MiB; 0: 512. */
  const TenonDType*
      dtypes; /* Those that its kernels compute in; NULL: all. Others are only stored and moved. */
  uint64_t num_dtypes;
  uint64_t ops_printed; /* Bit i: TenonOp i is one that `pointwise` can run. */
  int32_t dlpack_type;  /* DLDeviceType; 0: not exchanged. */
  uint32_t flags;
  uint64_t map_granularity; /* Since 1.1. What `map` works in multiples of: a power of two, and at least the
                               granularity; 0: the device cannot map memory. */
} TenonDeviceProperties;

/* The host side, pinned or not, lives and stays as it is until the stream has passed the copy: `copy` need
 * not wait. Without it, host memory may be gone, or is read, as soon as `copy` has returned. */
#define TENON_COPY_HOST_STAYS 1u

/* All functions get the `self` of their plug-in and say which device they mean; none depends on a current
 * device. They may be called by any thread, also by several at once. */
typedef struct TenonDeviceTable {
  uint32_t struct_size;
  uint32_t reserved;

  /* Required. */
  int32_t (*device_count)(void* self); /* At least 1, and constant. */
  TenonStatus* (*properties)(void* self, int32_t index, TenonDeviceProperties* out);
  /* Memory, which belongs to no stream. nbytes > 0. */
  TenonStatus* (*raw_alloc)(void* self, int32_t index, uint64_t nbytes, TenonAddress* out);
  /* Only when all work on the memory has run. */
  TenonStatus* (*raw_free)(void* self, int32_t index, TenonAddress address, uint64_t nbytes);
  /* Copies bytes as work of the stream, from or to memory of the stream's device; the other side may be the
   * host or the same device. */
  TenonStatus* (*copy)(void* self, TenonStream stream, TenonAddress dst, TenonPlace dst_place,
                       TenonAddress src, TenonPlace src_place, uint64_t nbytes, uint32_t flags);
  TenonStatus* (*stream_new)(void* self, int32_t index,
                             uint64_t* out); /* An id other than 0, the default stream's. */
  TenonStatus* (*stream_free)(void* self, TenonStream stream);
  TenonStatus* (*stream_sync)(void* self, TenonStream stream); /* Returns when all its work has run. */
  TenonStatus* (*event_new)(void* self, int32_t index, uint64_t* out); /* An id other than 0. */
  TenonStatus* (*event_free)(void* self, int32_t index, uint64_t event);
  /* The event marks the end of the stream's work so far. */
  TenonStatus* (*event_record)(void* self, int32_t index, uint64_t event, TenonStream stream);
  TenonStatus* (*event_sync)(void* self, int32_t index, uint64_t event);

  /* Optional: NULL, or beyond struct_size. What Tenon does instead is said of each. */
  /* Whether the marked work has run. Instead: event_sync, then yes. */
  TenonStatus* (*event_query)(void* self, int32_t index, uint64_t event, int32_t* out);
  /* Work of `stream` from now on runs after the event of any device of this plug-in. Instead: the host waits.
   */
  TenonStatus* (*stream_wait_event)(void* self, TenonStream stream, int32_t index, uint64_t event);
  /* Milliseconds between two recorded events. Instead: refused. */
  TenonStatus* (*event_elapsed)(void* self, int32_t index, uint64_t begin, uint64_t end, double* out);
  /* Runs a pointwise expression. May decline. Instead: the operator's fallback. */
  TenonStatus* (*pointwise)(void* self, const TenonLaunch* launch);
  /* Host memory that the device reaches without a copy, at a multiple of 512. Instead: there is no pinned
   * memory. */
  TenonStatus* (*host_alloc)(void* self, uint64_t nbytes, void** out);
  TenonStatus* (*host_free)(void* self, void* address, uint64_t nbytes);
  /* Free and total bytes, as the device counts them. Instead: what Tenon has counted. */
  TenonStatus* (*memory_info)(void* self, int32_t index, uint64_t* free_bytes, uint64_t* total_bytes);
  /* The process ends: end threads; nothing is called afterwards. Instead: nothing. */
  void (*shutdown)(void* self);

  /* Since 1.1. An event whose time is noted when the marked work has run. Instead: event_new. */
  TenonStatus* (*event_new_timed)(void* self, int32_t index, uint64_t* out);
  /* A range of addresses without memory; 0 in `out` where there is none. These four go with map_granularity,
   * in multiples of which they work. Instead: segments are taken whole. */
  TenonStatus* (*reserve)(void* self, int32_t index, uint64_t nbytes, TenonAddress* out);
  /* Puts memory behind part of a reserved range, or fails with TENON_ERROR_OUT_OF_MEMORY and has put none. */
  TenonStatus* (*map)(void* self, int32_t index, TenonAddress address, uint64_t nbytes);
  /* Takes it away again, a part or several at once, when all work on it has run. */
  TenonStatus* (*unmap)(void* self, int32_t index, TenonAddress address, uint64_t nbytes);
  /* Gives up a whole range without memory. */
  TenonStatus* (*unreserve)(void* self, int32_t index, TenonAddress address, uint64_t nbytes);

  /* Capture; these four go together. Instead: refused. From capture_begin to capture_end, what is queued on
   * the stream, which is not the default one, is recorded and does not run; Tenon asks for no wait and
   * records no event there, and frees nothing that recorded work uses. */
  TenonStatus* (*capture_begin)(void* self, TenonStream stream);
  /* The number of what was recorded, not 0. `out` NULL: it is thrown away. */
  TenonStatus* (*capture_end)(void* self, TenonStream stream, uint64_t* out);
  /* Queues what was recorded as work of a stream of the same device. May be called again before it has run.
   */
  TenonStatus* (*capture_launch)(void* self, TenonStream stream, uint64_t capture);
  /* What was launched still runs. */
  TenonStatus* (*capture_free)(void* self, int32_t index, uint64_t capture);

  /* Since 1.2. Memory as other libraries have it, for a device whose addresses are not theirs; these three go
   * together. Instead: an address is the same everywhere. */
  /* What others call the memory that an address is in (a cl_mem, say), and how many bytes in it the address
   * is. The handle is valid as long as the memory. */
  TenonStatus* (*memory_export)(void* self, int32_t index, TenonAddress address, void** handle,
                                uint64_t* offset);
  /* An address for `nbytes` bytes at `offset` of memory that another library has; it lives until
   * memory_forget. TENON_ERROR_VALUE for memory that the device cannot use, or that has not so many bytes. */
  TenonStatus* (*memory_import)(void* self, int32_t index, void* handle, uint64_t offset, uint64_t nbytes,
                                TenonAddress* out);
  /* Forgets an address that memory_import gave, when all work on it has run. */
  TenonStatus* (*memory_forget)(void* self, int32_t index, TenonAddress address);
} TenonDeviceTable;

/* One "name=value" of load_device(options=...). */
typedef struct TenonOption {
  const char* name;
  const char* value;
} TenonOption;

typedef struct TenonOptions {
  uint32_t struct_size;
  uint32_t num_options;
  const TenonOption* options;
} TenonOptions;

/* What a plug-in says of itself. Each call of tenon_plugin_v1 makes an instance with state of its own: one
 * file may be loaded under several names. */
typedef struct TenonPlugin {
  uint32_t struct_size;
  uint32_t needs_minor; /* The host's `minor` must be at least this. */
  uint32_t built_minor; /* TENON_ABI_MINOR of the headers that it was built with. */
  uint32_t reserved;
  void* self;
  const char* name; /* Of the device, unless load_device gave another: lower-case letters, digits and _. */
  const char* key;  /* Of its dispatch keys, "OpenReg": letters and digits, an upper-case letter first. */
  const TenonDeviceTable* table;
  /* Registers kernels; NULL: none. */
  TenonStatus* (*register_kernels)(void* self, TenonRegistrar*);
  /* Frees the instance; no function of it is called afterwards. NULL: nothing to free. */
  void (*close)(void* self);
} TenonPlugin;

/* The export. `host` lives as long as the process. Unknown options are errors. */
typedef TenonStatus* (*TenonPluginV1)(const TenonHost* host, const TenonOptions* options, TenonPlugin* out);
TenonStatus* tenon_plugin_v1(const TenonHost* host, const TenonOptions* options, TenonPlugin* out);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TENON_ABI_H_ */
