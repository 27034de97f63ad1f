#include "backends/cpu/rows/run_rows.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/copy/convert.h"
#include "backends/cpu/ops/report.h"
#include "backends/cpu/rows/accumulator.h"
#include "backends/cpu/rows/row_geometry.h"
#include "backends/cpu/rows/row_plan.h"
#include "tenon/core/parallel.h"
#include "tenon/expr/spec.h"

namespace tenon::cpu {
namespace {

using expr::RowForm;
using expr::RowPlace;
using Kind = RowPlace::Kind;

// Elements that a kernel takes at a time: a chunk of the tree, so that a reducer closes none halfway.
constexpr int64_t kPiece = 1024;
// The same of few rows: chunks of one row are summed side by side, where those of several are not.
constexpr int64_t kLongPiece = 8 * kPiece;
constexpr int64_t kMaxLanes = 64;
// Rows that share the work of their row steps.
constexpr int64_t kMaxGroup = 64;
// Bytes of what a thread keeps of its rows from pass to pass: half of a second-level cache.
constexpr int64_t kKeptBytes = 512 << 10;
// What it reads again in later passes: little, so that it is near; but of as many rows as have their sums
// side by side, as long as those stay in the second-level cache.
constexpr int64_t kGroupBytes = 32 << 10, kFewBytes = 512 << 10, kFewRows = 4;
// Bytes of one element of what is computed for a reducer, at most.
constexpr int64_t kTempBytes = 8;
// A panel's memory that is fetched ahead, at most.
constexpr int64_t kFetchBytes = 8 << 10;
// Rows that are shorter go side by side, though that costs a transposition.
constexpr int64_t kShortRow = 192;

bool is_row(const expr::Slot& s) { return !varies_along(s.rank); }
int64_t bytes_of(expr::Type t) { return static_cast<int64_t>(expr::item_size(t)); }
int64_t round_up(int64_t bytes) { return (bytes + 127) / 128 * 128; }

/// Everything about a call that all its threads read.
struct Call {
  explicit Call(const RowsLaunch& l) : launch(l), e(l.expression), geometry(l) {
    length = geometry.along.numel();
    choose_form();
    rows = geometry.kept.numel();
    for (size_t i = 0; i < e.num_inputs; ++i) held.push_back(real_dtype(e.inputs()[i].dtype));
    for (size_t i = 0; i < e.num_outputs; ++i) held.push_back(real_dtype(e.outputs()[i].dtype));
    for (size_t i = 0; i < held.size(); ++i) {
      direct.push_back(is_direct(i));
      broken.push_back(direct[i] && length > 1 && !geometry.along.dense(i, item(i)));
    }
    int64_t packed = 0, all = 0;
    for (size_t i = 0; i < e.num_inputs; ++i) {
      if (is_row(e.inputs()[i])) continue;
      all += item(i);
      if (!direct[i]) packed += item(i);
    }
    // A panel narrower than the lanes there are, where it would not stay in the cache.
    const int64_t kept_guess = packed + 8;
    while (panel > 16 && length * panel * kept_guess > kKeptBytes) panel /= 2;
    whole = length * panel * kept_guess <= 2 * kKeptBytes;
    const int64_t row_bytes = std::max<int64_t>(length * (all + 4), 1);
    const int64_t few = std::clamp<int64_t>(kFewBytes / row_bytes, 1, kFewRows);
    group = panel > 1 ? 1 : std::clamp<int64_t>(kGroupBytes / row_bytes, few, kMaxGroup);
  }

  const RowsOperand& operand(size_t i) const {
    return i < launch.inputs.size() ? launch.inputs[i] : launch.outputs[i - launch.inputs.size()];
  }
  int64_t item(size_t i) const { return static_cast<int64_t>(item_size(held[i])); }
  bool across() const { return form == RowForm::Across; }

  const RowsLaunch& launch;
  const expr::Expression& e;
  RowGeometry geometry;
  int64_t length = 1;  // of a row
  int64_t rows = 1;    // or panels of all lanes, where lanes are split off
  RowForm form = RowForm::Along;
  int64_t panel = 1;         // lanes at a time
  int64_t group = 1;         // rows at a time, along
  bool whole = true;         // a row's packed operands stay in memory from pass to pass
  std::vector<DType> held;   // by operand: what its slot is
  std::vector<bool> direct;  // its elements are read or written where they lie
  std::vector<bool> broken;  // in runs of the innermost dimension

