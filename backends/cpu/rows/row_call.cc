#include "backends/cpu/rows/row_call.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/pointwise/streaming.h"
#include "backends/cpu/reduce/reduce.h"
#include "tenon/core/error.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {
namespace {

constexpr int64_t kMaxLanes = 64;
// Of panels that are read in place: at least, at most, and what their width is a multiple of.
constexpr int64_t kLeastInPlace = 64, kMostInPlace = 512, kStrip = kReduceStrip;
// Bytes of what a thread keeps of its rows from pass to pass: half of a second-level cache.
constexpr int64_t kKeptBytes = 512 << 10;
// What it reads again in later passes: little, so that it is near; but of as many rows as have their sums
// side by side, as long as those stay in the second-level cache.
constexpr int64_t kGroupBytes = 32 << 10, kFewBytes = 512 << 10;
// Rows that are shorter go side by side, though that costs a transposition: of whole vectors, and others.
constexpr int64_t kShortRow = 32, kShortRaggedRow = 48;
// Runs that are worth a call of a kernel.
constexpr int64_t kRun = 256;

}  // namespace

RowCall::RowCall(const RowsLaunch& l) : launch(l), e(l.expression), geometry(l) {
  check_countable();
  length = geometry.along.numel();
  choose_form();
  rows = geometry.kept.numel();
  for (size_t i = 0; i < e.num_inputs; ++i) held.push_back(real_dtype(e.inputs()[i].dtype));
  for (size_t i = 0; i < e.num_outputs; ++i) held.push_back(real_dtype(e.outputs()[i].dtype));
  for (size_t i = 0; i < held.size(); ++i) {
    direct.push_back(is_direct(i));
    same.push_back(is_same(i));
    broken.push_back(direct[i] && length > 1 && !geometry.along.dense(i, item(i)));
    repeated.push_back(false);
  }
  choose_size();
  choose_streams();
}

void RowCall::repeat(const std::vector<bool>& repeatable) {
  const RowDims& along = geometry.along;
  if (across() || along.sizes.size() < 2 || along.inner() < kRun) return;
  for (size_t i = 0; i < e.num_inputs; ++i) {
    const bool one = operand(i).dtype == held[i] && along.inner_stride(i) == 0;
    if (!repeatable[i] || is_of_rows(i) || !one || (item(i) != 4 && item(i) != 8)) continue;
    repeated[i] = broken[i] = true;
  }
}

bool RowCall::go_by_places(const std::vector<bool>& repeatable, int rounds) {
  if (!across() || geometry.lanes < kLeastInPlace) return false;
  const auto shared = [&](size_t i) { return i < e.num_inputs && geometry.lane_strides[i] == 0; };
  for (size_t i = 0; i < held.size(); ++i) {
    const bool aligned = reinterpret_cast<uintptr_t>(operand(i).data) % static_cast<uintptr_t>(item(i)) == 0;
    const bool fits = geometry.lane_strides[i] == item(i) || shared(i);
    if (!is_of_rows(i) && !(fits && aligned && operand(i).dtype == held[i])) return false;
  }
  by_places = true;
  // As wide as rows of memory, or so narrow that what is read again is near; evenly so.
  int64_t lane_bytes = length;  // of all operands, and not 0
  for (size_t i = 0; i < held.size(); ++i) lane_bytes += is_of_rows(i) || shared(i) ? 0 : length * item(i);
  const int64_t near = kKeptBytes / lane_bytes;
  const int64_t most = rounds > 1 && near >= kStrip ? std::min(near, kMostInPlace) : kMostInPlace;
  const int64_t count = std::max<int64_t>((geometry.lanes + most - 1) / most, num_threads());
  const int64_t even = (geometry.lanes + count - 1) / count;
  panel = std::min(geometry.lanes, (even + kStrip - 1) / kStrip * kStrip);
  for (size_t i = 0; i < held.size(); ++i) {
    if (is_of_rows(i)) continue;
    direct[i] = !shared(i);
    repeated[i] = shared(i) && repeatable[i] && (item(i) == 4 || item(i) == 8);
  }
  return true;
}

