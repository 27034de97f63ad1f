#include "backends/cpu/rows/row_worker.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/copy/convert.h"
#include "backends/cpu/copy/row_kernels.h"
#include "backends/cpu/rows/accumulator.h"
#include "backends/cpu/rows/row_scratch.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {
namespace {

using expr::RowPlace;
using Kind = RowPlace::Kind;

// Elements that a kernel takes at a time: a chunk of the tree, so that a reducer closes none halfway.
constexpr int64_t kPiece = 1024;
// The same of few rows: chunks of one row are summed side by side, where those of several are not.
constexpr int64_t kLongPiece = 8 * kPiece;
// The same of panels, whose pieces are a few places: more of them cost fewer calls.
constexpr int64_t kPanelPiece = 4 * kPiece;
// A panel's memory that is fetched ahead, at most.
constexpr int64_t kFetchBytes = 8 << 10;

int64_t bytes_of(expr::Type t) { return static_cast<int64_t>(expr::item_size(t)); }

}  // namespace

class RowWorker {
 public:
  RowWorker(const RowCall& call, const RowPlan& plan, std::span<char> room = {})
      : c_(call), plan_(plan), cut_(plan.cut), piece_(piece_of(call)), mem_(call, plan.cut, piece_, room) {
    base_.resize(c_.operands() * static_cast<size_t>(c_.group));
    accumulators_.reserve(mem_.temps.size() / 2);
    for (const expr::RowPass& pass : cut_.passes) {
      for (const expr::RowReducer& r : pass.reducers)
        accumulators_.push_back(
            make_accumulator(r.kind, r.type, static_cast<size_t>(c_.panel), static_cast<size_t>(c_.group)));
    }
  }

  void run(const RowAddresses& at, int64_t begin, int64_t end) {
    at_ = at;
    streams_ = !c_.streamed.empty() && !writes_inputs();
    for (int64_t unit = begin; unit < end; ++unit) run(unit);
    if (streams_) row_kernels().end_stream();
  }
  bool is_small() const { return mem_.is_small(); }

 private:
  using Bytes = char*;

  // Group `index` of rows, or panel.
  void run(int64_t index) {
    place(index);
    fetch_next();
    pack();
    for (size_t p = 0; p < cut_.passes.size(); ++p) {
      if (p > 0) elements(p);
      if (plan_.rows[p]) row_step(p);
    }
  }

  // Whether some result shares memory with an operand.
  bool writes_inputs() const {
    char* const* const outputs = at_.data + c_.e.num_inputs;
    return std::any_of(at_.data, outputs, [&](const char* input) {
      return std::find(outputs, at_.data + c_.operands(), input) != at_.data + c_.operands();
    });
  }
  bool streams(size_t operand) const { return streams_ && c_.streamed[operand]; }

  static int64_t piece_of(const RowCall& c) {
    if (c.across()) return std::max<int64_t>(1, std::min(kPanelPiece / c.panel, c.length));
    return c.group >= kFewRows ? kPiece : kLongPiece;
  }

  int64_t lanes() const { return c_.across() ? lanes_ : 1; }

  // Finds the operands of the group's rows.
  void place(int64_t index) {
    const RowGeometry& g = c_.geometry;
    if (c_.across()) {
      const int64_t panels = c_.panels();
      const int64_t first = index % panels * c_.panel;
      rows_ = 1;
      lanes_ = std::min(c_.panel, g.lanes - first);
      for (size_t i = 0; i < c_.operands(); ++i)
        base_[i] = at_.data[i] + g.kept.offset(i, index / panels) + first * g.lane_strides[i];
      if (lanes_ != made_for_) prepare_panel();
      return;
    }
    const int64_t first = index * c_.group;
    rows_ = std::min(c_.group, c_.rows - first);
    for (int64_t r = 0; r < rows_; ++r) {
      for (size_t i = 0; i < c_.operands(); ++i)
        base_[static_cast<size_t>(r) * c_.operands() + i] = at_.data[i] + g.kept.offset(i, first + r);
    }
  }

