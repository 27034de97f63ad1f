#include "tenon/plugin/host.h"

#include <fmt/core.h>

#include <bit>
#include <cstring>
#include <map>
#include <mutex>

#include "tenon/core/capture.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/iter/result_shape.h"
#include "tenon/ops/fallback/cpu_fallback.h"
#include "tenon/plugin/call.h"
#include "tenon/plugin/registrar.h"

namespace tenon::plugin {
namespace {

TensorImpl* impl_of(const TenonTensor* tensor) {
  return reinterpret_cast<TensorImpl*>(const_cast<TenonTensor*>(tensor));
}
/// A reference of ours to a tensor that the plug-in shows.
Tensor tensor_of(const TenonTensor* tensor) {
  TENON_CHECK(tensor, Type, "an undefined tensor was passed");
  return Tensor(IntrusivePtr<TensorImpl>::share(impl_of(tensor)));
}
/// Gives a reference away.
TenonTensor* given(const Tensor& tensor) {
  return reinterpret_cast<TenonTensor*>(IntrusivePtr<TensorImpl>::share(tensor.impl()).release());
}
IntArrayRef list_of(const int64_t* values, uint64_t n) { return {values, n}; }

TenonStatus* status_new(TenonErrorKind kind, const char* message) {
  return new TenonStatus{static_cast<ErrorKind>(kind), message ? message : ""};
}
TenonErrorKind status_kind(const TenonStatus* status) { return static_cast<TenonErrorKind>(status->kind); }
const char* status_message(const TenonStatus* status) { return status->message.c_str(); }
void status_free(TenonStatus* status) {
  if (status != TENON_DECLINED) delete status;
}

TenonTensor* tensor_retain(TenonTensor* tensor) {
  (void)IntrusivePtr<TensorImpl>::share(impl_of(tensor)).release();
  return tensor;
}
void tensor_release(TenonTensor* tensor) { IntrusivePtr<TensorImpl>::adopt(impl_of(tensor)); }

TenonStatus* tensor_view(const TenonTensor* tensor, TenonTensorView* out) {
  return as_status([&] {
    TENON_CHECK(tensor, Type, "tensor_view: an undefined tensor was passed");
    const TensorImpl& t = *impl_of(tensor);
    TenonTensorView v{};
    v.struct_size = static_cast<uint32_t>(std::min<size_t>(out->struct_size, sizeof v));
    v.dtype = static_cast<TenonDType>(t.dtype());
    v.layout = static_cast<uint8_t>(t.layout());
    v.device = {t.device().backend, t.device().index};
    v.address = t.address();
    v.sizes = t.sizes().data();
    v.strides = t.strides().data();
    v.ndim = static_cast<uint64_t>(t.ndim());
    v.numel = t.numel();
    v.offset = t.offset();
    v.storage_address = t.storage().address();
    v.storage_bytes = t.storage().nbytes();
    v.flags = (t.is_contiguous() ? TENON_TENSOR_CONTIGUOUS : 0u) |
              (t.is_wrapped_number() ? TENON_TENSOR_WRAPPED_NUMBER : 0u);
    std::memcpy(out, &v, v.struct_size);
  });
}

TenonStatus* tensor_empty(const int64_t* sizes, const int64_t* strides, uint64_t ndim, TenonDType dtype,
                          TenonDevice device, TenonTensor** out) {
  return as_status([&] {
    const auto code = static_cast<DType>(dtype);
    TENON_CHECK(is_known(code), Type, fmt::format("tensor_empty: there is no dtype {}", dtype));
    TENON_CHECK(device.backend < live_backends() || device.backend == kMetaBackend, Device,
                fmt::format("tensor_empty: there is no backend {}", device.backend));
    const Device where(device.backend, device.index);
    const IntArrayRef shape = list_of(sizes, ndim);
    *out = given(strides ? make_empty_strided(shape, list_of(strides, ndim), code, where)
                         : make_empty(shape, code, where));
  });
}

TenonStatus* tensor_as_strided(TenonTensor* tensor, const int64_t* sizes, const int64_t* strides,
                               uint64_t ndim, int64_t offset, TenonTensor** out) {
  return as_status([&] {
    const Tensor self = tensor_of(tensor);
    const IntArrayRef shape = list_of(sizes, ndim), steps = list_of(strides, ndim);
    const Extent reach = extent(shape, steps, "tensor_as_strided");
    const auto bytes = static_cast<int64_t>(item_size(self.dtype()));
    TENON_CHECK(reach.low == reach.high ||
                    (offset + reach.low >= 0 &&
                     (offset + reach.high) * bytes <= static_cast<int64_t>(self.storage().nbytes())),
                Shape, "tensor_as_strided: the view reaches beyond its storage");
    *out = given(make_view(self, shape, steps, offset));
  });
}

TenonStatus* tensor_resize(TenonTensor* tensor, const int64_t* sizes, uint64_t ndim) {
  return as_status([&] {
    const IntArrayRef shape = list_of(sizes, ndim);
    resize_output(tensor_of(tensor), shape, contiguous_strides(shape));
  });
}

Cell cell_of(const TenonCell& cell) { return std::bit_cast<Cell>(cell); }
const OperatorEntry& entry_of(const TenonOperator* op) { return *reinterpret_cast<const OperatorEntry*>(op); }

/// Copies of the arguments that a plug-in shows.
Stack stack_of(const TenonCell* args, const uint8_t* tags, uint32_t n) {
  Stack stack;
  for (uint32_t i = 0; i < n; ++i) stack.push_cell_copy(cell_of(args[i]), static_cast<CellTag>(tags[i]));
  return stack;
}
/// Throws for an argument of the right type whose value is none of that type's: a cell can hold any number.
void check_value(const OperatorHandle& op, const schema::Argument& a, const Stack& stack, size_t i) {
  const auto check = [&](bool known, std::string_view what, int number, ErrorKind kind = ErrorKind::Type) {
    if (!known)
      throw_error(kind,
                  fmt::format("op_call: {}: argument `{}`: {} {}", op.full_name(), a.name, what, number));
  };
  const auto check_scalar = [&](const Scalar& s) {
    check(s.kind() <= Scalar::Kind::Complex, "there is no kind of numbers", static_cast<int>(s.kind()));
  };
  switch (stack.tag(i)) {
    case CellTag::Device: {
      const Device d = stack.at<Device>(i);
      check(d.backend < live_backends() || d.backend == kMetaBackend, "there is no backend", d.backend,
            ErrorKind::Device);
      check(d.index >= -1, "there is no device of index", d.index, ErrorKind::Device);
      break;
    }
    case CellTag::DType:
      check(is_known(stack.at<DType>(i)), "there is no dtype", static_cast<int>(stack.at<DType>(i)));
      break;
    case CellTag::Layout:
      check(stack.at<Layout>(i) <= Layout::Blocked, "there is no layout",
            static_cast<int>(stack.at<Layout>(i)));
      break;
    case CellTag::MemoryFormat:
      check(stack.at<MemoryFormat>(i) <= MemoryFormat::ChannelsLast3d, "there is no memory format",
            static_cast<int>(stack.at<MemoryFormat>(i)));
      break;
    case CellTag::Scalar:
      check_scalar(stack.at<Scalar>(i));
      break;
    case CellTag::ScalarList:
      for (const Scalar& s : stack.at<std::vector<Scalar>>(i)) check_scalar(s);
      break;
    default:
      break;
  }
}
/// Throws for the first argument that is not what the schema says. What may be absent is None.
void check_arguments(const OperatorHandle& op, const Stack& stack) {
  const schema::FunctionSchema& schema = op.schema();
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const schema::Argument& a = schema.arguments[i];
    const CellTag tag = stack.tag(i), wanted = cell_tag_of(a.type);
    const bool may_be_none = a.type.optional || wanted == CellTag::Tensor || wanted == CellTag::Generator;
    TENON_CHECK(tag == wanted || (tag == CellTag::None && may_be_none), Type,
                fmt::format("op_call: {}: argument `{}` is {}, expected {}", op.full_name(), a.name,
                            name(tag), schema::to_string(a.type)));
    check_value(op, a, stack, i);
  }
}
/// Gives the results of a call to a plug-in.
void give_results(Stack& stack, TenonCell* results, uint8_t* tags, uint32_t n) {
  stack.take_cells(n, reinterpret_cast<Cell*>(results), reinterpret_cast<CellTag*>(tags));
}

TenonStatus* op_find(const char* name, const TenonOperator** out) {
  return as_status([&] {
    const OperatorHandle op = Dispatcher::singleton().find_schema_or_throw_full(name);
    *out = reinterpret_cast<const TenonOperator*>(&op.entry());
  });
}

TenonStatus* op_call(const TenonOperator* op, const TenonCell* args, const uint8_t* arg_tags,
                     uint32_t num_args, TenonCell* results, uint8_t* result_tags, uint32_t num_results) {
  return as_status([&] {
    const OperatorHandle handle(const_cast<OperatorEntry&>(entry_of(op)));
    TENON_CHECK(num_args == handle.schema().arguments.size() && num_results == handle.schema().returns.size(),
                Type,
                fmt::format("op_call: {} takes {} arguments and returns {} results, not {} and {}",
                            handle.full_name(), handle.schema().arguments.size(),
                            handle.schema().returns.size(), num_args, num_results));
    Stack stack = stack_of(args, arg_tags, num_args);
    check_arguments(handle, stack);
    handle.call_boxed(stack);
    give_results(stack, results, result_tags, num_results);
  });
}

const char* op_name(const TenonOperator* op) {
  // Texts of operators live as long as the process, but name and overload are apart.
  static std::mutex mutex;
  static auto& names = *new std::map<const TenonOperator*, std::string>;
  const std::lock_guard lock(mutex);
  return names.try_emplace(op, entry_of(op).full_name()).first->second.c_str();
}

TenonStatus* run_on_cpu(const TenonCall* call) {
  return as_status([&] {
    TENON_CHECK(call->op, Type,
                "cpu_fallback: the call of a stub has no operator to run; decline it instead");
    const OperatorHandle op(const_cast<OperatorEntry&>(entry_of(call->op)));
    TENON_CHECK(DispatchKeySet(call->keys).backend() != kCpuBackend, NotImplemented,
                fmt::format("cpu_fallback: the call of {} is one on the host already", op.full_name()));
    Stack stack = stack_of(call->args, call->arg_tags, call->num_args);
    cpu_fallback(op, DispatchKeySet(call->keys), stack);
    give_results(stack, call->results, call->result_tags, call->num_results);
  });
}

void cell_free(TenonCell* cell, uint8_t tag) {
  Stack stack;
  stack.push_cell(cell_of(*cell), static_cast<CellTag>(tag));
}

TenonStatus* register_operator(TenonRegistrar* registrar, const char* schema, const TenonTag* tags,
                               uint32_t num_tags) {
  static_assert(static_cast<uint32_t>(Tag::view_copy) == TENON_TAG_VIEW_COPY);
  return as_status([&] {
    Tags all;
    for (uint32_t i = 0; i < num_tags; ++i) {
      TENON_CHECK(static_cast<uint32_t>(tags[i]) < kNumTags, Value,
                  fmt::format("register_operator: {} is no tag, of `{}`; this host knows 0 to {}",
                              static_cast<uint32_t>(tags[i]), schema, kNumTags - 1));
      all.add(static_cast<Tag>(tags[i]));
    }
    registrar->operators.emplace_back(schema, all);
  });
}
TenonStatus* register_schema(TenonRegistrar* registrar, const char* schema) {
  return register_operator(registrar, schema, nullptr, 0);
}
TenonStatus* register_kernel(TenonRegistrar* registrar, const char* op, const char* key, TenonKernel kernel,
                             void* data, const char* file, int line) {
  return as_status([&] {
    TENON_CHECK(op && kernel, Value, "register_kernel: the operator or the kernel is NULL");
    registrar->kernels.push_back({op, key ? key : "", {}, kernel, data, file ? file : "", line});
  });
}
TenonStatus* register_typed_kernel(TenonRegistrar* registrar, const char* op, const char* key,
                                   const char* signature, TenonKernel kernel, void* data, const char* file,
                                   int line) {
  return as_status([&] {
    TENON_CHECK(op && signature && kernel, Value,
                "register_typed_kernel: the operator, its signature or the kernel is NULL");
    registrar->kernels.push_back({op, key ? key : "", signature, kernel, data, file ? file : "", line});
  });
}
TenonDType abi_default_dtype() { return static_cast<TenonDType>(default_dtype()); }
TenonStatus* register_stub(TenonRegistrar* registrar, const char* stub, const char* signature,
                           TenonKernel kernel, void* data) {
  return as_status([&] {
    TENON_CHECK(stub && signature && kernel, Value,
                "register_stub: the stub, its signature or the function is NULL");
    registrar->stubs.push_back({stub, signature, kernel, data});
  });
}

TenonStatus* register_fallback(TenonRegistrar* registrar, const char* op, int32_t falls_back) {
  return as_status([&] {
    if (op)
      registrar->fallbacks.emplace_back(op, falls_back != 0);
    else
      registrar->falls_back = falls_back != 0;
  });
}

TenonStatus* generator_take(TenonGenerator* generator, uint64_t blocks, TenonPhilox* out) {
  return as_status([&] {
    GeneratorImpl& g = generator ? *reinterpret_cast<GeneratorImpl*>(generator) : *default_generator().impl();
    TENON_CHECK(
        detail::captures.load() == 0, Runtime,
        "generator_take: while work is captured, random numbers are for the stubs of random operators, "
        "which learn where a replay has its position");
    const PhiloxState taken = g.take(blocks);
    *out = {taken.seed, taken.offset};
  });
}

}  // namespace

const TenonHost& host_table() noexcept {
  static const TenonHost table = [] {
    TenonHost t{};
    t.struct_size = sizeof t;
    t.minor = TENON_ABI_MINOR;
    t.status_new = &status_new;
    t.status_kind = &status_kind;
    t.status_message = &status_message;
    t.status_free = &status_free;
    t.tensor_retain = &tensor_retain;
    t.tensor_release = &tensor_release;
    t.tensor_view = &tensor_view;
    t.tensor_empty = &tensor_empty;
    t.tensor_as_strided = &tensor_as_strided;
    t.tensor_resize = &tensor_resize;
    t.op_find = &op_find;
    t.op_name = &op_name;
    t.op_call = &op_call;
    t.cell_free = &cell_free;
    t.register_schema = &register_schema;
    t.register_kernel = &register_kernel;
    t.register_stub = &register_stub;
    t.cpu_fallback = &run_on_cpu;
    t.register_fallback = &register_fallback;
    t.generator_take = &generator_take;
    t.register_typed_kernel = &register_typed_kernel;
    t.default_dtype = &abi_default_dtype;
    t.register_operator = &register_operator;
    return t;
  }();
  return table;
}

}  // namespace tenon::plugin
