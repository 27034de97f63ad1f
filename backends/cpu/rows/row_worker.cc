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

// Asks for memory before it is read. GCC takes a function that does nothing else for one of no effect, and
// drops the calls of it: the asm is what it cannot look into.
inline void fetch(const char* from, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + at, 0, 2);
  asm volatile("");
}

int64_t bytes_of(expr::Type t) { return static_cast<int64_t>(expr::item_size(t)); }

}  // namespace

class RowWorker {
 public:
  RowWorker(const RowCall& call, const RowPlan& plan, std::span<char> room = {})
      : c_(call), plan_(plan), cut_(plan.cut), piece_(piece_of(call)), mem_(call, plan.cut, piece_, room) {
    for (size_t i = 0; i < c_.e.num_inputs && c_.group < c_.rows; ++i) {
      if (!c_.is_of_rows(i) && follows(i)) fetched_.push_back(i);
    }
    base_.resize(c_.operands() * static_cast<size_t>(c_.group));
    accumulators_.reserve(mem_.temps.size() / 2);
    for (size_t p = 0; c_.group > 1 && p < std::min(cut_.passes.size(), kMostStretches); ++p)
      stretches_ |= uint64_t{is_stretch(cut_.passes[p])} << p;
    for (const expr::RowPass& pass : cut_.passes) {
      for (const expr::RowReducer& r : pass.reducers)
        accumulators_.push_back(
            make_accumulator(r.kind, r.type, static_cast<size_t>(c_.panel), static_cast<size_t>(c_.group)));
    }
  }

  void run(const RowAddresses& at, int64_t begin, int64_t end) {
    at_ = at;
    is_packed_ = false;
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
    // Rows are evenly spaced up to the end of their last dimension.
    const int64_t inner = g.kept.inner();
    for (int64_t r = 0, n = 0; r < rows_; r += n) {
      n = std::min(rows_ - r, inner - (first + r) % inner);
      for (size_t i = 0; i < c_.operands(); ++i) {
        const int64_t step = g.kept.inner_stride(i);
        Bytes row = at_.data[i] + g.kept.offset(i, first + r);
        for (int64_t k = r; k < r + n; ++k, row += step)
          base_[static_cast<size_t>(k) * c_.operands() + i] = row;
      }
    }
  }

  // The next group's elements that are where the row's are in this one.
  [[gnu::noinline]] void fetch_rows(int64_t g, int64_t begin, int64_t n) const {
    for (const size_t i : fetched_)
      fetch(base(i, g) + rows_ * c_.geometry.kept.inner_stride(i) + begin * c_.item(i), n * c_.item(i));
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
    for (size_t i = 0; i < c_.e.num_inputs && c_.whole && !c_.by_places; ++i) {
      if (!mem_.buffers[i] || c_.repeated[i] || (c_.same[i] && is_packed_)) continue;
      const RowsOf dense = source({Kind::Operand, static_cast<uint16_t>(i)}, 0, c_.length);
      for (int64_t g = 0; g < (c_.same[i] ? 1 : rows_); ++g)
        pack_rows(stretch(i, 0, c_.length), base(i, g), c_.operand(i).dtype, row_of(dense, g), c_.held[i]);
    }
    is_packed_ = true;
  }
  // Places [begin, begin + n) of an operand, in one row.
  Bytes packed(size_t operand, int64_t g, int64_t begin, int64_t n) {
    pack_rows(stretch(operand, begin, n), base(operand, g), c_.operand(operand).dtype, mem_.buffers[operand],
              c_.held[operand]);
    return mem_.buffers[operand];
  }

  // One element, as kernels take those that are repeated: stored as the kernel loads it, which would wait for
  // several shorter stores.
  Bytes repeat(size_t operand, const char* element) {
    const Bytes to = mem_.buffers[operand];
    const int64_t item = c_.item(operand);
    row_kernels().fill[element_size_index(item)](to, element,
                                                 HostKernel::kRepeatedBytes / static_cast<size_t>(item));
    return to;
  }

