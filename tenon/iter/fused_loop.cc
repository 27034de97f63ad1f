// The loop of a region: made once for a geometry, then run over addresses. Operands that are contiguous are
// passed to the kernel as they are, all others by way of tiles that stay in the first-level cache.
#include <fmt/core.h>

#include <algorithm>

#include "tenon/core/error.h"
#include "tenon/core/kernel_report.h"
#include "tenon/core/parallel.h"
#include "tenon/expr/spec.h"
#include "tenon/iter/fused_kernel.h"
#include "tenon/iter/fused_rows.h"
#include "tenon/iter/pointwise_state.h"
#include "tenon/iter/tensor_iterator.h"

namespace tenon {

namespace {

// All tiles together stay in the first-level cache with the memory that is read and written.
constexpr int64_t kTilesBytes = 16384, kLeastTile = 64, kMostTile = 1024;
constexpr int64_t kMostBytes = kLeastTile * 8 * static_cast<int64_t>(expr::kMaxSlots);
static_assert(kMostBytes >= kTilesBytes);
// Columns that an operand across the loop is read by, and what a row of it spans at least.
constexpr int64_t kColumns = 64, kLeastRows = 16, kFarBytes = int64_t{1} << 15;

}  // namespace

FusedLoop::FusedLoop(const FusedKernel& region, std::span<const FusedOperand> outputs,
                     std::span<const FusedOperand> inputs, std::optional<bool> streams)
    : region_(region), kernel_(region.kernel()), num_output_slots_(region.expression().num_outputs) {
  TENON_CHECK(outputs.size() == region.num_outputs() && inputs.size() == region.num_inputs(), Internal,
              fmt::format("region: {} outputs and {} inputs, expected {} and {}", outputs.size(),
                          inputs.size(), region.num_outputs(), region.num_inputs()));
  const expr::Expression& e = region.expression();
  if (region.is_over_rows()) {
    rows_ = std::make_unique<const detail::RowsLoop>(region, outputs, inputs);
    numel_ = rows_->numel();
    return;
  }
  place(e, outputs, inputs);
  if (numel_ == 0) return;
  for (const SlotPlace& slot : slots_) {
    const bool output = slot.operand < outputs.size();
    const DType part =
        real_dtype(output ? outputs[slot.operand].dtype : inputs[slot.operand - outputs.size()].dtype);
    copies_.push_back(kHost.convert(part, part));
  }
  choose_tile(streams);
}

FusedLoop::~FusedLoop() = default;

void FusedLoop::choose_tile(std::optional<bool> streams) {
  int64_t bytes = 0;
  bool one_kind = shape_.size() == 1 && num_output_slots_ == 1 && slots_.size() <= kMaxOperands;
  for (size_t i = 0; i < slots_.size(); ++i) {
    bytes += slots_[i].item;
    one_kind = one_kind && dense(i) && slots_[i].item == slots_[0].item;
  }
  tile_ = std::clamp(kTilesBytes / bytes / kLeastTile * kLeastTile, kLeastTile, kMostTile);
  // If an operand is transposed to the loop, a row reads a line of the cache for each element: few columns at
  // a time, so that these lines are there for the rows that follow.
  for (size_t i = 0; i < slots_.size() && shape_.size() > 1; ++i) {
    const int64_t inner = std::abs(stride(0, i)), outer = std::abs(stride(1, i));
    turns_ |= slots_[i].used && outer > 0 && outer < inner && inner * shape_[0] > kFarBytes;
  }
  is_direct_ = shape_.size() == 1 && numel_ <= kGrainSize;
  for (size_t i = 0; i < slots_.size(); ++i)
    is_direct_ = is_direct_ && (dense(i) || shape_[0] == 1 || !slots_[i].used);
  can_stream_ = one_kind;
  streams_ = one_kind && streams.value_or(static_cast<size_t>(bytes * numel_) > kHost.streams_from());
}

// The kernel over dense operands, past the caches where the result would not stay in them.
void FusedLoop::run_streaming(char* const* bases, const uint64_t* numbers) const {
  const int64_t item = slots_[0].item;
  parallel_for(0, numel_, kGrainSize, [&](int64_t begin, int64_t end) {
    void* at[kMaxOperands];
    for (size_t i = 0; i < slots_.size(); ++i) at[i] = bases[i] + begin * item;
    kHost.run_streaming(kernel_, at, slots_.size(), static_cast<size_t>(item),
                        static_cast<size_t>(end - begin), numbers);
  });
}

void FusedLoop::run(char* const* addresses, const uint64_t* numbers) const {
  if (rows_) return rows_->run(addresses, numbers);
  if (kernel_reporting()) [[unlikely]]
    detail::report_host_kernel(region_.name(), kernel_);
  if (numel_ == 0) return;
  if (is_direct_ && !streams_) {
    void* at[expr::kMaxSlots];
    for (size_t i = 0; i < slots_.size(); ++i) at[i] = addresses[slots_[i].operand] + slots_[i].offset;
    return kernel_(at, static_cast<size_t>(numel_), numbers);
  }
  SmallVector<char*, 16> bases(slots_.size());
  for (size_t i = 0; i < slots_.size(); ++i) bases[i] = addresses[slots_[i].operand] + slots_[i].offset;
  if (streams_ && std::find(bases.begin() + 1, bases.end(), bases[0]) == bases.end())
    return run_streaming(bases.data(), numbers);
  if (numel_ <= kGrainSize) return run_range(bases.data(), numbers, 0, numel_);
  parallel_for(0, numel_, kGrainSize,
               [&](int64_t begin, int64_t end) { run_range(bases.data(), numbers, begin, end); });
}

// Elements [begin, end) of the loop, in its order, as the largest two-dimensional blocks that fit.
void FusedLoop::run_range(char* const* bases, const uint64_t* numbers, int64_t begin, int64_t end) const {
  const size_t dims = shape_.size(), count = slots_.size();
  const int64_t n0 = shape_[0], n1 = dims > 1 ? shape_[1] : 1;
  if (dims <= 2 && begin == 0 && end == numel_) return run_block(bases, numbers, n0, n1);
  Dims index(dims);
  int64_t rest = begin;
  for (size_t d = 0; d < dims; ++d) {
    index[d] = rest % shape_[d];
    rest /= shape_[d];
  }
  SmallVector<char*, 16> ptrs(count);
  for (int64_t at = begin; at < end;) {
    for (size_t i = 0; i < count; ++i) {
      ptrs[i] = bases[i];
      for (size_t d = 0; d < dims; ++d) ptrs[i] += index[d] * stride(d, i);
    }
    const int64_t left = end - at;
    int64_t width = std::min(n0 - index[0], left), height = 1;
    if (width == n0 && dims > 1) height = std::min(n1 - index[1], left / n0);
    run_block(ptrs.data(), numbers, width, height);
    at += width * height;
    // Carry into the next dimensions.
    index[0] += width;
    if (index[0] == n0) {
      index[0] = 0;
      if (dims > 1) index[1] += height;
    }
    for (size_t d = 1; d + 1 < dims && index[d] == shape_[d]; ++d) {
      index[d] = 0;
      ++index[d + 1];
    }
  }
}

void FusedLoop::run_block(char* const* ptrs, const uint64_t* numbers, int64_t n0, int64_t n1) const {
  if (turns_ && n1 >= kLeastRows && n0 > kColumns) {
    SmallVector<char*, 16> at(slots_.size());
    for (int64_t begin = 0; begin < n0; begin += kColumns) {
      for (size_t i = 0; i < slots_.size(); ++i) at[i] = ptrs[i] + begin * stride(0, i);
      short_rows(at.data(), numbers, std::min(kColumns, n0 - begin), n1);
    }
    return;
  }
  // Short rows go through tiles together.
  if (n1 == 1 || n0 > tile_ / 2)
    long_rows(ptrs, numbers, n0, n1);
  else
    short_rows(ptrs, numbers, n0, n1);
}

// One row after another, in pieces of a tile where some operand needs one.
void FusedLoop::long_rows(char* const* ptrs, const uint64_t* numbers, int64_t n0, int64_t n1) const {
  alignas(64) char memory[kMostBytes];
  const size_t count = slots_.size();
  void* at[expr::kMaxSlots];
  char* tiles[expr::kMaxSlots];
  char* next = memory;
  bool direct = true;
  for (size_t i = 0; i < count; ++i) {
    const bool own = dense(i) || n0 == 1 || !slots_[i].used;
    tiles[i] = own ? nullptr : next;
    if (own) continue;
    next += tile_ * slots_[i].item;
    direct = false;
  }
  const int64_t step = direct ? n0 : tile_, outer = shape_.size() > 1 ? 1 : 0;
  for (int64_t j = 0; j < n1; ++j) {
    for (int64_t begin = 0; begin < n0; begin += step) {
      const int64_t n = std::min(step, n0 - begin);
      for (size_t i = 0; i < count; ++i) {
        const int64_t inner = stride(0, i), next_row = outer ? stride(1, i) : 0;
        char* const p = ptrs[i] + j * next_row + begin * inner;
        at[i] = tiles[i] ? tiles[i] : p;
        if (!tiles[i] || i < num_output_slots_) continue;
        // One element for the whole row fills its tile once: at the first piece, which is the longest.
        const bool filled = inner == 0 && (begin > 0 || (j > 0 && next_row == 0));
        if (!filled) copies_[i](tiles[i], {slots_[i].item, 0}, p, {inner, 0}, n, 1);
      }
      kernel_(at, static_cast<size_t>(n), numbers);
      for (size_t i = 0; i < num_output_slots_; ++i) {
        if (!tiles[i]) continue;
        const int64_t inner = stride(0, i), next_row = outer ? stride(1, i) : 0;
        copies_[i](ptrs[i] + j * next_row + begin * inner, {inner, 0}, tiles[i], {slots_[i].item, 0}, n, 1);
      }
    }
  }
}

// As many rows at once as fill a tile.
void FusedLoop::short_rows(char* const* ptrs, const uint64_t* numbers, int64_t n0, int64_t n1) const {
  alignas(64) char memory[kMostBytes];
  const size_t count = slots_.size();
  void* at[expr::kMaxSlots];
  char* tiles[expr::kMaxSlots];
  char* next = memory;
  const int64_t rows = std::min(tile_ / n0, n1);
  for (size_t i = 0; i < count; ++i) {
    const int64_t item = slots_[i].item;
    const bool linear = (dense(i) && stride(1, i) == n0 * item) || !slots_[i].used;
    tiles[i] = linear ? nullptr : next;
    if (linear) continue;
    next += tile_ * item;
    at[i] = tiles[i];
    // The same row every time: once for all.
    if (i >= num_output_slots_ && stride(1, i) == 0)
      copies_[i](tiles[i], {item, n0 * item}, ptrs[i], {stride(0, i), 0}, n0, rows);
  }
  for (int64_t j = 0; j < n1; j += rows) {
    const int64_t m = std::min(rows, n1 - j);
    for (size_t i = 0; i < count; ++i) {
      char* const p = ptrs[i] + j * stride(1, i);
      const int64_t item = slots_[i].item;
      if (!tiles[i])
        at[i] = p;
      else if (i >= num_output_slots_ && stride(1, i) == item && stride(0, i) > item)
        kHost.transpose(tiles[i], n0 * item, p, stride(0, i), static_cast<size_t>(n0), static_cast<size_t>(m),
                        static_cast<size_t>(item));
      else if (i >= num_output_slots_ && stride(1, i) != 0)
        copies_[i](tiles[i], {item, n0 * item}, p, {stride(0, i), stride(1, i)}, n0, m);
    }
    kernel_(at, static_cast<size_t>(m * n0), numbers);
    for (size_t i = 0; i < num_output_slots_; ++i) {
      if (!tiles[i]) continue;
      const int64_t item = slots_[i].item;
      copies_[i](ptrs[i] + j * stride(1, i), {stride(0, i), stride(1, i)}, tiles[i], {item, n0 * item}, n0,
                 m);
    }
  }
}

}  // namespace tenon
