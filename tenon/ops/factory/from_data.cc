#include "tenon/ops/factory/from_data.h"

#include <fmt/core.h>

#include "tenon/ops/elements/elements.h"

namespace tenon {
namespace {

Tensor finish(Tensor made, DType wanted, const TensorOptions& options) {
  const DType dtype = options.dtype_opt.value_or(wanted);
  const Device device = options.device_opt.value_or(kCPU);
  if (made.dtype() != dtype || made.device() != device) {
    Tensor converted = make_empty(made.sizes(), dtype, device);
    ops::copy_elements(converted, made, "tensor");
    made = std::move(converted);
  }
  if (options.requires_grad_flag) made.requires_grad_(true);
  return made;
}

}  // namespace

Tensor tensor(const TensorData& data, TensorOptions options) {
  Dims sizes;
  for (const TensorData* level = &data; !level->leaf_; level = &level->children_.front()) {
    sizes.push_back(static_cast<int64_t>(level->children_.size()));
    if (level->children_.empty()) break;
  }
  std::vector<Scalar> numbers;
  const auto collect = [&](auto&& self, const TensorData& at, size_t depth) -> void {
    if (at.leaf_) {
      TENON_CHECK(depth == sizes.size(), Value,
                  fmt::format("tensor: expected a sequence at dim {}, got a number", depth));
      numbers.push_back(at.scalar_);
      return;
    }
    TENON_CHECK(depth < sizes.size(), Value,
                fmt::format("tensor: expected a number at depth {}, got a sequence", depth));
    TENON_CHECK(static_cast<int64_t>(at.children_.size()) == sizes[depth], Value,
                fmt::format("tensor: expected sequence of length {} at dim {} (got {})", sizes[depth], depth,
                            at.children_.size()));
    for (const TensorData& child : at.children_) self(self, child, depth + 1);
  };
  collect(collect, data, 0);

  DType wanted = numbers.empty() ? default_dtype() : DType::Bool;
  for (const Scalar& s : numbers)
    wanted = promote_types(wanted, s.is_floating_point() ? default_dtype() : s.dtype());
  for (const Scalar& s : numbers) check_fits(s, options.dtype_opt.value_or(wanted), "tensor");
  // In the widest type of the category, so that a dtype option loses nothing on the way.
  if (is_floating_point(wanted)) {
    Tensor made = make_empty(sizes, DType::Float64);
    for (size_t i = 0; i < numbers.size(); ++i)
      static_cast<double*>(made.data_ptr())[i] = numbers[i].to_double();
    return finish(std::move(made), wanted, options);
  }
  Tensor made = make_empty(sizes, DType::Int64);
  for (size_t i = 0; i < numbers.size(); ++i) static_cast<int64_t*>(made.data_ptr())[i] = numbers[i].to_int();
  return finish(std::move(made), wanted, options);
}

namespace detail {

Tensor tensor_from_memory(const void* data, int64_t count, DType stored, DType wanted,
                          const TensorOptions& options) {
  const Tensor borrowed = from_blob(const_cast<void*>(data), {count}, TensorOptions(stored));
  Tensor made = make_empty({count}, stored);
  ops::copy_elements(made, borrowed, "tensor");
  return finish(std::move(made), wanted, options);
}

}  // namespace detail

Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, BlobDeleter deleter, void* context,
                 TensorOptions options) {
  // Ownership of `context` is ours from the start, also when something is wrong.
  struct ReleaseBuffer {
    BlobDeleter deleter;
    void* context;
    ~ReleaseBuffer() {
      if (deleter) deleter(context);
    }
  } guard{deleter, context};
  TENON_CHECK(sizes.size() == strides.size(), Shape,
              fmt::format("from_blob: mismatch in length of strides and shape: {} and {}", to_string(strides),
                          to_string(sizes)));
  const int64_t numel = checked_numel(sizes, "from_blob");
  TENON_CHECK(data || numel == 0, Value, "from_blob: `data` is null, but the sizes have elements");
  const DType dtype = options.dtype_opt.value_or(default_dtype());
  const Device device = options.device_opt.value_or(kCPU);
  const Extent e = extent(sizes, strides, "from_blob");
  const auto item = static_cast<int64_t>(item_size(dtype));
  const auto address = reinterpret_cast<Address>(data) + static_cast<uint64_t>(e.low * item);
  guard.deleter = nullptr;
  Storage storage = Storage::from_foreign(
      address, static_cast<size_t>((e.high - e.low) * item), device,
      deleter ? deleter : [](void*) noexcept {}, context);
  Tensor made(TensorImpl::make(std::move(storage), dtype, sizes, strides, -e.low));
  if (options.requires_grad_flag) made.requires_grad_(true);
  return made;
}

Tensor from_blob(void* data, IntArrayRef sizes, TensorOptions options) {
  checked_numel(sizes, "from_blob");
  return from_blob(data, sizes, contiguous_strides(sizes), options);
}

Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, TensorOptions options) {
  return from_blob(data, sizes, strides, nullptr, nullptr, options);
}

Tensor wrapped_scalar_tensor(const Scalar& value, Device device) {
  Tensor number = make_empty({}, value.is_floating_point() ? DType::Float64 : value.dtype(), device);
  ops::fill_elements(number, value, "scalar");
  number.impl()->set_wrapped_number(true);
  return number;
}

}  // namespace tenon