  // A panel of short rows is a block of memory whose every line is missed at once: the next one is asked
  // for while this one is worked on.
  void fetch_next() const {
    for (size_t i = 0; i < c_.operands() && c_.across(); ++i) {
      const int64_t span = lanes_ * c_.geometry.lane_strides[i];
      for (int64_t at = 0; span <= kFetchBytes && at < span; at += 64)
        __builtin_prefetch(base_[i] + span + at);
    }
  }

  // Accumulators are of a number of lanes; the last panel has fewer.
  void prepare_panel() {
    made_for_ = lanes_;
    size_t next = 0;
    for (const expr::RowPass& pass : cut_.passes) {
      for (const expr::RowReducer& r : pass.reducers)
        accumulators_[next++] = make_accumulator(r.kind, r.type, static_cast<size_t>(lanes_), 1);
    }
  }

  Bytes base(size_t operand, int64_t g) const {
    return base_[static_cast<size_t>(g) * c_.operands() + operand];
  }

  RowStretch stretch(size_t operand, int64_t begin, int64_t n) const {
    return {c_.geometry.along, operand, begin, n, lanes(), c_.geometry.lane_strides[operand]};
  }

  void pack() {
    for (size_t i = 0; i < c_.e.num_inputs && c_.whole; ++i) {
      if (!mem_.buffers[i] || c_.repeated[i]) continue;
      for (int64_t g = 0; g < rows_; ++g)
        pack_rows(stretch(i, 0, c_.length), base(i, g), c_.operand(i).dtype, buffer(i, g), c_.held[i]);
    }
  }
  Bytes buffer(size_t operand, int64_t g) const {
    return mem_.buffers[operand] + g * c_.length * lanes() * c_.item(operand);
  }
  Bytes kept(size_t k, int64_t g) const {
    return mem_.kept[k] + g * c_.length * lanes() * bytes_of(cut_.kept[k]);
  }

  // Places [begin, begin + n) of an operand, in the type of its slot.
  const void* input(size_t operand, int64_t g, int64_t begin, int64_t n) {
    const Bytes first =
        base(operand, g) +
        (c_.direct[operand] || c_.repeated[operand] ? c_.geometry.along.offset(operand, begin) : 0);
    if (c_.direct[operand]) return first;
    if (c_.repeated[operand]) return repeat(operand, first);
    if (c_.whole) return buffer(operand, g) + begin * lanes() * c_.item(operand);
    pack_rows(stretch(operand, begin, n), base(operand, g), c_.operand(operand).dtype, mem_.buffers[operand],
              c_.held[operand]);
    return mem_.buffers[operand];
  }

  // One element, as kernels take those that are repeated.
  const void* repeat(size_t operand, const char* element) {
    const Bytes to = mem_.buffers[operand];
    if (c_.item(operand) == 4)
      repeat_as<uint32_t>(to, element);
    else
      repeat_as<uint64_t>(to, element);
    return to;
  }
  template <class T>
  static void repeat_as(Bytes to, const char* element) {
    T value;
    std::memcpy(&value, element, sizeof value);
    T all[HostKernel::kRepeatedBytes / sizeof(T)];
    std::fill(std::begin(all), std::end(all), value);
    std::memcpy(to, all, sizeof all);
  }

  const void* element_source(const RowPlace& from, int64_t g, int64_t begin, int64_t n) {
    switch (from.kind) {
      case Kind::Operand:
        return input(from.index, g, begin, n);
      case Kind::Kept:
        return kept(from.index, g) + begin * lanes() * bytes_of(cut_.kept[from.index]);
      case Kind::Value:
        return mem_.spread[from.index];
      case Kind::Position: {
        auto* to = reinterpret_cast<int64_t*>(mem_.position);
        for (int64_t i = 0; i < n; ++i) to = std::fill_n(to, lanes(), begin + i);
        return mem_.position;
      }
      default:
        return nullptr;
    }
  }

