// Plain reductions to places: the extreme element of each row, and where it is.
#include "backends/cpu/ops/operand_walk.h"
#include "backends/cpu/reduce/arg_reduce.h"
#include "tenon/core/half.h"
#include "tenon/core/kernel_report.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {
namespace {

/// Calls done(i, ArgResult) for every result i.
template <class T, class F>
void for_each_extremum(const OperandWalk& walk, ReduceOp op, F&& done) {
  const ConvertFn convert = convert_from(walk.dtype, dtype_of<T>, walk.name);
  const char* base = walk.base;
  const StridedDims &kept = walk.kept, &reduced = walk.reduced;
  const int64_t extent = reduced.numel(), outputs = kept.numel();
  constexpr int64_t kItem = sizeof(T), kStrip = kReduceStrip;
  if (!convert && outputs > 0 && extent > 0 && reduced.sizes.size() == 1 && !kept.sizes.empty() &&
      kept.strides.back() == kItem && reduced.strides[0] % kItem == 0) {
    // Neighbouring results side by side: whole rows are compared.
    const int64_t row = kept.sizes.back(), strips = (row + kStrip - 1) / kStrip;
    const auto step = static_cast<ptrdiff_t>(reduced.strides[0] / kItem);
    parallel_for(0, outputs / row * strips, std::max<int64_t>((1 << 14) / (extent * kStrip), 1),
                 [&](int64_t begin, int64_t end) {
                   T values[kStrip];
                   int64_t positions[kStrip];
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t first = i / strips * row + i % strips * kStrip,
                                   n = std::min(kStrip, row - i % strips * kStrip);
                     arg_reduce_outer(op, reinterpret_cast<const T*>(base + kept.offset(first)), step,
                                      static_cast<size_t>(extent), values, positions, static_cast<size_t>(n));
                     for (int64_t k = 0; k < n; ++k) done(first + k, ArgResult<T>{values[k], positions[k]});
                   }
                 });
    return;
  }
  if (outputs == 1 && !convert && extent > 0 && reduced.dense(sizeof(T)))
    return done(0, arg_reduce_contiguous(op, reinterpret_cast<const T*>(base), static_cast<size_t>(extent)));
  parallel_for(0, outputs, std::max<int64_t>((1 << 14) / std::max<int64_t>(extent, 1), 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   ArgReducer<T> best(op);
                   for_each_tile<T>(base + kept.offset(i), reduced, convert,
                                    [&](const T* p, int64_t n) { best.feed(p, static_cast<size_t>(n)); });
                   done(i, best.result());
                 }
               });
}

template <class T>
void find_as(const OperandWalk& walk, ReduceOp op, const WalkResults* elements, const WalkResults& places) {
  auto* positions = reinterpret_cast<int64_t*>(places.data);
  if (!elements) {
    for_each_extremum<T>(walk, op, [&](int64_t i, const ArgResult<T>& best) { positions[i] = best.index; });
    return;
  }
  const ConvertFn store = convert_fn(dtype_of<T>, elements->dtype);
  for_each_extremum<T>(walk, op, [&](int64_t i, const ArgResult<T>& best) {
    positions[i] = best.index;
    store(elements->data + i * elements->item, {elements->item, 0}, &best.value, {sizeof(T), 0}, 1, 1);
  });
}

}  // namespace

void find_extrema(const OperandWalk& walk, ReduceOp op, expr::Type type, const WalkResults* elements,
                  const WalkResults& places) {
  report_kernel(walk.name, "scan");
  switch (type) {
    case expr::Type::F32:
      return find_as<float>(walk, op, elements, places);
    case expr::Type::F64:
      return find_as<double>(walk, op, elements, places);
    case expr::Type::I32:
      return find_as<int32_t>(walk, op, elements, places);
    default:
      return find_as<int64_t>(walk, op, elements, places);
  }
}

}  // namespace tenon::cpu