  // Where the rows of the group have what a kernel takes or gives: `step` bytes apart from `at` on, or `step`
  // bytes after their bases; nowhere if it is packed for each row.
  struct RowsOf {
    Bytes at;
    int64_t step;
    const Bytes* bases;
  };
  RowsOf from_bases(size_t operand, int64_t begin) const {
    return {nullptr, c_.geometry.along.offset(operand, begin), &base_[operand]};
  }
  RowsOf from_kept(uint16_t k, int64_t begin) const {
    const int64_t place = lanes() * bytes_of(cut_.kept[k]);
    return {mem_.kept[k] + begin * place, c_.length * place, nullptr};
  }
  RowsOf source(const RowPlace& from, int64_t begin, int64_t n) {
    if (from.kind == Kind::Kept) return from_kept(from.index, begin);
    if (from.kind == Kind::Operand) {
      const size_t i = from.index;
      if (c_.direct[i] || c_.repeated[i]) return from_bases(i, begin);
      if (!c_.whole) return {};
      const int64_t place = lanes() * c_.item(i);
      return {mem_.buffers[i] + begin * place, c_.same[i] ? 0 : c_.length * place, nullptr};
    }
    if (from.kind == Kind::Value) return {mem_.spread[from.index], 0, nullptr};
    auto* to = reinterpret_cast<int64_t*>(mem_.position);
    for (int64_t i = 0; i < n; ++i) to = std::fill_n(to, lanes(), begin + i);
    return {mem_.position, 0, nullptr};
  }
  Bytes row_of(const RowsOf& rows, int64_t g) const {
    if (rows.bases) return rows.bases[static_cast<size_t>(g) * c_.operands()] + rows.step;
    return rows.at + g * rows.step;
  }
  // The same of an input.
  Bytes row_of(const RowsOf& rows, const RowPlace& from, int64_t g, int64_t begin, int64_t n) {
    if (!rows.bases && !rows.at) return packed(from.index, g, begin, n);
    const Bytes row = row_of(rows, g);
    return from.kind == Kind::Operand && c_.repeated[from.index] ? repeat(from.index, row) : row;
  }

  // A step's inputs, for one row after the other.
  class Inputs {
   public:
    Inputs(RowWorker& worker, const expr::RowStep& step, int64_t begin, int64_t n)
        : w_(worker), step_(step), begin_(begin), n_(n) {
      for (size_t i = 0; i < step.inputs.size(); ++i) rows_[i] = w_.source(step.inputs[i], begin, n);
    }
    void put(int64_t g, void** to) const {
      for (size_t i = 0; i < step_.inputs.size(); ++i)
        to[i] = w_.row_of(rows_[i], step_.inputs[i], g, begin_, n_);
    }

   private:
    RowWorker& w_;
    const expr::RowStep& step_;
    int64_t begin_, n_;
    RowsOf rows_[expr::kMaxSlots];
  };

  // A step's numbers; put() reads those that each row has one of.
  class Numbers {
   public:
    Numbers(const RowWorker& worker, const expr::RowStep& step) {
      for (size_t i = 0; i < step.numbers.size(); ++i) {
        const RowPlace& from = step.numbers[i];
        given_[i] = 0;
        if (from.kind == Kind::Number) {
          given_[i] = worker.at_.numbers[from.index];
        } else if (from.kind == Kind::Length) {
          given_[i] = static_cast<uint64_t>(worker.c_.length);
        } else {
          const auto size = static_cast<size_t>(bytes_of(worker.cut_.values[from.index]));
          own_[num_own_++] = {i, worker.mem_.values[from.index], size};
        }
      }
    }
    const uint64_t* put(int64_t g) {
      for (size_t i = 0; i < num_own_; ++i) {
        const Own& o = own_[i];
        std::memcpy(&given_[o.number], o.from + static_cast<size_t>(g) * o.size, o.size);
      }
      return given_;
    }

