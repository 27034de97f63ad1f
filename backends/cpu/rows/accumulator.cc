#include "backends/cpu/rows/accumulator.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "backends/cpu/reduce/arg_reduce.h"
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
  explicit AlongTree(ReduceOp op) : op_(op), state_(op) {}
  void reset() final { state_ = Reducer<T>(op_); }
  void feed(const void* elements, const void*, size_t places) final {
    state_.feed(static_cast<const T*>(elements), places);
  }
  void result(void* values) const final { *static_cast<T*>(values) = state_.result(); }

 private:
  ReduceOp op_;
  Reducer<T> state_;
};

template <class T>
class AcrossTree final : public Accumulator {
 public:
  AcrossTree(ReduceOp op, size_t lanes) : op_(op), lanes_(lanes) { reset(); }
  void reset() final { state_ = std::make_unique<OuterReducer<T>>(op_, lanes_); }
  void feed(const void* elements, const void*, size_t places) final {
    state_->feed(static_cast<const T*>(elements), static_cast<ptrdiff_t>(lanes_), places);
  }
  void result(void* values) const final { state_->result(static_cast<T*>(values)); }

 private:
  ReduceOp op_;
  size_t lanes_;
  std::unique_ptr<OuterReducer<T>> state_;
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
  Places(ReduceOp op, size_t lanes) : op_(op), best_(lanes), index_(lanes) { reset(); }
  void reset() final {
    fed_ = 0;
    std::fill(index_.begin(), index_.end(), 0);
  }
  void feed(const void* elements, const void*, size_t places) final {
    const auto* p = static_cast<const T*>(elements);
    const size_t lanes = best_.size();
    if (lanes == 1 && places > 0) {
      const ArgResult<T> found = arg_reduce_contiguous(op_, p, places);
      if (fed_ == 0 || beats(op_, found.value, best_[0])) {
        best_[0] = found.value;
        index_[0] = fed_ + found.index;
      }
      fed_ += static_cast<int64_t>(places);
      return;
    }
    for (size_t i = 0; i < places; ++i, ++fed_, p += lanes) {
      if (fed_ == 0) {
        std::copy(p, p + lanes, best_.begin());
        continue;
      }
      for (size_t l = 0; l < lanes; ++l) {
        if (!beats(op_, p[l], best_[l])) continue;
        best_[l] = p[l];
        index_[l] = fed_;
      }
    }
  }
  void result(void* values) const final {
    std::copy(index_.begin(), index_.end(), static_cast<int64_t*>(values));
  }

 private:
  ReduceOp op_;
  int64_t fed_ = 0;
  std::vector<T> best_;
  std::vector<int64_t> index_;
};

template <class T>
class First final : public Accumulator {
 public:
  explicit First(size_t lanes) : found_(lanes), value_(lanes) { reset(); }
  void reset() final {
    std::fill(found_.begin(), found_.end(), uint8_t{0});
    std::fill(value_.begin(), value_.end(), T{0});
  }
  void feed(const void* elements, const void* mask, size_t places) final {
    const auto* p = static_cast<const T*>(elements);
    const auto* m = static_cast<const int32_t*>(mask);
    const size_t lanes = found_.size();
    for (size_t i = 0; i < places; ++i, p += lanes, m += lanes) {
      for (size_t l = 0; l < lanes; ++l) {
        if (m[l] == 0 || found_[l] != 0) continue;
        found_[l] = 1;
        value_[l] = p[l];
      }
    }
  }
  void result(void* values) const final { std::copy(value_.begin(), value_.end(), static_cast<T*>(values)); }

 private:
  std::vector<uint8_t> found_;
  std::vector<T> value_;
};

/// Any of nothing is false and all of it true, whatever identity numbers have.
class Truth final : public Accumulator {
 public:
  Truth(ReduceKind kind, size_t lanes)
      : lanes_(lanes),
        all_(kind == ReduceKind::All),
        tree_(make_accumulator(all_ ? ReduceKind::Min : ReduceKind::Max, Type::I32, lanes)) {}
  void reset() final {
    tree_->reset();
    fed_ = false;
  }
  void feed(const void* elements, const void*, size_t places) final {
    fed_ = fed_ || places > 0;
    tree_->feed(elements, nullptr, places);
  }
  void result(void* values) const final {
    if (fed_)
      tree_->result(values);
    else
      std::fill_n(static_cast<int32_t*>(values), lanes_, all_ ? 1 : 0);
  }

 private:
  size_t lanes_;
  bool all_, fed_ = false;
  std::unique_ptr<Accumulator> tree_;
};

template <class T>
std::unique_ptr<Accumulator> make(ReduceKind kind, size_t lanes) {
  switch (kind) {
    case ReduceKind::ArgMax:
    case ReduceKind::ArgMin:
      return std::make_unique<Places<T>>(op_of(kind), lanes);
    case ReduceKind::First:
      return std::make_unique<First<T>>(lanes);
    default:
      if (lanes == 1) return std::make_unique<AlongTree<T>>(op_of(kind));
      return std::make_unique<AcrossTree<T>>(op_of(kind), lanes);
  }
}

}  // namespace

std::unique_ptr<Accumulator> make_accumulator(ReduceKind kind, Type type, size_t lanes) {
  if (kind == ReduceKind::Any || kind == ReduceKind::All) return std::make_unique<Truth>(kind, lanes);
  switch (type) {
    case Type::F32:
      return make<float>(kind, lanes);
    case Type::F64:
      return make<double>(kind, lanes);
    case Type::I32:
      return make<int32_t>(kind, lanes);
    case Type::I64:
      return make<int64_t>(kind, lanes);
    default:
      throw_error(ErrorKind::Internal, "rows: a reducer of a type that is not computed in");
  }
}

}  // namespace tenon::cpu
