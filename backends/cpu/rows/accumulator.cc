#include "backends/cpu/rows/accumulator.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "backends/cpu/reduce/arg_reduce.h"
#include "backends/cpu/reduce/factors.h"
#include "backends/cpu/reduce/reduce.h"
#include "tenon/core/error.h"

namespace tenon::cpu {
namespace {

using expr::ReduceKind;
using expr::Type;

ReduceOp op_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::Sum:
      return ReduceOp::Sum;
    case ReduceKind::Prod:
      return ReduceOp::Prod;
    case ReduceKind::Min:
    case ReduceKind::All:
    case ReduceKind::ArgMin:
      return ReduceOp::Min;
    default:
      return ReduceOp::Max;
  }
}

template <class T>
class AlongTree final : public Accumulator {
 public:
  AlongTree(ReduceOp op, size_t rows) : state_(op, rows) {}
  void reset() final { state_.reset(); }
  void feed(const void* const* elements, const void* const*, size_t rows, size_t places, bool last) final {
    state_.feed(reinterpret_cast<const T* const*>(elements), rows, places, last);
  }
  void feed_chunks(const float* chunks, size_t rows, bool only) final {
    if constexpr (std::is_same_v<T, float>)
      state_.feed_chunks(chunks, rows, only);
    else
      Accumulator::feed_chunks(chunks, rows, only);
  }
  void result(void* values, size_t rows) const final { state_.result(static_cast<T*>(values), rows); }

 private:
  RowsReducer<T> state_;
};

template <class T>
class AcrossTree final : public Accumulator {
 public:
  AcrossTree(ReduceOp op, size_t lanes) : op_(op), lanes_(lanes) {
    strips_.reserve((lanes + kReduceStrip - 1) / kReduceStrip);
    for (size_t j = 0; j < std::max<size_t>(lanes, 1); j += kReduceStrip) strips_.emplace_back(op, lanes - j);
  }
  void reset() final {
    fed_ = whole_ = false;
    for (OuterReducer<T>& strip : strips_) strip.reset();
  }
  void feed(const void* const* elements, const void* const*, size_t, size_t places, bool last) final {
    const auto* p = static_cast<const T*>(elements[0]);
    const auto stride = static_cast<ptrdiff_t>(lanes_);
    whole_ =
        last && !fed_ && strips_.size() == 1 && reduce_short_strip(op_, p, stride, places, values_, lanes_);
    fed_ = true;
    for (size_t k = 0; k < strips_.size() && !whole_; ++k)
      strips_[k].feed(p + k * kReduceStrip, stride, places);
  }
  void result(void* values, size_t) const final {
    auto* to = static_cast<T*>(values);
    if (whole_) std::copy_n(values_, lanes_, to);
    for (size_t k = 0; k < strips_.size() && !whole_; ++k) strips_[k].result(to + k * kReduceStrip);
  }

 private:
  ReduceOp op_;
  size_t lanes_;
  bool fed_ = false, whole_ = false;  // all of a short row came at once: that is the result
  T values_[kReduceStrip];
  std::vector<OuterReducer<T>> strips_;
};

template <class T>
std::unique_ptr<Accumulator> make_tree(ReduceOp op, size_t lanes, size_t rows) {
  if (lanes == 1) return std::make_unique<AlongTree<T>>(op, rows);
  return std::make_unique<AcrossTree<T>>(op, lanes);
}

/// A product by the tree, and its factors in case that is NaN.
template <class T>
class Product final : public Accumulator {
 public:
  Product(size_t lanes, size_t rows)
      : lanes_(lanes),
        tree_(make_tree<T>(ReduceOp::Prod, lanes, rows)),
        kept_(rows),
        factors_(lanes * rows) {}
  void reset() final {
    tree_->reset();
    for (std::vector<T>& row : kept_) row.clear();
    std::fill(factors_.begin(), factors_.end(), Factors<T>());
  }
  void feed(const void* const* elements, const void* const* firsts, size_t rows, size_t places,
            bool last) final {
    tree_->feed(elements, firsts, rows, places, last);
    for (size_t r = 0; r < rows; ++r) {
      const auto* p = static_cast<const T*>(elements[r]);
      kept_[r].insert(kept_[r].end(), p, p + places * lanes_);
      if (kept_[r].size() < kMostKept) continue;
      multiply(kept_[r], factors_.data() + r * lanes_);
      kept_[r].clear();
    }
  }
  void result(void* values, size_t rows) const final {
    tree_->result(values, rows);
    auto* products = static_cast<T*>(values);
    const auto is_nan = [](T x) { return x != x; };
    for (size_t r = 0; r < rows; ++r, products += lanes_) {
      if (std::none_of(products, products + lanes_, is_nan)) continue;
      std::vector<Factors<T>> factors(factors_.data() + r * lanes_, factors_.data() + (r + 1) * lanes_);
      multiply(kept_[r], factors.data());
      for (size_t l = 0; l < lanes_; ++l) products[l] = factors[l].resolve(products[l]);
    }
  }