 private:
  // The operand whose layout decides: the first one whose elements differ in all dimensions, outputs first.
  size_t reference() const {
    for (size_t i = 0; i < e.num_outputs; ++i) {
      if (!is_row(e.outputs()[i])) return e.num_inputs + i;
    }
    for (size_t i = 0; i < e.num_inputs; ++i) {
      if (!is_row(e.inputs()[i])) return i;
    }
    return 0;
  }

  void choose_form() {
    const size_t ref = reference();
    const RowDims& kept = geometry.kept;
    const int64_t along_stride = std::abs(geometry.along.inner_stride(ref));
    size_t best = kept.sizes.size();
    for (size_t d = 0; d < kept.sizes.size(); ++d) {
      const int64_t stride = std::abs(kept.strides[ref][d]);
      if (stride == 0 || kept.sizes[d] < 8) continue;
      if (best == kept.sizes.size() || stride < std::abs(kept.strides[ref][best])) best = d;
    }
    if (best == kept.sizes.size() || length == 0) return;
    const bool inner = std::abs(kept.strides[ref][best]) < along_stride;
    if (!inner && (length >= kShortRow || kept.sizes[best] < 16)) return;
    form = RowForm::Across;
    geometry.split_lanes(best);
    panel = std::min(kMaxLanes, geometry.lanes);
  }

  bool is_direct(size_t i) const {
    const RowsOperand& o = operand(i);
    const int64_t size = item(i);
    const RowDims& along = geometry.along;
    if (o.dtype != held[i] || reinterpret_cast<uintptr_t>(o.data) % static_cast<uintptr_t>(size) != 0)
      return false;
    if (across()) return false;
    if (length <= 1 || along.dense(i, size)) return true;
    return along.inner() >= 256 && along.inner_stride(i) == size;
  }
};

/// One thread's work on a call.
class Worker {
 public:
  Worker(const Call& call, const RowPlan& plan)
      : c_(call), plan_(plan), cut_(plan.cut), count_(c_.across() ? c_.panel : c_.group) {
    piece_ = c_.across()            ? std::max<int64_t>(1, std::min(kPiece / c_.panel, c_.length))
             : c_.group >= kFewRows ? kPiece
                                    : kLongPiece;
    base_.resize(c_.held.size() * static_cast<size_t>(c_.group));
    lay_out();
  }

  /// Group `index` of rows, or panel.
  void run(int64_t index) {
    place(index);
    fetch_next();
    pack();
    for (size_t p = 0; p < cut_.passes.size(); ++p) {
      if (p > 0) elements(p);
      if (plan_.rows[p]) row_step(p);
    }
  }

 private:
  using Bytes = char*;

  // Addresses of scratch memory, all of which come from one block.
  void lay_out() {
    std::vector<std::pair<Bytes*, int64_t>> wanted;
    const int64_t lanes = c_.panel, row = c_.length * lanes;
    const auto want = [&](Bytes& b, int64_t bytes) { wanted.push_back({&b, round_up(bytes + 64)}); };
    const size_t inputs = c_.e.num_inputs, outputs = c_.e.num_outputs;
    buffers_.assign(c_.held.size(), nullptr);
    values_.assign(cut_.values.size(), nullptr);
    spread_.assign(cut_.values.size(), nullptr);
    kept_.assign(cut_.kept.size(), nullptr);
    row_buffers_.assign(c_.held.size(), nullptr);
    for (size_t i = 0; i < inputs + outputs; ++i) {
      const bool input = i < inputs, of_row = is_row(input ? c_.e.inputs()[i] : c_.e.outputs()[i - inputs]);
      if (of_row)
        want(row_buffers_[i], count_ * 8);
      else if (!c_.direct[i])
        want(buffers_[i], (input && c_.whole ? row * c_.group : piece_ * lanes) * c_.item(i));
    }
    for (size_t v = 0; v < values_.size(); ++v) {
      want(values_[v], count_ * 8);
      if (c_.across()) want(spread_[v], piece_ * lanes * bytes_of(cut_.values[v]));
    }
    for (size_t k = 0; k < kept_.size(); ++k) want(kept_[k], row * c_.group * bytes_of(cut_.kept[k]));
    want(position_, piece_ * lanes * 8);
    temps_.resize(cut_.passes.size());
    for (size_t p = 0; p < cut_.passes.size(); ++p) {
      accumulators_.emplace_back();
      for (const expr::RowReducer& r : cut_.passes[p].reducers)
        accumulators_.back().push_back(
            make_accumulator(r.kind, r.type, static_cast<size_t>(lanes), static_cast<size_t>(c_.group)));
      temps_[p].assign(2 * cut_.passes[p].reducers.size(), nullptr);
      const int64_t places = std::min(piece_, c_.length) * lanes * c_.group;
      for (Bytes& b : temps_[p]) want(b, places * kTempBytes);
    }
    int64_t total = 128;
    for (const auto& [to, bytes] : wanted) total += bytes;
    // Not of the library's allocator: what is not touched costs nothing.
    memory_ = std::make_unique_for_overwrite<char[]>(static_cast<size_t>(total));
    char* at = memory_.get() + (128 - reinterpret_cast<uintptr_t>(memory_.get()) % 128) % 128;
    for (const auto& [to, bytes] : wanted) {
      *to = at;
      at += bytes;
    }
  }

