#include "backends/cpu/rows/row_geometry.h"

#include <algorithm>

#include "backends/cpu/copy/convert.h"
#include "backends/cpu/copy/row_kernels.h"

namespace tenon::cpu {
namespace {

const RowsOperand& operand(const RowsLaunch& launch, size_t i) {
  return i < launch.inputs.size() ? launch.inputs[i] : launch.outputs[i - launch.inputs.size()];
}

/// Adds a dimension within the last one; one with it where every operand goes on from its end.
void add(RowDims& dims, const RowsLaunch& launch, size_t d) {
  const int64_t size = launch.sizes[d];
  if (size == 1) return;
  const size_t last = dims.sizes.size() - 1;  // where there is one
  bool joins = !dims.sizes.empty();
  for (size_t i = 0; joins && i < dims.operands(); ++i)
    joins = dims.stride(i, last) == operand(launch, i).strides[d] * size;
  if (joins)
    dims.sizes.back() *= size;
  else
    dims.push_back(size);
  for (size_t i = 0; i < dims.operands(); ++i)
    dims.stride(i, dims.sizes.size() - 1) = operand(launch, i).strides[d];
}

/// Calls f(offset of the operand in bytes, first place in the stretch, places, strides) for pieces that two
/// strides describe: `rows` runs of `n` places.
template <class F>
void for_each_run(const RowStretch& s, F&& f) {
  const Dims& sizes = s.along.sizes;
  if (sizes.empty()) return f(int64_t{0}, int64_t{0}, s.n, int64_t{0});
  const int64_t inner = sizes.back(), stride = s.along.inner_stride(s.operand);
  for (int64_t at = s.begin, end = s.begin + s.n; at < end;) {
    const int64_t n = std::min(end - at, inner - at % inner);
    f(s.along.offset(s.operand, at), at - s.begin, n, stride);
    at += n;
  }
}

bool transposes(const RowStretch& s, int64_t n, int64_t stride, DType a, DType b) {
  return a == b && s.lanes > 1 && n > 1 && stride == static_cast<int64_t>(item_size(a)) &&
         s.lane_stride != stride && item_size(a) <= 8;
}

}  // namespace

RowGeometry::RowGeometry(const RowsLaunch& launch)
    : kept(launch.inputs.size() + launch.outputs.size()),
      along(kept.operands()),
      lane_strides(kept.operands(), 0) {
  for (size_t d = 0; d < launch.sizes.size(); ++d) add(launch.over[d] ? along : kept, launch, d);
}

void RowGeometry::split_lanes(size_t d) {
  lanes = kept.sizes[d];
  for (size_t i = 0; i < kept.operands(); ++i) lane_strides[i] = kept.stride(i, d);
  kept.erase(d);
}

void pack_rows(const RowStretch& s, const char* base, DType stored, char* dense, DType held) {
  const ConvertFn convert = convert_fn(stored, held);
  const auto item = static_cast<int64_t>(item_size(held));
  const int64_t row = item * s.lanes;
  for_each_run(s, [&](int64_t offset, int64_t first, int64_t n, int64_t stride) {
    char* to = dense + first * row;
    if (s.lanes == 1) {
      convert(to, {item, 0}, base + offset, {stride, 0}, n, 1);
    } else if (transposes(s, n, stride, stored, held)) {
      row_kernels().transpose[element_size_index(item)](to, row, base + offset, s.lane_stride,
                                                        static_cast<size_t>(s.lanes), static_cast<size_t>(n));
    } else if (s.lane_stride == 0) {
      // The same for all lanes: one value a place, spread.
      for (int64_t i = 0; i < n; ++i)
        convert(to + i * row, {item, 0}, base + offset + i * stride, {0, 0}, s.lanes, 1);
    } else {
      convert(to, {item, row}, base + offset, {s.lane_stride, stride}, s.lanes, n);
    }
  });
}

void unpack_rows(const RowStretch& s, char* base, DType stored, const char* dense, DType held) {
  const ConvertFn convert = convert_fn(held, stored);
  const auto item = static_cast<int64_t>(item_size(held));
  const int64_t row = item * s.lanes;
  for_each_run(s, [&](int64_t offset, int64_t first, int64_t n, int64_t stride) {
    const char* from = dense + first * row;
    if (s.lanes == 1) {
      convert(base + offset, {stride, 0}, from, {item, 0}, n, 1);
    } else if (transposes(s, n, stride, stored, held)) {
      row_kernels().transpose[element_size_index(item)](base + offset, s.lane_stride, from, row,
                                                        static_cast<size_t>(n), static_cast<size_t>(s.lanes));
    } else {
      convert(base + offset, {s.lane_stride, stride}, from, {item, row}, s.lanes, n);
    }
  });
}

}  // namespace tenon::cpu
