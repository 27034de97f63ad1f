// Indexed reads and writes on the CPU (tenon/ops/indexing/indexed.h). The loop's dimensions are merged where
// all strides allow; the innermost one that no position depends on becomes a row, so that slices are copied
// whole; the others are walked in blocks of positions. Threads share no element that is written: they split a
// dimension along which places differ, or ranges of places, so that additions to one place keep their order.
#include "tenon/ops/indexing/indexed.h"

#include <algorithm>

#include "backends/cpu/ops/indexed_kernels.h"
#include "backends/cpu/ops/strided.h"
#include "backends/cpu/ops/stub_functions.h"
#include "tenon/core/kernel_report.h"
#include "tenon/core/parallel.h"
#include "tenon/iter/geometry.h"

namespace tenon::cpu {
namespace {

using ops::IndexedBy;
using ops::IndexedCall;

/// Positions, with strides in bytes.
struct Positions {
  const char* data;
  bool wide;     // int64; otherwise int32
  int64_t size;  // of what they count
  int64_t step;  // bytes from place to place, where that is one number
  const IndexedBy* by;
  bool plain = false;  // all are known to be in range, counted from the front

  int64_t value(const char* p) const noexcept {
    return wide ? *reinterpret_cast<const int64_t*>(p) : *reinterpret_cast<const int32_t*>(p);
  }
  /// Bytes from the first element to the one that a position counts.
  int64_t place(int64_t position, int64_t item) const noexcept {
    if (by->sizes.size() == 1) return position * step;
    int64_t bytes = 0;
    for (size_t d = by->sizes.size(); d-- > 0;) {
      bytes += position % by->sizes[d] * by->steps[d] * item;
      position /= by->sizes[d];
    }
    return bytes;
  }
};

constexpr int kTo = 0, kFrom = 1;

/// A dimension of the loop; strides in bytes.
struct LoopDim {
  int64_t size = 0;
  int64_t stride[2] = {};
  SmallVector<int64_t, 4> positions;  // strides of each index

  bool kept() const noexcept {
    return std::all_of(positions.begin(), positions.end(), [](int64_t s) { return s == 0; });
  }
  /// Whether this dimension and the next one in can be walked as one.
  bool merges(const LoopDim& inner) const noexcept {
    bool all =
        stride[kTo] == inner.stride[kTo] * inner.size && stride[kFrom] == inner.stride[kFrom] * inner.size;
    for (size_t i = 0; i < positions.size(); ++i) all &= positions[i] == inner.positions[i] * inner.size;
    return all;
  }
};

/// The sign bit is set if one of n positions is below 0 or not below `size`.
int64_t out_of_range(const int64_t* p, int64_t n, int64_t size) noexcept {
  uint64_t signs = 0;
  const uint64_t last = static_cast<uint64_t>(size) - 1;
  for (int64_t i = 0; i < n; ++i) {
    const auto v = static_cast<uint64_t>(p[i]);
    signs |= v | (last - v);
  }
  return static_cast<int64_t>(signs);
}

/// n positions `stride` bytes apart, in range and counted from the front: in place, if they are so,
/// else in `buffer`. Null if one is out of range.
const int64_t* checked_run(const Positions& x, const char* p, int64_t stride, int64_t n, bool wraps,
                           int64_t* buffer) noexcept {
  if (x.wide && stride == sizeof(int64_t)) {
    const auto* in_place = reinterpret_cast<const int64_t*>(p);
    if (x.plain) return in_place;
    if (out_of_range(in_place, n, x.size) >= 0) return in_place;
    if (!wraps) return nullptr;
    std::copy(in_place, in_place + n, buffer);
  } else if (!x.wide && stride == sizeof(int32_t)) {
    const auto* narrow = reinterpret_cast<const int32_t*>(p);
    std::copy(narrow, narrow + n, buffer);
  } else {
    for (int64_t i = 0; i < n; ++i) buffer[i] = x.value(p + i * stride);
  }
  if (x.plain) return buffer;
  if (wraps) {
    for (int64_t i = 0; i < n; ++i) buffer[i] += buffer[i] < 0 ? x.size : 0;
  }
  return out_of_range(buffer, n, x.size) >= 0 ? buffer : nullptr;
}

/// The loop, or a part of it.
class Loop {
 public:
  explicit Loop(const IndexedCall& call) : call_(call) {
    item_ = static_cast<int64_t>(call.to.tensor.itemsize());
    base_[kTo] = static_cast<char*>(call.to.tensor.data_ptr());
    base_[kFrom] = static_cast<char*>(call.from.tensor.data_ptr());
    for (const ops::IndexedSide* side : {&call.to, &call.from}) {
      for (const IndexedBy& by : side->by) {
        Positions x{static_cast<const char*>(by.positions.data_ptr()), by.positions.dtype() == DType::Int64,
                    1, by.steps.empty() ? 0 : by.steps[0] * item_, &by};
        for (const int64_t s : by.sizes) x.size *= s;
        indices_.push_back(x);
      }
    }
    num_to_ = call.to.by.size();
    add_dims();
    kernel_ = indexed_kernel(call.to.tensor.dtype(), call.combine, call.op);
  }