 private:
  /// Elements of a row that are copied before they are multiplied: few rows are NaN, and a copy is cheap.
  static constexpr size_t kMostKept = 1 << 14;

  void multiply(const std::vector<T>& row, Factors<T>* factors) const {
    for (size_t i = 0; i < row.size(); ++i) factors[i % lanes_].add(row[i]);
  }

  size_t lanes_;
  std::unique_ptr<Accumulator> tree_;
  std::vector<std::vector<T>> kept_;
  std::vector<Factors<T>> factors_;
};

/// Whether `x` is more extreme than what was found: NaN is, once.
template <class T>
bool beats(ReduceOp op, T x, T best) {
  if constexpr (std::is_floating_point_v<T>) {
    if (best != best) return false;
    if (x != x) return true;
  }
  return op == ReduceOp::Max ? x > best : x < best;
}

template <class T>
class Places final : public Accumulator {
 public:
  Places(ReduceOp op, size_t lanes, size_t rows)
      : op_(op), lanes_(lanes), best_(lanes * rows), index_(lanes * rows) {
    reset();
  }
  void reset() final {
    fed_ = 0;
    std::fill(index_.begin(), index_.end(), 0);
  }
  void feed(const void* const* elements, const void* const*, size_t rows, size_t places, bool) final {
    if (places == 0) return;
    for (size_t r = 0; r < rows; ++r) {
      const auto* p = static_cast<const T*>(elements[r]);
      if (lanes_ == 1)
        one_row(p, r, places);
      else
        side_by_side(p, r, places);
    }
    fed_ += static_cast<int64_t>(places);
  }
  void result(void* values, size_t rows) const final {
    std::copy_n(index_.begin(), rows * lanes_, static_cast<int64_t*>(values));
  }

 private:
  void one_row(const T* p, size_t r, size_t places) {
    const ArgResult<T> found = arg_reduce_contiguous(op_, p, places);
    if (fed_ != 0 && !beats(op_, found.value, best_[r])) return;
    best_[r] = found.value;
    index_[r] = fed_ + found.index;
  }
  void side_by_side(const T* p, size_t r, size_t places) {
    T* best = best_.data() + r * lanes_;
    int64_t* index = index_.data() + r * lanes_;
    for (size_t i = 0; i < places; ++i, p += lanes_) {
      const int64_t place = fed_ + static_cast<int64_t>(i);
      for (size_t l = 0; l < lanes_; ++l) {
        if (place != 0 && !beats(op_, p[l], best[l])) continue;
        best[l] = p[l];
        index[l] = place;
      }
    }
  }

  ReduceOp op_;
  size_t lanes_;
  int64_t fed_ = 0;
  std::vector<T> best_;
  std::vector<int64_t> index_;
};

template <class T>
class First final : public Accumulator {
 public:
  First(size_t lanes, size_t rows) : lanes_(lanes), found_(lanes * rows), value_(lanes * rows) { reset(); }
  void reset() final {
    std::fill(found_.begin(), found_.end(), uint8_t{0});
    std::fill(value_.begin(), value_.end(), T{0});
  }
  void feed(const void* const* elements, const void* const* masks, size_t rows, size_t places, bool) final {
    for (size_t r = 0; r < rows; ++r) {
      const auto* p = static_cast<const T*>(elements[r]);
      const auto* m = static_cast<const int32_t*>(masks[r]);
      uint8_t* found = found_.data() + r * lanes_;
      for (size_t i = 0; i < places; ++i, p += lanes_, m += lanes_) {
        for (size_t l = 0; l < lanes_; ++l) {
          if (m[l] == 0 || found[l] != 0) continue;
          found[l] = 1;
          value_[r * lanes_ + l] = p[l];
        }
      }
    }
  }
  void result(void* values, size_t rows) const final {
    std::copy_n(value_.begin(), rows * lanes_, static_cast<T*>(values));
  }