  int64_t lanes() const { return c_.across() ? lanes_ : 1; }

  // Finds the operands of the group's rows.
  void place(int64_t index) {
    const RowGeometry& g = c_.geometry;
    if (c_.across()) {
      const int64_t panels = (g.lanes + c_.panel - 1) / c_.panel;
      const int64_t first = index % panels * c_.panel;
      rows_ = 1;
      lanes_ = std::min(c_.panel, g.lanes - first);
      for (size_t i = 0; i < c_.held.size(); ++i)
        base_[i] = c_.operand(i).data + g.kept.offset(i, index / panels) + first * g.lane_strides[i];
      if (lanes_ != c_.panel || !prepared_) prepare_panel();
      return;
    }
    const int64_t first = index * c_.group;
    rows_ = std::min(c_.group, c_.rows - first);
    for (int64_t r = 0; r < rows_; ++r) {
      for (size_t i = 0; i < c_.held.size(); ++i)
        base_[static_cast<size_t>(r) * c_.held.size() + i] = c_.operand(i).data + g.kept.offset(i, first + r);
    }
  }

  // A panel of short rows is a block of memory, of which every line is missed at once: the next one is asked
  // for while this one is worked on.
  void fetch_next() const {
    for (size_t i = 0; i < c_.held.size() && c_.across(); ++i) {
      const int64_t span = lanes_ * c_.geometry.lane_strides[i];
      for (int64_t at = 0; span <= kFetchBytes && at < span; at += 64)
        __builtin_prefetch(base_[i] + span + at);
    }
  }

  // Accumulators are of a number of lanes; the last panel has fewer.
  void prepare_panel() {
    prepared_ = lanes_ == c_.panel;
    for (size_t p = 0; p < cut_.passes.size(); ++p) {
      for (size_t r = 0; r < accumulators_[p].size(); ++r) {
        const expr::RowReducer& reducer = cut_.passes[p].reducers[r];
        accumulators_[p][r] = make_accumulator(reducer.kind, reducer.type, static_cast<size_t>(lanes_), 1);
      }
    }
  }

  Bytes base(size_t operand, int64_t g) const {
    return base_[static_cast<size_t>(g) * c_.held.size() + operand];
  }

  RowStretch stretch(size_t operand, int64_t begin, int64_t n) const {
    return {c_.geometry.along, operand, begin, n, lanes(), c_.geometry.lane_strides[operand]};
  }

  void pack() {
    for (size_t i = 0; i < c_.e.num_inputs && c_.whole; ++i) {
      if (!buffers_[i]) continue;
      for (int64_t g = 0; g < rows_; ++g)
        pack_rows(stretch(i, 0, c_.length), base(i, g), c_.operand(i).dtype, buffer(i, g), c_.held[i]);
    }
  }
  Bytes buffer(size_t operand, int64_t g) const {
    return buffers_[operand] + g * c_.length * lanes() * c_.item(operand);
  }
  Bytes kept(size_t k, int64_t g) const {
    return kept_[k] + g * c_.length * lanes() * bytes_of(cut_.kept[k]);
  }

  // Places [begin, begin + n) of an operand, in the type of its slot.
  const void* input(size_t operand, int64_t g, int64_t begin, int64_t n) {
    if (c_.direct[operand]) return base(operand, g) + c_.geometry.along.offset(operand, begin);
    if (c_.whole) return buffer(operand, g) + begin * lanes() * c_.item(operand);
    pack_rows(stretch(operand, begin, n), base(operand, g), c_.operand(operand).dtype, buffers_[operand],
              c_.held[operand]);
    return buffers_[operand];
  }