  /// Throws for the first position that is out of range, of the first tensor that has one. If none is
  /// negative, positions need no look afterwards.
  void check() {
    for (Positions& x : indices_) x.plain = check(x);
  }

  /// Runs the whole loop, on several threads where it is long.
  void run() {
    int64_t numel = 1;
    for (const LoopDim& d : dims_) numel *= d.size;
    if (numel == 0) return;
    if (numel <= kGrain || num_threads() == 1 || in_parallel_region()) return run_panels();
    const size_t dim = dim_to_split();
    if (dim < dims_.size()) {
      const int64_t size = dims_[dim].size;
      parallel_for(0, size, std::max<int64_t>(kGrain / (numel / size), least_part(dims_[dim])),
                   [&](int64_t begin, int64_t end) { narrowed(dim, begin, end).run_panels(); });
    } else if (num_to_ > 0) {
      const int64_t places = indices_[0].size;
      const int64_t parts = std::min<int64_t>({num_threads(), numel / kGrain, places});
      parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
        Loop part = *this;
        part.first_ = places / parts * begin;
        part.last_ = end == parts ? places : places / parts * end;
        part.run_part();
      });
    } else {
      run_panels();
    }
  }

 private:
  /// Throws for the first position that is out of range; returns whether none is negative.
  bool check(const Positions& x) const {
    const Tensor& t = x.by->positions;
    if (t.numel() == 0) return true;
    StridedDims dims;  // without those that repeat
    for (size_t d = 0; d < t.sizes().size(); ++d) {
      if (t.strides()[d] != 0) dims.add(t.sizes()[d], t.strides()[d] * static_cast<int64_t>(t.itemsize()));
    }
    const auto* first = static_cast<const char*>(t.data_ptr());
    const int64_t inner = dims.sizes.empty() ? 1 : dims.sizes.back();
    const int64_t stride = dims.sizes.empty() ? 0 : dims.strides.back();
    const int64_t numel = dims.numel();
    bool plain = true;
    int64_t buffer[kIndexedBlock];
    for (int64_t i = 0; i < numel; i += inner) {
      for (int64_t j = 0; j < inner; j += kIndexedBlock) {
        const char* run = first + (dims.sizes.empty() ? 0 : dims.offset(i)) + j * stride;
        const int64_t n = std::min(kIndexedBlock, inner - j);
        const int64_t* values = checked_run(x, run, stride, n, call_.wraps, buffer);
        for (int64_t k = 0; k < n && !(values && values != buffer); ++k) {
          const int64_t v = x.value(run + k * stride);
          plain &= v >= 0;
          if (v >= x.size || v < (call_.wraps ? -x.size : 0)) ops::throw_out_of_range(call_, *x.by, v);
        }
      }
    }
    return plain;
  }