 private:
  size_t lanes_;
  std::vector<uint8_t> found_;
  std::vector<T> value_;
};

/// One part of the product of complex numbers: `elements` are their imaginary parts.
template <class T>
class ComplexProduct final : public Accumulator {
 public:
  ComplexProduct(bool imaginary, size_t lanes, size_t rows)
      : imaginary_(imaginary), lanes_(lanes), re_(lanes * rows), im_(lanes * rows) {
    reset();
  }
  void reset() final {
    std::fill(re_.begin(), re_.end(), T(1));
    std::fill(im_.begin(), im_.end(), T(0));
  }
  void feed(const void* const* elements, const void* const* firsts, size_t rows, size_t places, bool) final {
    for (size_t r = 0; r < rows; ++r) {
      const auto *c = static_cast<const T*>(firsts[r]), *d = static_cast<const T*>(elements[r]);
      T *re = re_.data() + r * lanes_, *im = im_.data() + r * lanes_;
      for (size_t i = 0; i < places; ++i, c += lanes_, d += lanes_) {
        for (size_t l = 0; l < lanes_; ++l) {
          const T next = re[l] * c[l] - im[l] * d[l];
          im[l] = re[l] * d[l] + im[l] * c[l];
          re[l] = next;
        }
      }
    }
  }
  void result(void* values, size_t rows) const final {
    std::copy_n((imaginary_ ? im_ : re_).begin(), rows * lanes_, static_cast<T*>(values));
  }

 private:
  bool imaginary_;
  size_t lanes_;
  std::vector<T> re_, im_;
};

/// Any of nothing is false and all of it true, whatever identity numbers have.
class Truth final : public Accumulator {
 public:
  Truth(ReduceKind kind, size_t lanes, size_t rows)
      : lanes_(lanes),
        all_(kind == ReduceKind::All),
        tree_(make_accumulator(all_ ? ReduceKind::Min : ReduceKind::Max, Type::I32, lanes, rows)) {}
  void reset() final {
    tree_->reset();
    fed_ = false;
  }
  void feed(const void* const* elements, const void* const*, size_t rows, size_t places, bool last) final {
    fed_ = fed_ || places > 0;
    tree_->feed(elements, nullptr, rows, places, last);
  }
  void result(void* values, size_t rows) const final {
    if (fed_)
      tree_->result(values, rows);
    else
      std::fill_n(static_cast<int32_t*>(values), lanes_ * rows, all_ ? 1 : 0);
  }

 private:
  size_t lanes_;
  bool all_, fed_ = false;
  std::unique_ptr<Accumulator> tree_;
};

template <class T>
std::unique_ptr<Accumulator> make(ReduceKind kind, size_t lanes, size_t rows) {
  switch (kind) {
    case ReduceKind::ArgMax:
    case ReduceKind::ArgMin:
      return std::make_unique<Places<T>>(op_of(kind), lanes, rows);
    case ReduceKind::First:
      return std::make_unique<First<T>>(lanes, rows);
    case ReduceKind::ProdRe:
    case ReduceKind::ProdIm:
      if constexpr (std::is_floating_point_v<T>)
        return std::make_unique<ComplexProduct<T>>(kind == ReduceKind::ProdIm, lanes, rows);
      throw_error(ErrorKind::Internal, "rows: complex products are of floating types");
    case ReduceKind::Prod:
      if constexpr (std::is_floating_point_v<T>) return std::make_unique<Product<T>>(lanes, rows);
      [[fallthrough]];
    default:
      return make_tree<T>(op_of(kind), lanes, rows);
  }
}

}  // namespace

void Accumulator::feed_chunks(const float*, size_t, bool) {
  throw_error(ErrorKind::Internal, "rows: chunks are of sums of float32 along rows");
}

std::unique_ptr<Accumulator> make_accumulator(ReduceKind kind, Type type, size_t lanes, size_t rows) {
  if (kind == ReduceKind::Any || kind == ReduceKind::All) return std::make_unique<Truth>(kind, lanes, rows);
  switch (type) {
    case Type::F32:
      return make<float>(kind, lanes, rows);
    case Type::F64:
      return make<double>(kind, lanes, rows);
    case Type::I32:
      return make<int32_t>(kind, lanes, rows);
    case Type::I64:
      return make<int64_t>(kind, lanes, rows);
    default:
      throw_error(ErrorKind::Internal, "rows: a reducer of a type that is not computed in");
  }
}

}  // namespace tenon::cpu