  const void* element_source(const RowPlace& from, int64_t g, int64_t begin, int64_t n) {
    switch (from.kind) {
      case Kind::Operand:
        return input(from.index, g, begin, n);
      case Kind::Kept:
        return kept(from.index, g) + begin * lanes() * bytes_of(cut_.kept[from.index]);
      case Kind::Value:
        return spread_[from.index];
      case Kind::Position: {
        auto* to = reinterpret_cast<int64_t*>(position_);
        for (int64_t i = 0; i < n; ++i) to = std::fill_n(to, lanes(), begin + i);
        return position_;
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
        to[i] = c_.launch.numbers[from.index];
      } else if (from.kind == Kind::Length) {
        to[i] = static_cast<uint64_t>(c_.length);
      } else {
        const auto size = static_cast<size_t>(bytes_of(cut_.values[from.index]));
        std::memcpy(&to[i], values_[from.index] + static_cast<size_t>(g) * size, size);
      }
    }
  }

  // Where a pass may go on to without a break: not over the end of a run that is read where it lies.
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
    auto& accumulators = accumulators_[p];
    for (auto& a : accumulators) a->reset();
    if (plan_.elements[p] || std::any_of(pass.reducers.begin(), pass.reducers.end(), &fed_by_piece)) {
      // Piece by piece, and the rows in turn: so their sums go on side by side.
      const bool broken = breaks(pass);
      for (int64_t begin = 0, n = 0; begin < c_.length; begin += n) {
        n = limit(broken, begin, std::min(piece_, c_.length - begin));
        for (int64_t g = 0; g < rows_ && plan_.elements[p]; ++g) run_piece(p, g, begin, n);
        feed_piece(p, begin, n);
      }
    }
    // What lies there already is reduced as it lies.
    for (size_t r = 0; r < accumulators.size(); ++r) {
      if (pass.reducers[r].from.kind != Kind::Reducer && !fed_by_piece(pass.reducers[r])) feed_whole(p, r);
      store_result(accumulators[r].get(), pass.reducers[r].value);
    }
  }

  void run_piece(size_t p, int64_t g, int64_t begin, int64_t n) {
    const expr::RowStep& step = cut_.passes[p].elements;
    uint64_t given[expr::kMaxSlots];
    numbers(step, g, given);
    void* ptrs[expr::kMaxSlots];
    const size_t outs = step.outputs.size();
    for (size_t o = 0; o < outs; ++o) ptrs[o] = target(p, step.outputs[o], g, begin);
    for (size_t i = 0; i < step.inputs.size(); ++i)
      ptrs[outs + i] = const_cast<void*>(element_source(step.inputs[i], g, begin, n));
    plan_.elements[p](ptrs, static_cast<size_t>(n * lanes()), given);
    for (size_t o = 0; o < outs; ++o) {
      const RowPlace& to = step.outputs[o];
      const size_t i = c_.e.num_inputs + to.index;
      if (to.kind != Kind::Output || c_.direct[i]) continue;
      unpack_rows(stretch(i, begin, n), base(i, g), c_.operand(i).dtype, static_cast<const char*>(ptrs[o]),
                  c_.held[i]);
    }
  }

  // A reducer of two operands gets them together.
  static bool fed_by_piece(const expr::RowReducer& r) {
    return r.from.kind == Kind::Reducer || expr::num_operands(r.kind) == 2;
  }

  Bytes temp(size_t p, uint16_t index, int64_t g) const {
    return temps_[p][index] + g * std::min(piece_, c_.length) * kTempBytes;
  }

  void* target(size_t p, const RowPlace& to, int64_t g, int64_t begin) {
    if (to.kind == Kind::Reducer) return temp(p, to.index, g);
    if (to.kind == Kind::Kept) return kept(to.index, g) + begin * lanes() * bytes_of(cut_.kept[to.index]);
    const size_t i = c_.e.num_inputs + to.index;
    if (c_.direct[i]) return base(i, g) + c_.geometry.along.offset(i, begin);
    return buffers_[i];
  }

  void feed_piece(size_t p, int64_t begin, int64_t n) {
    const expr::RowPass& pass = cut_.passes[p];
    const void *elements[kMaxGroup], *firsts[kMaxGroup];
    for (size_t r = 0; r < pass.reducers.size(); ++r) {
      const expr::RowReducer& reducer = pass.reducers[r];
      if (!fed_by_piece(reducer)) continue;
      const auto source = [&](const RowPlace& from, int64_t g) -> const void* {
        return from.kind == Kind::Reducer ? temp(p, from.index, g) : element_source(from, g, begin, n);
      };
      const bool two = expr::num_operands(reducer.kind) == 2;
      for (int64_t g = 0; g < rows_; ++g) {
        elements[g] = source(reducer.from, g);
        firsts[g] = two ? source(reducer.first, g) : nullptr;
      }
      accumulators_[p][r]->feed(elements, firsts, static_cast<size_t>(rows_), static_cast<size_t>(n),
                                begin + n == c_.length);
    }
  }