  /// A loop with fewer elements runs on the calling thread alone.
  static constexpr int64_t kGrain = 32768;

  void add_dims() {
    for (size_t d = 0; d < call_.sizes.size(); ++d) {
      LoopDim dim;
      dim.size = call_.sizes[d];
      if (dim.size == 1) continue;
      dim.stride[kTo] = call_.to.strides[d] * item_;
      dim.stride[kFrom] = call_.from.strides[d] * item_;
      for (const Positions& x : indices_)
        dim.positions.push_back(x.by->strides[d] * static_cast<int64_t>(x.by->positions.itemsize()));
      if (!dims_.empty() && dims_.back().merges(dim)) {
        dim.size *= dims_.back().size;
        dims_.back() = dim;
      } else {
        dims_.push_back(dim);
      }
    }
  }

  Loop narrowed(size_t d, int64_t begin, int64_t end) const {
    Loop part = *this;
    LoopDim& dim = part.dims_[d];
    for (int side : {kTo, kFrom}) part.base_[side] += begin * dim.stride[side];
    for (size_t i = 0; i < indices_.size(); ++i) part.indices_[i].data += begin * dim.positions[i];
    dim.size = end - begin;
    return part;
  }

  /// Parts of a cache line are not given to different threads.
  static int64_t least_part(const LoopDim& d) noexcept {
    const int64_t bytes = std::abs(d.stride[kTo]);
    return bytes >= 64 || bytes == 0 ? 1 : 64 / bytes;
  }

  /// The longest dimension whose places differ; none if there is none that several threads can share.
  size_t dim_to_split() const noexcept {
    size_t best = dims_.size();
    int64_t most = 1;
    for (size_t d = 0; d < dims_.size(); ++d) {
      if (dims_[d].stride[kTo] == 0) continue;
      const int64_t parts = dims_[d].size / least_part(dims_[d]);
      if (parts > most) {
        most = parts;
        best = d;
      }
    }
    return best;
  }

  /// The dimension of rows: kept, and dense on as many sides as possible; none if it is dense on neither.
  size_t row_dim() const noexcept {
    size_t best = dims_.size();
    int most = 0;
    for (size_t d = 0; d < dims_.size(); ++d) {
      if (!dims_[d].kept() || dims_[d].stride[kTo] == 0) continue;
      const int dense = (dims_[d].stride[kTo] == item_) + (dims_[d].stride[kFrom] == item_);
      if (dense > most) {
        most = dense;
        best = d;
      }
    }
    return best;
  }

  /// Where each place of the innermost dimension is in another line of the cache, a panel of places goes over
  /// all positions before the next: its lines stay in the cache. Places of one line are in one panel.
  void run_panels() {
    constexpr int64_t kPanel = 128, kCacheBytes = 512 * 1024;
    const size_t d = dims_.size() - 1;
    const bool panels = !dims_.empty() && indices_.size() == 1 && dims_[d].size >= 2 * kPanel &&
                        !dims_[d].kept() && dims_[d].stride[num_to_ > 0 ? kTo : kFrom] == item_ &&
                        indices_[0].step >= kPanel * item_ &&
                        indices_[0].size * indices_[0].step > kCacheBytes;
    if (!panels) return run_part();
    for (int64_t begin = 0; begin < dims_[d].size; begin += kPanel)
      narrowed(d, begin, std::min(begin + kPanel, dims_[d].size)).run_part();
  }