  void numbers(const expr::RowStep& step, int64_t g, uint64_t* to) const {
    for (size_t i = 0; i < step.numbers.size(); ++i) {
      const RowPlace& from = step.numbers[i];
      to[i] = 0;
      if (from.kind == Kind::Number) {
        to[i] = at_.numbers[from.index];
      } else if (from.kind == Kind::Length) {
        to[i] = static_cast<uint64_t>(c_.length);
      } else {
        const auto size = static_cast<size_t>(bytes_of(cut_.values[from.index]));
        std::memcpy(&to[i], mem_.values[from.index] + static_cast<size_t>(g) * size, size);
      }
    }
  }

  // Where a pass may go on to without a break: not over the end of a run that is read in place.
  int64_t limit(bool breaks, int64_t begin, int64_t n) const {
    const int64_t run = c_.geometry.along.inner();
    return breaks ? std::min(n, run - begin % run) : n;
  }
  bool breaks(const RowPlace& place) const {
    if (place.kind == Kind::Operand) return c_.broken[place.index];
    return place.kind == Kind::Output && c_.broken[c_.e.num_inputs + place.index];
  }
  bool breaks(const expr::RowPass& pass) const {
    const auto any = [&](const std::vector<RowPlace>& list) {
      return std::any_of(list.begin(), list.end(), [&](const RowPlace& p) { return breaks(p); });
    };
    if (any(pass.elements.inputs) || any(pass.elements.outputs)) return true;
    return std::any_of(pass.reducers.begin(), pass.reducers.end(), [&](const expr::RowReducer& r) {
      return fed_by_piece(r) && (breaks(r.from) || breaks(r.first));
    });
  }

  // The elements of the group's rows, or of a panel, in one pass.
  void elements(size_t p) {
    const expr::RowPass& pass = cut_.passes[p];
    for (size_t r = 0; r < pass.reducers.size(); ++r) accumulator(p, r).reset();
    if (plan_.sums[p] && !breaks(pass)) {
      for (int64_t begin = 0; begin < c_.length; begin += kPiece) {
        if (begin > 0) check_stop();
        sum_piece(p, begin, std::min(kPiece, c_.length - begin));
      }
    } else if (plan_.elements[p] || std::any_of(pass.reducers.begin(), pass.reducers.end(), &fed_by_piece)) {
      // Piece by piece, and the rows in turn: so their sums go on side by side.
      const bool broken = breaks(pass);
      for (int64_t begin = 0, n = 0; begin < c_.length; begin += n) {
        if (begin > 0) check_stop();
        n = limit(broken, begin, std::min(piece_, c_.length - begin));
        for (int64_t g = 0; g < rows_ && plan_.elements[p]; ++g) run_piece(p, g, begin, n);
        feed_piece(p, begin, n);
      }
    }
    // What is in memory already is reduced there.
    for (size_t r = 0; r < pass.reducers.size(); ++r) {
      if (pass.reducers[r].from.kind != Kind::Reducer && !fed_by_piece(pass.reducers[r])) feed_whole(p, r);
      store_result(accumulator(p, r), pass.reducers[r].value);
    }
  }

