// How the loop is made: the strides of every operand over the broadcast shape; dimensions sorted, reversed,
// merged and split; and the run itself.
#include <fmt/core.h>

#include <utility>

#include "tenon/iter/tensor_iterator.h"

namespace tenon {

void TensorIterator::set_strides() {
  const int ndim = static_cast<int>(result_shape_.size());
  strides_.resize(static_cast<size_t>(std::max(ndim, 1) * count_));
  shape_.resize(static_cast<size_t>(ndim));
  order_.resize(static_cast<size_t>(ndim));
  // Loop dimension d is the tensors' dimension ndim - 1 - d to begin with: the last one varies fastest.
  for (int d = 0; d < ndim; ++d) {
    shape_[static_cast<size_t>(d)] = result_shape_[static_cast<size_t>(ndim - 1 - d)];
    order_[static_cast<size_t>(d)] = static_cast<uint8_t>(ndim - 1 - d);
  }
  for (int i = 0; i < count_; ++i) {
    if (!has_strides(i)) continue;
    const IntArrayRef sizes = operands_[i].tensor->sizes(), strides = operands_[i].tensor->strides();
    const auto item = static_cast<int64_t>(item_size(operands_[i].dtype));
    const int own = static_cast<int>(sizes.size());
    for (int d = 0; d < own; ++d) {
      const auto at = static_cast<size_t>(own - 1 - d);
      const bool broadcast = sizes[at] == 1 && shape_[static_cast<size_t>(d)] != 1;
      // Of one element, or of none, strides may be any numbers.
      int64_t bytes = 0;
      const bool none = __builtin_mul_overflow(strides[at], 2 * item, &bytes);
      stride(d, i) = broadcast || none ? 0 : strides[at] * item;
    }
  }
}

void TensorIterator::sort_dimensions() {
  const int ndim = static_cast<int>(shape_.size());
  // 1: dimension a belongs outside of b; -1: inside; 0: no operand tells, and the order stays.
  const auto compare = [&](int a, int b) {
    for (int i = 0; i < count_; ++i) {
      if (!has_strides(i)) continue;
      const int64_t sa = std::abs(stride(a, i)), sb = std::abs(stride(b, i));
      if (sa == 0 || sb == 0) continue;
      if (sa != sb) return sa < sb ? -1 : 1;
      if (shape_[static_cast<size_t>(a)] > shape_[static_cast<size_t>(b)]) return 1;
    }
    return 0;
  };
  for (int i = 1; i < ndim; ++i) {
    int at = i;
    for (int before = i - 1; before >= 0; --before) {
      const int c = compare(before, at);
      if (c < 0) break;
      if (c == 0) continue;
      std::swap(shape_[static_cast<size_t>(before)], shape_[static_cast<size_t>(at)]);
      std::swap(order_[static_cast<size_t>(before)], order_[static_cast<size_t>(at)]);
      for (int k = 0; k < count_; ++k) std::swap(stride(before, k), stride(at, k));
      at = before;
    }
  }
}

void TensorIterator::reverse_dimensions() {
  for (int d = 0; d < static_cast<int>(shape_.size()); ++d) {
    bool backwards = false, forwards = false;
    for (int i = 0; i < count_; ++i) {
      backwards |= stride(d, i) < 0;
      forwards |= stride(d, i) > 0;
    }
    if (!backwards || forwards || numel_ == 0) continue;
    for (int i = 0; i < count_; ++i) {
      if (operands_[i].data) operands_[i].data += stride(d, i) * (shape_[static_cast<size_t>(d)] - 1);
      stride(d, i) = -stride(d, i);
    }
  }
}

void TensorIterator::merge_dimensions(std::string* log) {
  const int ndim = static_cast<int>(shape_.size());
  if (ndim == 0) {
    // A 0-dim loop is one of one element.
    shape_.push_back(1);
    for (int i = 0; i < count_; ++i) stride(0, i) = static_cast<int64_t>(item_size(operands_[i].dtype));
    return;
  }
  int last = 0;
  for (int d = 1; d < ndim; ++d) {
    const int64_t inner = shape_[static_cast<size_t>(last)], outer = shape_[static_cast<size_t>(d)];
    int blocker = -1;
    if (inner != 1 && outer != 1) {
      for (int i = 0; i < count_ && blocker < 0; ++i) {
        if (inner * stride(last, i) != stride(d, i)) blocker = i;
      }
    }
    if (log) {
      const auto name_of = [&](int k) { return static_cast<int>(order_[static_cast<size_t>(k)]); };
      if (blocker < 0) {
        *log += fmt::format(
            "  dimension {} merges with {}: {}\n", name_of(d), name_of(d - 1),
            inner == 1 || outer == 1 ? "one of them has size 1" : "one stride serves both in every operand");
      } else {
        *log += fmt::format(
            "  dimension {} does not merge with {}: {} has byte stride {}, merging needs {} * {} = {}\n",
            name_of(d), name_of(d - 1), operand_label(blocker), stride(d, blocker), inner,
            stride(last, blocker), inner * stride(last, blocker));
      }
    }
    if (blocker < 0) {
      if (inner == 1) {
        for (int i = 0; i < count_; ++i) stride(last, i) = stride(d, i);
      }
      shape_[static_cast<size_t>(last)] = inner * outer;
    } else {
      ++last;
      if (last != d) {
        shape_[static_cast<size_t>(last)] = outer;
        for (int i = 0; i < count_; ++i) stride(last, i) = stride(d, i);
      }
    }
  }
  shape_.resize(static_cast<size_t>(last + 1));
}

void TensorIterator::run(BlockFunction f, void* context, int64_t grain) const {
  if (numel_ == 0) return;
  if (numel_ <= grain) return run_range(f, context, 0, numel_);
  parallel_for(0, numel_, grain, [&](int64_t begin, int64_t end) { run_range(f, context, begin, end); });
}

// Elements [begin, end) of the loop, in its order, as the largest two-dimensional blocks that fit.
void TensorIterator::run_range(BlockFunction f, void* context, int64_t begin, int64_t end) const {
  const int dims = ndim();
  int64_t block_strides[2 * kMaxOperands];
  char* ptrs[kMaxOperands];
  for (int i = 0; i < count_; ++i) {
    block_strides[i] = stride(0, i);
    block_strides[count_ + i] = dims > 1 ? stride(1, i) : 0;
  }
  const int64_t n0 = shape_[0], n1 = dims > 1 ? shape_[1] : 1;
  if (dims <= 2 && begin == 0 && end == numel_) {
    for (int i = 0; i < count_; ++i) ptrs[i] = operands_[i].data;
    return f(context, ptrs, block_strides, n0, n1);
  }

  Dims index(static_cast<size_t>(dims));
  int64_t rest = begin;
  for (int d = 0; d < dims; ++d) {
    index[static_cast<size_t>(d)] = rest % shape_[static_cast<size_t>(d)];
    rest /= shape_[static_cast<size_t>(d)];
  }
  for (int64_t at = begin; at < end;) {
    for (int i = 0; i < count_; ++i) {
      ptrs[i] = operands_[i].data;
      for (int d = 0; d < dims; ++d) ptrs[i] += index[static_cast<size_t>(d)] * stride(d, i);
    }
    const int64_t left = end - at;
    int64_t width = std::min(n0 - index[0], left), height = 1;
    if (width == n0 && dims > 1) height = std::min(n1 - index[1], left / n0);
    f(context, ptrs, block_strides, width, height);
    at += width * height;
    // Carry into the next dimensions.
    index[0] += width;
    if (index[0] == n0) {
      index[0] = 0;
      if (dims > 1) index[1] += height;
    }
    for (int d = 1; d + 1 < dims && index[static_cast<size_t>(d)] == shape_[static_cast<size_t>(d)]; ++d) {
      index[static_cast<size_t>(d)] = 0;
      ++index[static_cast<size_t>(d + 1)];
    }
  }
}

std::string TensorIterator::explain() const {
  std::string text = fmt::format("{}: {} outputs, {} inputs, shape {}, {} elements\n", op_, outputs_,
                                 ninputs(), to_string(result_shape_), numel_);
  for (int i = 0; i < count_; ++i) {
    const Tensor& t = tensor(i);
    text += fmt::format("  {}: {} {} strides {}\n", operand_label(i), name(t.dtype()), to_string(t.sizes()),
                        to_string(t.strides()));
  }
  // The same steps once more, now with a log: the loop itself keeps no record, so that it costs nothing to
  // build.
  TensorIteratorConfig config;
  config.set_op_name(op_)
      .set_names(output_names_, input_names_)
      .check_all_same_dtype(false)
      .check_all_same_device(false)
      .set_check_mem_overlap(false);
  for (int i = 0; i < count_; ++i) config.add(tensor(i), i < outputs_, false);
  TensorIterator again = config.build();
  again.shape_.clear();
  again.strides_.clear();
  again.set_strides();
  again.sort_dimensions();
  text += "  order, innermost first:";
  for (const uint8_t d : again.order_) text += fmt::format(" {}", d);
  text += '\n';
  const TensorIterator& before = again;
  for (int d = 0; d < static_cast<int>(again.shape_.size()); ++d) {
    for (int i = 0; i < count_; ++i) {
      if (before.stride(d, i) >= 0) continue;
      bool forwards = false;
      for (int k = 0; k < count_; ++k) forwards |= before.stride(d, k) > 0;
      text += fmt::format("  dimension {} {}\n", again.order_[static_cast<size_t>(d)],
                          forwards ? "runs backwards in " + operand_label(i) + " only"
                                   : std::string("is reversed: no operand runs forwards"));
      break;
    }
  }
  again.reverse_dimensions();
  again.merge_dimensions(&text);
  text += fmt::format("  loop {} over {} thread{}; byte strides", to_string(shape_),
                      numel_ > kGrainSize ? "several" : "one", numel_ > kGrainSize ? "s" : "");
  for (int i = 0; i < count_; ++i)
    text += fmt::format("{} {} {}", i ? "," : "", operand_label(i), to_string(strides(i)));
  return text + (is_contiguous() ? "; contiguous\n" : "\n");
}

}  // namespace tenon