  void run_part() {
    const size_t row = row_dim();
    LoopDim one;
    one.size = 1;
    one.positions.resize(indices_.size(), 0);
    const LoopDim row_of = row < dims_.size() ? dims_[row] : one;
    SmallVector<size_t, 8> kept, indexed;
    for (size_t d = 0; d < dims_.size(); ++d) {
      if (d == row) continue;
      // Only places that differ may be written in another order.
      const bool free = num_to_ == 0 || dims_[d].stride[kTo] != 0;
      (dims_[d].kept() && free ? kept : indexed).push_back(d);
    }
    int64_t positions = 1, rows = 1;
    for (const size_t d : indexed) positions *= dims_[d].size;
    for (const size_t d : kept) rows *= dims_[d].size;

    const LoopDim& inner = indexed.empty() ? one : dims_[indexed.back()];
    // A block stays in one run where runs are long, so that their positions are used in place.
    const bool runs = inner.size >= 64;
    // Elements that are read into a result without other readers are checked as they are loaded.
    const bool unchecked = call_.fresh && num_to_ == 0 && indices_.size() == 1 && indices_[0].wide &&
                           indices_[0].size > 0 && row_of.size == 1 && rows == 1 &&
                           inner.stride[kTo] == item_ && inner.positions[0] == sizeof(int64_t);
    Block block;
    for (int64_t p = 0; p < positions;) {
      const int64_t in_run = inner.size - p % inner.size;
      const int64_t n = std::min({kIndexedBlock, positions - p, runs ? in_run : kIndexedBlock});
      IndexedRows r;
      r.m = row_of.size;
      r.to_step = row_of.stride[kTo];
      r.from_step = row_of.stride[kFrom];
      find_block(block, indexed, inner, p, n, r, unchecked);
      if (unchecked && r.from_places.last >= 0) {
        if (!kernel_(r, call_.alpha)) {
          find_block(block, indexed, inner, p, n, r, false);
          kernel_(r, call_.alpha);
        }
      } else if (r.n > 0) {
        for (int64_t k = 0; k < rows; ++k) {
          int64_t offset[2] = {0, 0}, rest = k;
          for (size_t i = kept.size(); i-- > 0 && rest > 0;) {
            const LoopDim& d = dims_[kept[i]];
            for (int side : {kTo, kFrom}) offset[side] += rest % d.size * d.stride[side];
            rest /= d.size;
          }
          IndexedRows moved = r;
          moved.to += offset[kTo];
          moved.from += offset[kFrom];
          kernel_(moved, call_.alpha);
        }
      }
      p += n;
    }
  }

  struct Block {
    int64_t places[2][kIndexedBlock];
    int64_t first_values[kIndexedBlock];
    int64_t buffer[kIndexedBlock];
  };

  /// Where the rows of n positions from p on are.
  void find_block(Block& block, const SmallVector<size_t, 8>& indexed, const LoopDim& inner, int64_t p,
                  int64_t n, IndexedRows& r, bool unchecked) const {
    const bool limited = last_ >= 0;
    char* base[2] = {base_[kTo], base_[kFrom]};
    RowPlaces places[2];
    const bool one_run = n <= inner.size - p % inner.size;
    if (one_run && !limited && simple()) {
      SmallVector<const char*, 4> data = run_start(indexed, p, base);
      for (int side : {kTo, kFrom}) places[side].stride = inner.stride[side];
      for (size_t i = 0; i < indices_.size(); ++i) {
        const int side = i < num_to_ ? kTo : kFrom;
        int64_t* buffer = side == kTo ? block.buffer : block.first_values;
        places[side].step = indices_[i].step;
        if (unchecked) {
          places[side].positions = reinterpret_cast<const int64_t*>(data[i]);
          places[side].last = indices_[i].size - 1;
        } else {
          places[side].positions = checked(indices_[i], data[i], inner.positions[i], n, buffer);
        }
      }
    } else {
      for (int side : {kTo, kFrom}) {
        places[side].positions = block.places[side];
        places[side].step = 1;
      }
      for (int64_t done = 0; done < n;) {
        const int64_t length = std::min(n - done, inner.size - (p + done) % inner.size);
        find_run(block, indexed, inner, p + done, done, length);
        done += length;
      }
      if (limited) n = keep_own(block, n);
    }
    r.to = base[kTo];
    r.from = base[kFrom];
    r.to_places = places[kTo];
    r.from_places = places[kFrom];
    r.n = n;
  }

