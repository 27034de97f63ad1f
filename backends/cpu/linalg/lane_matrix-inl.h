// A matrix whose elements are vectors of numbers; see lanes.h.
#if defined(TENON_LINALG_LANE_MATRIX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_LINALG_LANE_MATRIX_INL_H_
#undef TENON_LINALG_LANE_MATRIX_INL_H_
#else
#define TENON_LINALG_LANE_MATRIX_INL_H_
#endif

#include "backends/cpu/linalg/numbers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

template <class T>
using RealLanes = Real<hn::ScalableTag<T>>;
template <class T>
using ComplexLanes = Complex<hn::ScalableTag<T>>;

template <class N>
class LaneMatrix {
 public:
  using T = typename N::T;
  LaneMatrix(T* data, int64_t columns) : data_(data), columns_(columns) {}

  HWY_INLINE N operator()(int64_t i, int64_t j) const { return N::load(at(i, j), kLanes()); }
  HWY_INLINE void set(int64_t i, int64_t j, N x) const { x.store(at(i, j), kLanes()); }

 private:
  static HWY_INLINE ptrdiff_t kLanes() { return static_cast<ptrdiff_t>(hn::Lanes(typename N::Tag())); }
  HWY_INLINE T* at(int64_t i, int64_t j) const { return data_ + (i * columns_ + j) * kLanes() * N::kParts; }

  T* data_;
  int64_t columns_;
};

}  // namespace
}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