  void run_piece(size_t p, int64_t g, int64_t begin, int64_t n) {
    const expr::RowStep& step = cut_.passes[p].elements;
    uint64_t given[expr::kMaxSlots];
    numbers(step, g, given);
    void* ptrs[expr::kMaxSlots];
    const size_t outs = step.outputs.size();
    for (size_t o = 0; o < outs; ++o) ptrs[o] = target(p, step.outputs[o], g, begin);
    uint32_t repeated = 0;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const RowPlace& from = step.inputs[i];
      ptrs[outs + i] = const_cast<void*>(element_source(from, g, begin, n));
      if (from.kind == Kind::Operand && c_.repeated[from.index]) repeated |= 1u << (outs + i);
    }
    plan_.elements[p](ptrs, static_cast<size_t>(n * lanes()), given, repeated);
    for (size_t o = 0; o < outs; ++o) {
      const RowPlace& to = step.outputs[o];
      const size_t i = c_.e.num_inputs + to.index;
      if (to.kind != Kind::Output || (c_.direct[i] && !streams(i))) continue;
      if (streams(i))
        row_kernels().stream(base(i, g) + c_.geometry.along.offset(i, begin), ptrs[o],
                             static_cast<size_t>(n * c_.item(i)));
      else
        unpack_rows(stretch(i, begin, n), base(i, g), c_.operand(i).dtype, static_cast<const char*>(ptrs[o]),
                    c_.held[i]);
    }
  }

  // A chunk of every row; only sums are kept.
  void sum_piece(size_t p, int64_t begin, int64_t n) {
    const expr::RowStep& step = cut_.passes[p].elements;
    const size_t outs = step.outputs.size();
    float sums[expr::kMaxSlots][kMaxGroup];
    for (int64_t g = 0; g < rows_; ++g) {
      uint64_t given[expr::kMaxSlots];
      numbers(step, g, given);
      void* ptrs[expr::kMaxSlots];
      for (size_t o = 0; o < outs; ++o) ptrs[o] = &sums[o][g];
      for (size_t i = 0; i < step.inputs.size(); ++i)
        ptrs[outs + i] = const_cast<void*>(element_source(step.inputs[i], g, begin, n));
      plan_.sums[p](ptrs, static_cast<size_t>(n), given, 0);
    }
    for (size_t o = 0; o < outs; ++o)
      accumulator(p, step.outputs[o].index / 2)
          .feed_chunks(sums[o], static_cast<size_t>(rows_), c_.length <= kPiece);
  }

  // A reducer of two operands gets them together.
  static bool fed_by_piece(const expr::RowReducer& r) {
    return r.from.kind == Kind::Reducer || expr::num_operands(r.kind) == 2;
  }

  void* target(size_t p, const RowPlace& to, int64_t g, int64_t begin) {
    if (to.kind == Kind::Reducer) return mem_.temp(p, to.index, g);
    if (to.kind == Kind::Kept) return kept(to.index, g) + begin * lanes() * bytes_of(cut_.kept[to.index]);
    const size_t i = c_.e.num_inputs + to.index;
    if (c_.direct[i] && !streams(i)) return base(i, g) + c_.geometry.along.offset(i, begin);
    return mem_.buffers[i];
  }

  void feed_piece(size_t p, int64_t begin, int64_t n) {
    const expr::RowPass& pass = cut_.passes[p];
    const void *elements[kMaxGroup], *firsts[kMaxGroup];
    for (size_t r = 0; r < pass.reducers.size(); ++r) {
      const expr::RowReducer& reducer = pass.reducers[r];
      if (!fed_by_piece(reducer)) continue;
      const auto source = [&](const RowPlace& from, int64_t g) -> const void* {
        return from.kind == Kind::Reducer ? mem_.temp(p, from.index, g) : element_source(from, g, begin, n);
      };
      const bool two = expr::num_operands(reducer.kind) == 2;
      for (int64_t g = 0; g < rows_; ++g) {
        elements[g] = source(reducer.from, g);
        firsts[g] = two ? source(reducer.first, g) : nullptr;
      }
      accumulator(p, r).feed(elements, firsts, static_cast<size_t>(rows_), static_cast<size_t>(n),
                             begin + n == c_.length);
    }
  }

  void feed_whole(size_t p, size_t r) {
    const RowPlace& from = cut_.passes[p].reducers[r].from;
    const bool piecewise = from.kind == Kind::Operand && !c_.whole && !c_.direct[from.index];
    const void* elements[kMaxGroup];
    for (int64_t begin = 0, n = 0; begin < c_.length; begin += n) {
      if (begin > 0) check_stop();
      n = limit(breaks(from), begin, piecewise ? std::min(piece_, c_.length - begin) : c_.length - begin);
      for (int64_t g = 0; g < rows_; ++g) elements[g] = element_source(from, g, begin, n);
      accumulator(p, r).feed(elements, nullptr, static_cast<size_t>(rows_), static_cast<size_t>(n),
                             begin + n == c_.length);
    }
  }

  void store_result(const Accumulator& a, uint16_t value) {
    a.result(mem_.values[value], static_cast<size_t>(rows_));
    if (c_.across()) spread(value);
  }

  // Repeats the lanes' values along a piece.
  void spread(size_t value) {
    const auto row = static_cast<size_t>(lanes() * bytes_of(cut_.values[value]));
    for (int64_t i = 0; i < piece_; ++i)
      std::memcpy(mem_.spread[value] + static_cast<size_t>(i) * row, mem_.values[value], row);
  }

  // What is computed once for each row, of all rows of the group.
  void row_step(size_t p) {
    const expr::RowStep& step = cut_.passes[p].rows;
    const int64_t n = c_.across() ? lanes_ : rows_;
    uint64_t given[expr::kMaxSlots];
    numbers(step, 0, given);
    void* ptrs[expr::kMaxSlots];
    const size_t outs = step.outputs.size();
    for (size_t o = 0; o < outs; ++o) {
      const RowPlace& to = step.outputs[o];
      ptrs[o] = to.kind == Kind::Value ? mem_.values[to.index] : mem_.row_buffers[c_.e.num_inputs + to.index];
    }
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const RowPlace& from = step.inputs[i];
      if (from.kind == Kind::Operand) move_rows(from.index, n, true);
      ptrs[outs + i] = from.kind == Kind::Value ? mem_.values[from.index] : mem_.row_buffers[from.index];
    }
    plan_.rows[p](ptrs, static_cast<size_t>(n), given);
    for (const RowPlace& to : step.outputs) {
      if (to.kind == Kind::Output) move_rows(c_.e.num_inputs + to.index, n, false);
      if (to.kind == Kind::Value && c_.across()) spread(to.index);
    }
  }

  // One value of each row, to dense memory or from it.
  void move_rows(size_t i, int64_t n, bool in) {
    const RowsOperand& o = c_.operand(i);
    const ConvertFn convert = in ? convert_fn(o.dtype, c_.held[i]) : convert_fn(c_.held[i], o.dtype);
    const int64_t item = c_.item(i);
    const auto move = [&](Bytes dense, Bytes at, int64_t stride, int64_t count) {
      if (in)
        convert(dense, {item, 0}, at, {stride, 0}, count, 1);
      else
        convert(at, {stride, 0}, dense, {item, 0}, count, 1);
    };
    if (c_.across()) return move(mem_.row_buffers[i], base(i, 0), c_.geometry.lane_strides[i], n);
    for (int64_t r = 0; r < n; ++r) move(mem_.row_buffers[i] + r * item, base(i, r), 0, 1);
  }

  Accumulator& accumulator(size_t p, size_t r) { return *accumulators_[mem_.first_reducer[p] + r]; }

  const RowCall& c_;
  const RowPlan& plan_;
  const expr::RowPasses& cut_;
  const int64_t piece_;  // places that a kernel takes at a time, at most
  RowAddresses at_{};
  bool streams_ = false;  // results that may go past the caches do
  int64_t rows_ = 0, lanes_ = 1;
  int64_t made_for_ = c_.panel;  // lanes of the accumulators
  RowScratch mem_;
  SmallVector<Bytes, 16> base_;                             // by row of the group and operand
  std::vector<std::unique_ptr<Accumulator>> accumulators_;  // by pass and reducer
};

void run_row_units(const RowCall& call, const RowPlan& plan, const RowAddresses& at, int64_t begin,
                   int64_t end) {
  alignas(RowScratch::kAlign) char room[RowScratch::kSmall];
  RowWorker(call, plan, room).run(at, begin, end);
}

SpareRowWorker::~SpareRowWorker() { delete spare_.load(std::memory_order_acquire); }

void SpareRowWorker::run(const RowCall& call, const RowPlan& plan, const RowAddresses& at, int64_t begin,
                         int64_t end) {
  std::unique_ptr<RowWorker> worker(spare_.exchange(nullptr, std::memory_order_acquire));
  if (!worker) worker = std::make_unique<RowWorker>(call, plan);
  worker->run(at, begin, end);
  RowWorker* none = nullptr;
  if (worker->is_small() && spare_.compare_exchange_strong(none, worker.get(), std::memory_order_release,
                                                           std::memory_order_relaxed))
    (void)worker.release();
}

}  // namespace tenon::cpu