  void feed_whole(size_t p, size_t r) {
    const RowPlace& from = cut_.passes[p].reducers[r].from;
    const bool piecewise = from.kind == Kind::Operand && !c_.whole && !c_.direct[from.index];
    const void* elements[kMaxGroup];
    for (int64_t begin = 0, n = 0; begin < c_.length; begin += n) {
      n = limit(breaks(from), begin, piecewise ? std::min(piece_, c_.length - begin) : c_.length - begin);
      for (int64_t g = 0; g < rows_; ++g) elements[g] = element_source(from, g, begin, n);
      accumulators_[p][r]->feed(elements, nullptr, static_cast<size_t>(rows_), static_cast<size_t>(n),
                                begin + n == c_.length);
    }
  }

  void store_result(const Accumulator* a, uint16_t value) {
    a->result(values_[value], static_cast<size_t>(rows_));
    if (c_.across()) spread(value);
  }

  // Repeats the lanes' values along a piece.
  void spread(size_t value) {
    const auto row = static_cast<size_t>(lanes() * bytes_of(cut_.values[value]));
    for (int64_t i = 0; i < piece_; ++i)
      std::memcpy(spread_[value] + static_cast<size_t>(i) * row, values_[value], row);
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
      ptrs[o] = to.kind == Kind::Value ? values_[to.index] : row_buffers_[c_.e.num_inputs + to.index];
    }
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const RowPlace& from = step.inputs[i];
      if (from.kind == Kind::Operand) move_rows(from.index, n, true);
      ptrs[outs + i] = from.kind == Kind::Value ? values_[from.index] : row_buffers_[from.index];
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
    if (c_.across()) return move(row_buffers_[i], base(i, 0), c_.geometry.lane_strides[i], n);
    for (int64_t r = 0; r < n; ++r) move(row_buffers_[i] + r * item, base(i, r), 0, 1);
  }

  const Call& c_;
  const RowPlan& plan_;
  const expr::RowPasses& cut_;
  int64_t count_;      // values of rows at a time, at most
  int64_t piece_ = 1;  // places that a kernel takes at a time, at most
  int64_t rows_ = 0, lanes_ = 1;
  bool prepared_ = false;
  std::unique_ptr<char[]> memory_;
  std::vector<Bytes> base_;         // by row of the group and operand
  std::vector<Bytes> buffers_;      // by operand: packed elements
  std::vector<Bytes> row_buffers_;  // by operand: values of rows
  std::vector<Bytes> values_, spread_, kept_;
  std::vector<std::vector<Bytes>> temps_;  // by pass: what is computed for reducers
  Bytes position_ = nullptr;
  std::vector<std::vector<std::unique_ptr<Accumulator>>> accumulators_;
};

RowPlans& plans_of(const RowsLaunch& launch) {
  if (void* known = launch.made.load(std::memory_order_acquire)) return *static_cast<RowPlans*>(known);
  auto fresh = std::make_unique<RowPlans>(launch.expression);
  void* present = nullptr;
  if (launch.made.compare_exchange_strong(present, fresh.get(), std::memory_order_acq_rel))
    return *fresh.release();
  return *static_cast<RowPlans*>(present);  // another thread was first
}

}  // namespace

void run_rows(const RowsLaunch& launch) {
  report_kernel(launch.name, TENON_KERNEL_NAMES("rows"));
  const Call call(launch);
  if (call.rows == 0 || call.geometry.lanes == 0) return;
  const RowPlan& plan = plans_of(launch).get(call.form, call.whole);
  const int64_t panels = (call.geometry.lanes + call.panel - 1) / call.panel;
  const int64_t units = call.across() ? call.rows * panels : (call.rows + call.group - 1) / call.group;
  const int64_t elements = std::max<int64_t>(1, call.length * (call.across() ? call.panel : call.group));
  parallel_for(0, units, std::max<int64_t>(1, (1 << 14) / elements), [&](int64_t begin, int64_t end) {
    Worker worker(call, plan);
    for (int64_t unit = begin; unit < end; ++unit) worker.run(unit);
  });
}

}  // namespace tenon::cpu