// A tensor of strides 0 may have any number of elements.
void RowCall::check_countable() const {
  constexpr int64_t kMost = int64_t{1} << 48;
  int64_t count = 1;
  bool fits = true, empty = false;
  for (const int64_t size : launch.sizes) {
    empty |= size == 0;
    fits &= !__builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count);
  }
  TENON_CHECK((fits && count <= kMost) || empty, Shape,
              fmt::format("{}: sizes {} have more elements than can be worked through, 2^48", launch.name,
                          to_string(launch.sizes)));
}

// The operand whose layout decides: the first one whose elements differ in all dimensions, outputs first.
size_t RowCall::reference() const {
  for (size_t i = 0; i < e.num_outputs; ++i) {
    if (!is_of_rows(e.num_inputs + i)) return e.num_inputs + i;
  }
  for (size_t i = 0; i < e.num_inputs; ++i) {
    if (!is_of_rows(i)) return i;
  }
  return 0;
}

void RowCall::choose_form() {
  const size_t ref = reference();
  const RowDims& kept = geometry.kept;
  const int64_t along_stride = std::abs(geometry.along.inner_stride(ref));
  size_t best = kept.sizes.size();
  for (size_t d = 0; d < kept.sizes.size(); ++d) {
    const int64_t stride = std::abs(kept.stride(ref, d));
    if (stride == 0 || kept.sizes[d] < 8) continue;
    if (best == kept.sizes.size() || stride < std::abs(kept.stride(ref, best))) best = d;
  }
  if (best == kept.sizes.size() || length == 0) return;
  const bool inner = std::abs(kept.stride(ref, best)) < along_stride;
  const bool is_long = length >= (length % 16 == 0 ? kShortRow : kShortRaggedRow);
  if (!inner && (is_long || kept.sizes[best] < 16)) return;
  form = expr::RowForm::Across;
  geometry.split_lanes(best);
  panel = std::min(kMaxLanes, geometry.lanes);
}

void RowCall::choose_size() {
  int64_t packed = 0, own = 0;  // of an element, in bytes; what all rows share counts once, which is little
  for (size_t i = 0; i < e.num_inputs; ++i) {
    if (is_of_rows(i)) continue;
    if (!same[i]) own += item(i);
    if (!direct[i]) packed += item(i);
  }
  // A panel narrower than the lanes there are, where it would not stay in the cache.
  const int64_t kept_guess = packed + 8;
  while (panel > 16 && length * panel * kept_guess > kKeptBytes) panel /= 2;
  whole = length * panel * kept_guess <= 2 * kKeptBytes;
  const int64_t row_bytes = std::max<int64_t>(length * (own + 4), 1);
  const int64_t few = std::clamp<int64_t>(kFewBytes / row_bytes, 1, kFewRows);
  group = panel > 1 ? 1 : std::clamp<int64_t>(kGroupBytes / row_bytes, few, kMaxGroup);
  group = std::clamp<int64_t>(rows, 1, group);
}

// As flat loops decide it: a result that would not stay in the caches had better not go through them.
void RowCall::choose_streams() {
  if (across()) return;
  int64_t bytes = 0;
  for (size_t i = 0; i < held.size(); ++i) {
    if (!is_of_rows(i)) bytes += (same[i] ? 1 : rows) * length * item(i);
  }
  if (static_cast<size_t>(bytes) <= streams_from()) return;
  for (size_t i = 0; i < held.size(); ++i)
    streamed.push_back(i >= e.num_inputs && direct[i] && !is_of_rows(i));
}

bool RowCall::is_same(size_t i) const {
  const RowDims& kept = geometry.kept;
  for (size_t d = 0; d < kept.sizes.size(); ++d) {
    if (kept.stride(i, d) != 0) return false;
  }
  return !across();
}

bool RowCall::is_direct(size_t i) const {
  const RowsOperand& o = operand(i);
  const int64_t size = item(i);
  const RowDims& along = geometry.along;
  if (o.dtype != held[i] || reinterpret_cast<uintptr_t>(o.data) % static_cast<uintptr_t>(size) != 0)
    return false;
  if (across()) return false;
  if (length <= 1 || along.dense(i, size)) return true;
  return along.inner() >= kRun && along.inner_stride(i) == size;
}

}  // namespace tenon::cpu