   private:
    struct Own {
      size_t number;
      const char* from;
      size_t size;
    };
    uint64_t given_[expr::kMaxSlots];
    Own own_[expr::kMaxSlots];
    size_t num_own_ = 0;
  };

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
    const RowSums& sums = plan_.sums[p];
    const bool adds =
        sums && !breaks(pass) && sums.take(static_cast<size_t>(rows_), static_cast<size_t>(c_.length));
    if (adds) {
      for (int64_t begin = 0; begin < c_.length; begin += kPiece) {
        if (begin > 0) check_stop();
        run_pieces(p, begin, std::min(kPiece, c_.length - begin), true);
      }
    } else if (plan_.elements[p] || std::any_of(pass.reducers.begin(), pass.reducers.end(), &fed_by_piece)) {
      // Piece by piece, and the rows in turn: so their sums go on side by side.
      const bool broken = breaks(pass);
      for (int64_t begin = 0, n = 0; begin < c_.length; begin += n) {
        if (begin > 0) check_stop();
        n = limit(broken, begin, std::min(piece_, c_.length - begin));
        if (plan_.elements[p]) run_pieces(p, begin, n, false);
        feed_piece(p, begin, n);
      }
    }
    // What is in memory already is reduced there.
    for (size_t r = 0; r < pass.reducers.size(); ++r) {
      const bool fed =
          fed_by_piece(pass.reducers[r]) || (adds && std::ranges::count(sums.reducers(), r) != 0);
      if (!fed) feed_whole(p, r);
      store_result(accumulator(p, r), pass.reducers[r].value);
    }
  }

  // Whether an operand's rows follow one another.
  bool follows(size_t i) const {
    const RowDims& kept = c_.geometry.kept;
    return kept.sizes.size() == 1 && c_.direct[i] && !c_.broken[i] && !c_.repeated[i] &&
           kept.inner_stride(i) == c_.length * c_.item(i);
  }
  // Whether rows follow one another in all that a pass's elements are computed of and go to, and share the
  // numbers: several rows are one stretch then.
  bool is_stretch(const expr::RowPass& pass) const {
    const auto fits = [&](const RowPlace& place) {
      switch (place.kind) {
        case Kind::Operand:
          return follows(place.index);
        case Kind::Output:
          return c_.streamed.empty() && follows(c_.e.num_inputs + place.index);
        case Kind::Reducer:
          return expr::num_operands(pass.reducers[place.index / 2].kind) == 1;
        default:
          return place.kind == Kind::Kept;
      }
    };
    const expr::RowStep& step = pass.elements;
    return !c_.across() && std::ranges::all_of(step.inputs, fits) &&
           std::ranges::all_of(step.outputs, fits) &&
           std::ranges::none_of(step.numbers, [](const RowPlace& from) { return from.kind == Kind::Value; });
  }
  bool is_stretch(size_t p, int64_t n) const {
    return n == c_.length && p < kMostStretches && (stretches_ >> p & 1) != 0;
  }

  // Of a panel, places that are read and written in place.
  void run_places(size_t p, int64_t begin, int64_t n) {
    const expr::RowStep& step = cut_.passes[p].elements;
    const size_t outs = step.outputs.size();
    const uint32_t repeated = repeated_inputs(step);
    Numbers numbers(*this, step);
    void* ptrs[expr::kMaxSlots];
    for (int64_t at = begin; at < begin + n; ++at) {
      for (size_t o = 0; o < outs; ++o) {
        const RowPlace& to = step.outputs[o];
        const auto item = static_cast<int64_t>(item_size(step.flat->outputs()[o].dtype));
        ptrs[o] = to.kind == Kind::Reducer ? mem_.temp(p, to.index) + (at - begin) * lanes_ * item
                                           : at_place(c_.e.num_inputs + to.index, at);
      }
      for (size_t i = 0; i < step.inputs.size(); ++i) ptrs[outs + i] = input_at(step.inputs[i], at);
      plan_.elements[p](ptrs, static_cast<size_t>(lanes_), numbers.put(0), repeated);
    }
  }
  Bytes at_place(size_t operand, int64_t at) const {
    return base(operand, 0) + c_.geometry.along.offset(operand, at);
  }
  Bytes input_at(const RowPlace& from, int64_t at) {
    if (from.kind == Kind::Value) return mem_.values[from.index];
    if (from.kind == Kind::Position) {
      std::fill_n(reinterpret_cast<int64_t*>(mem_.position), lanes_, at);
      return mem_.position;
    }
    const size_t i = from.index;
    const Bytes element = at_place(i, at);
    if (c_.repeated[i]) return repeat(i, element);
    if (!c_.direct[i]) {
      row_kernels().fill[element_size_index(c_.item(i))](mem_.buffers[i], element,
                                                         static_cast<size_t>(lanes_));
      return mem_.buffers[i];
    }
    return element;
  }

  uint32_t repeated_inputs(const expr::RowStep& step) const {
    uint32_t repeated = 0;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const RowPlace& from = step.inputs[i];
      if (from.kind == Kind::Operand && c_.repeated[from.index]) repeated |= 1u << (step.outputs.size() + i);
    }
    return repeated;
  }

  // A piece of every row; where it `adds`, a chunk, and the sums of it go to the reducers.
  void run_pieces(size_t p, int64_t begin, int64_t n, bool adds) {
    if (c_.by_places) return run_places(p, begin, n);
    const expr::RowStep& step = cut_.passes[p].elements;
    const RowSums& sums = plan_.sums[p];
    const size_t outs = adds ? sums.reducers().size() : step.outputs.size();
    const Inputs inputs(*this, step, begin, n);
    Numbers numbers(*this, step);
    RowsOf targets[expr::kMaxSlots];
    float chunks[expr::kMaxSlots][kMaxGroup];
    bool any_buffered = false;
    for (size_t o = 0; o < outs; ++o) {
      if (adds && sums.reducers()[o] != RowSums::kStored) {
        targets[o] = {reinterpret_cast<Bytes>(chunks[o]), sizeof(float), nullptr};
        continue;
      }
      targets[o] = target(p, step.outputs[o], begin, n);
      any_buffered = any_buffered || is_buffered(step.outputs[o]);
    }
    const uint32_t repeated = adds ? 0 : repeated_inputs(step);
    void* ptrs[expr::kMaxSlots];
    const int64_t at_once = !adds && is_stretch(p, n) ? rows_ : 1;
    const bool idle = plan_.idle[p] && !c_.across();
    for (int64_t g = 0; g < rows_; g += at_once) {
      for (size_t o = 0; o < outs; ++o) ptrs[o] = row_of(targets[o], g);
      inputs.put(g, ptrs + outs);
      if (idle) fetch_rows(g, begin, at_once * n);
      if (adds)
        sums(ptrs, static_cast<size_t>(n), numbers.put(g));
      else
        plan_.elements[p](ptrs, static_cast<size_t>(at_once * n * lanes()), numbers.put(g), repeated);
      if (any_buffered) store_buffered(step, ptrs, g, begin, n);
    }
    for (size_t o = 0; adds && o < outs; ++o) {
      if (const size_t r = sums.reducers()[o]; r != RowSums::kStored)
        accumulator(p, r).feed_chunks(chunks[o], static_cast<size_t>(rows_), c_.length <= kPiece);
    }
  }

  // Whether a result is computed in a buffer.
  bool is_buffered(const RowPlace& to) const {
    const size_t i = c_.e.num_inputs + to.index;
    return to.kind == Kind::Output && (!c_.direct[i] || streams(i));
  }
  void store_buffered(const expr::RowStep& step, void* const* ptrs, int64_t g, int64_t begin, int64_t n) {
    for (size_t o = 0; o < step.outputs.size(); ++o) {
      const size_t i = c_.e.num_inputs + step.outputs[o].index;
      if (!is_buffered(step.outputs[o])) continue;
      if (streams(i))
        row_kernels().stream(base(i, g) + c_.geometry.along.offset(i, begin), ptrs[o],
                             static_cast<size_t>(n * c_.item(i)));
      else
        unpack_rows(stretch(i, begin, n), base(i, g), c_.operand(i).dtype, static_cast<const char*>(ptrs[o]),
                    c_.held[i]);
    }
  }

  // A reducer of two operands gets them together.
  static bool fed_by_piece(const expr::RowReducer& r) {
    return r.from.kind == Kind::Reducer || expr::num_operands(r.kind) == 2;
  }

  // Where a pass puts what its reducers take, for each row of the group.
  RowsOf temp(size_t p, uint16_t index, int64_t n) const {
    const int64_t row = n * bytes_of(cut_.passes[p].reducers[index / 2].type);
    return {mem_.temp(p, index), is_stretch(p, n) ? row : mem_.temp_bytes, nullptr};
  }
  RowsOf target(size_t p, const RowPlace& to, int64_t begin, int64_t n) const {
    if (to.kind == Kind::Reducer) return temp(p, to.index, n);
    if (to.kind == Kind::Kept) return from_kept(to.index, begin);
    const size_t i = c_.e.num_inputs + to.index;
    return is_buffered(to) ? RowsOf{mem_.buffers[i], 0, nullptr} : from_bases(i, begin);
  }

  void feed_piece(size_t p, int64_t begin, int64_t n) {
    const expr::RowPass& pass = cut_.passes[p];
    const void *elements[kMaxGroup], *firsts[kMaxGroup];
    for (size_t r = 0; r < pass.reducers.size(); ++r) {
      const expr::RowReducer& reducer = pass.reducers[r];
      if (!fed_by_piece(reducer)) continue;
      const auto put = [&](const RowPlace& from, const void** to) {
        if (from.kind != Kind::Reducer) return put_rows(from, begin, n, to);
        const RowsOf rows = temp(p, from.index, n);
        for (int64_t g = 0; g < rows_; ++g) to[g] = row_of(rows, g);
      };
      put(reducer.from, elements);
      if (expr::num_operands(reducer.kind) == 2) put(reducer.first, firsts);
      accumulator(p, r).feed(elements, firsts, static_cast<size_t>(rows_), static_cast<size_t>(n),
                             begin + n == c_.length);
    }
  }
  void put_rows(const RowPlace& from, int64_t begin, int64_t n, const void** to) {
    const RowsOf rows = source(from, begin, n);
    for (int64_t g = 0; g < rows_; ++g) to[g] = row_of(rows, from, g, begin, n);
  }

  void feed_whole(size_t p, size_t r) {
    const RowPlace& from = cut_.passes[p].reducers[r].from;
    const bool piecewise = from.kind == Kind::Operand && !c_.whole && !c_.direct[from.index];
    const void* elements[kMaxGroup];
    for (int64_t at = 0; c_.by_places && at < c_.length; ++at) {
      elements[0] = input_at(from, at);
      accumulator(p, r).feed(elements, nullptr, 1, 1, at + 1 == c_.length);
    }
    if (c_.by_places) return;
    for (int64_t begin = 0, n = 0; begin < c_.length; begin += n) {
      if (begin > 0) check_stop();
      n = limit(breaks(from), begin, piecewise ? std::min(piece_, c_.length - begin) : c_.length - begin);
      put_rows(from, begin, n, elements);
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
    if (c_.by_places) return;
    const auto row = static_cast<size_t>(lanes() * bytes_of(cut_.values[value]));
    for (int64_t i = 0; i < piece_; ++i)
      std::memcpy(mem_.spread[value] + static_cast<size_t>(i) * row, mem_.values[value], row);
  }

  // What is computed once for each row, of all rows of the group.
  void row_step(size_t p) {
    const expr::RowStep& step = cut_.passes[p].rows;
    const int64_t n = c_.across() ? lanes_ : rows_;
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
    plan_.rows[p](ptrs, static_cast<size_t>(n), Numbers(*this, step).put(0));
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
    if (c_.geometry.kept.sizes.size() <= 1)
      return move(mem_.row_buffers[i], base(i, 0), c_.geometry.kept.inner_stride(i), n);
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
  bool is_packed_ = false;          // operands that are the same in all rows
  int64_t made_for_ = c_.panel;     // lanes of the accumulators
  SmallVector<size_t, 8> fetched_;  // inputs whose next rows are asked for
  static constexpr size_t kMostStretches = 64;
  uint64_t stretches_ = 0;  // a bit by pass: several rows are one stretch of elements
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