  /// At most one index on each side, of one dimension.
  bool simple() const noexcept {
    if (num_to_ > 1 || indices_.size() - num_to_ > 1) return false;
    return std::all_of(indices_.begin(), indices_.end(),
                       [](const Positions& x) { return x.by->sizes.size() == 1; });
  }

  /// Moves `base` to the first place of a run, and returns where its positions start.
  SmallVector<const char*, 4> run_start(const SmallVector<size_t, 8>& indexed, int64_t p, char** base) const {
    SmallVector<const char*, 4> data;
    for (const Positions& x : indices_) data.push_back(x.data);
    for (size_t i = indexed.size(); i-- > 0 && p > 0;) {
      const LoopDim& d = dims_[indexed[i]];
      const int64_t c = p % d.size;
      p /= d.size;
      for (int side : {kTo, kFrom}) base[side] += c * d.stride[side];
      for (size_t k = 0; k < data.size(); ++k) data[k] += c * d.positions[k];
    }
    return data;
  }

  /// The places of a run, in bytes from the first elements.
  void find_run(Block& block, const SmallVector<size_t, 8>& indexed, const LoopDim& inner, int64_t p,
                int64_t first, int64_t n) const {
    char* base[2] = {base_[kTo], base_[kFrom]};
    const SmallVector<const char*, 4> data = run_start(indexed, p, base);
    for (int side : {kTo, kFrom}) {
      int64_t* places = block.places[side] + first;
      const int64_t start = base[side] - base_[side];
      for (int64_t j = 0; j < n; ++j) places[j] = start + j * inner.stride[side];
    }
    for (size_t i = 0; i < indices_.size(); ++i) {
      const Positions& x = indices_[i];
      const int64_t* values = checked(x, data[i], inner.positions[i], n, block.buffer);
      int64_t* places = block.places[i < num_to_ ? kTo : kFrom] + first;
      for (int64_t j = 0; j < n; ++j) places[j] += x.place(values[j], item_);
      if (i == 0) std::copy(values, values + n, block.first_values + first);
    }
  }

  /// Leaves the places that this part of the loop writes.
  int64_t keep_own(Block& block, int64_t n) const noexcept {
    int64_t own = 0;
    for (int64_t j = 0; j < n; ++j) {
      block.places[kTo][own] = block.places[kTo][j];
      block.places[kFrom][own] = block.places[kFrom][j];
      own += block.first_values[j] >= first_ && block.first_values[j] < last_;
    }
    return own;
  }

  const int64_t* checked(const Positions& x, const char* p, int64_t stride, int64_t n,
                         int64_t* buffer) const {
    const int64_t* values = checked_run(x, p, stride, n, call_.wraps, buffer);
    if (!values) {
      for (const Positions& each : indices_) check(each);
    }
    return values;
  }

  const IndexedCall& call_;
  int64_t item_ = 0;
  char* base_[2] = {};
  std::vector<LoopDim> dims_;
  std::vector<Positions> indices_;  // those of `to` first
  size_t num_to_ = 0;
  IndexedKernel kernel_ = nullptr;
  int64_t first_ = 0, last_ = -1;  // the positions that this part writes at; all if last_ is negative
};

}  // namespace

void indexed(const IndexedCall& call) {
  report_kernel(call.op, "indexed");
  Loop loop(call);
  // A result without other readers is checked block by block, unless it has no elements and hence no
  // blocks.
  int64_t numel = 1;
  for (const int64_t s : call.sizes) numel *= s;
  if (!call.fresh || numel == 0) loop.check();
  loop.run();
}

}  // namespace tenon::cpu
