#include "tenon/iter/tensor_iterator.h"

#include <fmt/core.h>

#include "tenon/iter/overlap.h"
#include "tenon/iter/promotion.h"
#include "tenon/iter/result_shape.h"

namespace tenon {

TensorIteratorConfig& TensorIteratorConfig::add(const Tensor& t, bool output, bool own) {
  TENON_CHECK(count_ < kMaxOperands, Value,
              fmt::format("{}: an iterator takes at most {} operands", op_, kMaxOperands));
  TENON_CHECK(!output || outputs_ == count_, Value,
              fmt::format("{}: outputs must be added before inputs", op_));
  borrowed_[count_] = own ? nullptr : &t;
  if (own) {
    if (count_ >= kInlineOwned && !more_owned_) more_owned_ = std::make_unique<Tensor[]>(kMaxOperands);
    owned(count_) = t;
  }
  ++count_;
  outputs_ += output;
  return *this;
}

TensorIterator TensorIteratorConfig::build() { return TensorIterator(*this); }

std::string TensorIterator::operand_label(int i) const {
  const auto input = static_cast<size_t>(i - outputs_);
  if (i < outputs_ && static_cast<size_t>(i) < output_names_.size())
    return fmt::format("`{}`", output_names_[static_cast<size_t>(i)]);
  if (i >= outputs_ && input < input_names_.size()) return fmt::format("`{}`", input_names_[input]);
  return i < outputs_ ? fmt::format("output {}", i) : fmt::format("input {}", i - outputs_);
}

TensorIterator::TensorIterator(TensorIteratorConfig& config)
    : count_(config.count_),
      outputs_(config.outputs_),
      op_(config.op_),
      output_names_(config.output_names_),
      input_names_(config.input_names_) {
  if (count_ > kInlineOperands) {
    more_operands_ = std::make_unique<Operand[]>(static_cast<size_t>(count_));
    operands_ = more_operands_.get();
  }
  for (int i = 0; i < count_; ++i) {
    Operand& o = operands_[i];
    o.tensor = config.borrowed_[i];
    if (!o.tensor) {
      o.owned = std::move(config.owned(i));
      o.tensor = &o.owned;
    }
    if (o.tensor->defined()) {
      TENON_CHECK(o.tensor->layout() == Layout::Strided, NotImplemented,
                  fmt::format("{}: {} has layout {}, only strided tensors are iterated", op_,
                              operand_label(i), name(o.tensor->layout())));
      o.dtype = o.tensor->dtype();
    } else {
      TENON_CHECK(i < outputs_, Value, fmt::format("{}: {} is undefined", op_, operand_label(i)));
      o.allocate = true;
    }
  }
  compute_device(config);
  compute_shape(config);
  compute_dtypes(config);
  if (config.check_overlap_) check_overlaps();
  if (!try_contiguous()) {
    set_strides();
    sort_dimensions();
    allocate_outputs();
    bind_addresses();
    reverse_dimensions();
    merge_dimensions(nullptr);
  }
}

void TensorIterator::compute_device(const TensorIteratorConfig& config) {
  int first = -1;
  for (int i = 0; i < count_; ++i) {
    if (operands_[i].allocate) continue;
    const Tensor& t = *operands_[i].tensor;
    if (first >= 0 && t.device() == device_) continue;
    const bool is_scalar = config.cpu_scalars_ && i >= outputs_ && t.device().is_cpu() && t.dim() == 0;
    if (first < 0) {
      first = i;
      device_ = t.device();
    } else if (!is_scalar) {
      const Tensor& other = *operands_[first].tensor;
      const bool other_is_scalar =
          config.cpu_scalars_ && first >= outputs_ && other.device().is_cpu() && other.dim() == 0;
      TENON_CHECK(other_is_scalar || !config.check_device_, Device,
                  fmt::format("{}: {} is on {} and {} on {}; move one with .to()", op_, operand_label(first),
                              to_string(device_), operand_label(i), to_string(t.device())));
      if (other_is_scalar) {
        first = i;
        device_ = t.device();
      }
    }
  }
  if (config.output_device_ && first < 0) device_ = *config.output_device_;
}

void TensorIterator::compute_shape(const TensorIteratorConfig& config) {
  bool any = false;
  // An output that may be resized has no say in the shape; one that may not only narrows what fits.
  for (int i = config.resize_ ? outputs_ : 0; i < count_; ++i) {
    if (operands_[i].allocate) continue;
    if (any)
      broadcast_to(result_shape_, operands_[i].tensor->sizes(), op_);
    else
      result_shape_ = operands_[i].tensor->sizes().to_dims();
    any = true;
  }
  for (int i = 0; i < outputs_; ++i) {
    Operand& o = operands_[i];
    if (o.allocate) continue;
    const IntArrayRef sizes = o.tensor->sizes();
    if (!any) {
      result_shape_ = sizes.to_dims();
      any = true;
    } else if (sizes != IntArrayRef(result_shape_)) {
      o.resize = config.resize_ && o.tensor->numel() == 0;
      TENON_CHECK(o.resize, Shape,
                  fmt::format("{}: {} has shape {}, which cannot hold the result of shape {}", op_,
                              operand_label(i), to_string(sizes), to_string(result_shape_)));
    }
  }
  TENON_CHECK(any || count_ == 0, Value, fmt::format("{}: nothing defines the shape", op_));
  numel_ = checked_numel(result_shape_, op_);
}

void TensorIterator::compute_dtypes(const TensorIteratorConfig& config) {
  promotes_ = config.promote_;
  if (config.promote_ && ninputs() > 0) {
    Promotion p;
    for (int i = outputs_; i < count_; ++i) p.add(*operands_[i].tensor);
    common_dtype_ = p.common();
    if (config.promote_to_float_ && is_integral(common_dtype_, true)) common_dtype_ = default_dtype();
  } else {
    const int first = ninputs() > 0 ? outputs_ : 0;
    if (first < count_ && !operands_[first].allocate)
      common_dtype_ = operands_[first].dtype;
    else if (config.output_dtype_)
      common_dtype_ = *config.output_dtype_;
  }
  for (int i = 0; i < count_; ++i) {
    Operand& o = operands_[i];
    if (o.allocate) {
      const auto output = static_cast<size_t>(i);
      o.dtype = output < config.output_dtypes_.size() ? config.output_dtypes_[output]
                                                      : config.output_dtype_.value_or(common_dtype_);
      continue;
    }
    TENON_CHECK(!config.check_same_dtype_ || o.dtype == common_dtype_, Type,
                fmt::format("{}: {} is {}, expected {} as {}", op_, operand_label(i), name(o.dtype),
                            name(common_dtype_), operand_label(ninputs() > 0 ? outputs_ : 0)));
    TENON_CHECK(i >= outputs_ || !config.safe_cast_ || can_cast(common_dtype_, o.dtype), Type,
                fmt::format("{}: the result is {}, which cannot be stored in {} of {}", op_,
                            name(common_dtype_), operand_label(i), name(o.dtype)));
  }
}

void TensorIterator::check_overlaps() const {
  for (int i = 0; i < outputs_; ++i) {
    const Operand& o = operands_[i];
    if (o.allocate) continue;
    const Tensor& out = *o.tensor;
    TENON_CHECK(out.is_contiguous() || !overlaps_itself(out.sizes(), out.strides()), Runtime,
                fmt::format("{}: {} {} with strides {} writes some element more than once; clone() it first",
                            op_, operand_label(i), to_string(out.sizes()), to_string(out.strides())));
    for (int j = i + 1; j < count_; ++j) {
      const Operand& other = operands_[j];
      if (other.allocate || other.tensor->storage() != out.storage()) continue;
      const Overlap kind = overlap(out, *other.tensor);
      TENON_CHECK(
          kind == Overlap::None || (kind == Overlap::Same && j >= outputs_), Runtime,
          fmt::format(
              "{}: {} and {} overlap in memory, but not element for element; clone() one of them first", op_,
              operand_label(i), operand_label(j)));
    }
  }
}

bool TensorIterator::try_contiguous() {
  for (int i = 0; i < count_; ++i) {
    const Operand& o = operands_[i];
    if (o.allocate) continue;
    if (o.resize || !o.tensor->is_contiguous() || o.tensor->sizes() != IntArrayRef(result_shape_))
      return false;
  }
  shape_.push_back(numel_);
  strides_.resize(static_cast<size_t>(count_));
  for (int i = 0; i < count_; ++i) {
    Operand& o = operands_[i];
    if (o.allocate) o.owned = make_empty(result_shape_, o.dtype, device_);
    if (o.allocate) o.tensor = &o.owned;
    strides_[static_cast<size_t>(i)] = static_cast<int64_t>(item_size(o.dtype));
  }
  bind_addresses();
  return true;
}

void TensorIterator::bind_addresses() {
  for (int i = 0; i < count_; ++i) operands_[i].data = static_cast<char*>(operands_[i].tensor->data_ptr());
}

void TensorIterator::allocate_outputs() {
  const int ndim = static_cast<int>(order_.size());
  bool plain = true;  // the last dimension innermost
  for (int d = 0; d < ndim; ++d) plain &= order_[static_cast<size_t>(d)] == ndim - 1 - d;
  for (int i = 0; i < outputs_; ++i) {
    Operand& o = operands_[i];
    if (has_strides(i)) continue;
    // Dense in the order of the loop, so that the result keeps the inputs' arrangement.
    Dims strides(result_shape_.size());
    const auto item = static_cast<int64_t>(item_size(o.dtype));
    int64_t next = 1;
    for (int d = 0; d < ndim; ++d) {
      strides[order_[static_cast<size_t>(d)]] = next;
      stride(d, i) = next * item;
      next *= std::max<int64_t>(shape_[static_cast<size_t>(d)], 1);
    }
    if (o.allocate) {
      o.owned = plain ? make_empty(result_shape_, o.dtype, device_)
                      : make_empty_strided(result_shape_, strides, o.dtype, device_);
      o.tensor = &o.owned;
    } else {
      resize_output(*o.tensor, result_shape_, strides);
    }
  }
}

Dims TensorIterator::strides(int i) const {
  Dims s(shape_.size());
  for (int d = 0; d < ndim(); ++d) s[static_cast<size_t>(d)] = stride(d, i);
  return s;
}

bool TensorIterator::is_contiguous() const noexcept {
  if (numel_ <= 1) return true;
  if (shape_.size() != 1) return false;
  for (int i = 0; i < count_; ++i) {
    if (stride(0, i) != static_cast<int64_t>(item_size(operands_[i].dtype))) return false;
  }
  return true;
}

}  // namespace tenon
