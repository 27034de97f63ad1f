#include "tenon/iter/overlap.h"

#include <numeric>

#include "tenon/core/tensor.h"

namespace tenon {
namespace {

// One unknown of  sum(stride * x) = target,  low <= x <= high,  stride > 0.
struct Term {
  int64_t stride;
  int64_t low, high;
};
using Terms = SmallVector<Term, 12>;

// Whether the equation has a solution; with `proper`, one that is not all zeros. Searches from the largest
// stride down; what the smaller strides can still reach leaves few choices at each step. Gives up after a
// bounded number of steps and then answers no, for views that no slicing builds.
class Equation {
 public:
  explicit Equation(Terms terms) : terms_(std::move(terms)) {
    std::sort(terms_.begin(), terms_.end(), [](const Term& a, const Term& b) { return a.stride > b.stride; });
    lowest_.resize(terms_.size() + 1);
    highest_.resize(terms_.size() + 1);
    divisor_.resize(terms_.size() + 1);
    for (size_t i = terms_.size(); i-- > 0;) {
      const Term& t = terms_[i];
      lowest_[i] = lowest_[i + 1] + t.stride * t.low;
      highest_[i] = highest_[i + 1] + t.stride * t.high;
      divisor_[i] = std::gcd(divisor_[i + 1], t.stride);
    }
  }
  bool solvable(int64_t target, bool proper) {
    steps_ = 0;
    return search(0, target, proper);
  }
  bool gave_up() const noexcept { return steps_ > kMaxSteps; }

 private:
  static int64_t floor_div(int64_t a, int64_t b) noexcept { return a / b - (a % b < 0); }

  bool search(size_t i, int64_t rest, bool proper) {
    if (++steps_ > kMaxSteps) return false;
    if (i == terms_.size()) return rest == 0 && !proper;
    if (rest < lowest_[i] || rest > highest_[i] || rest % divisor_[i] != 0) return false;
    const Term& t = terms_[i];
    // rest - stride * x must be within what the later terms reach. The first unknown that is not zero may be
    // taken positive when solutions come in pairs x, -x.
    int64_t low = std::max(t.low, -floor_div(highest_[i + 1] - rest, t.stride));
    const int64_t high = std::min(t.high, floor_div(rest - lowest_[i + 1], t.stride));
    if (proper) low = std::max<int64_t>(low, 0);
    for (int64_t x = low; x <= high; ++x) {
      if (search(i + 1, rest - t.stride * x, proper && x == 0)) return true;
    }
    return false;
  }

  static constexpr int kMaxSteps = 20000;
  Terms terms_;
  SmallVector<int64_t, 13> lowest_, highest_, divisor_;
  int steps_ = 0;
};

// Appends the positions of a view, shifted so that strides are positive; returns the lowest offset.
int64_t add_terms(Terms& terms, IntArrayRef sizes, IntArrayRef strides, bool negate) {
  int64_t lowest = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t reach = sizes[d] - 1, stride = strides[d];
    if (reach == 0 || stride == 0) continue;
    if (stride < 0) lowest += reach * stride;
    terms.push_back({std::abs(stride), negate ? -reach : 0, negate ? 0 : reach});
  }
  return lowest;
}

// Whether the two are the same elements in the same places, where broadcasting aligns their last dimensions.
bool same_view(const Tensor& a, const Tensor& b) {
  if (a.storage_offset() != b.storage_offset()) return false;
  if (a.dim() < b.dim()) return same_view(b, a);
  const auto more = static_cast<size_t>(a.dim() - b.dim());
  for (size_t d = 0; d < a.sizes().size(); ++d) {
    if (d < more ? a.sizes()[d] != 1 : a.sizes()[d] != b.sizes()[d - more]) return false;
    if (a.sizes()[d] != 1 && a.strides()[d] != b.strides()[d - more]) return false;
  }
  return true;
}

}  // namespace

bool overlaps_itself(IntArrayRef sizes, IntArrayRef strides) {
  Terms terms;
  bool zero = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return false;
    if (sizes[d] == 1) continue;
    if (strides[d] == 0)
      zero = true;
    else
      terms.push_back({std::abs(strides[d]), 1 - sizes[d], sizes[d] - 1});
  }
  if (zero) return true;
  if (terms.size() <= 1) return false;
  // Nested strides, which slices and permutations of a dense tensor have, need no search.
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.stride < b.stride; });
  int64_t reach = 0;
  bool nested = true;
  for (const Term& t : terms) {
    nested &= t.stride > reach;
    reach += t.stride * t.high;
  }
  return !nested && Equation(std::move(terms)).solvable(0, /*proper=*/true);
}

Overlap overlap(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined() || !a.storage() || a.storage() != b.storage()) return Overlap::None;
  if (a.numel() == 0 || b.numel() == 0) return Overlap::None;
  if (a.dtype() == b.dtype() && same_view(a, b)) return Overlap::Same;
  const Extent ea = extent(a.sizes(), a.strides(), "overlap"), eb = extent(b.sizes(), b.strides(), "overlap");
  const int64_t size_a = static_cast<int64_t>(a.itemsize()), size_b = static_cast<int64_t>(b.itemsize());
  const int64_t offset_a = a.storage_offset(), offset_b = b.storage_offset();
  if ((offset_a + ea.high) * size_a <= (offset_b + eb.low) * size_b ||
      (offset_b + eb.high) * size_b <= (offset_a + ea.low) * size_a) {
    return Overlap::None;
  }
  if (size_a != size_b) return Overlap::Partial;
  // a's offset + sum(a) = b's offset + sum(b)
  Terms terms;
  const int64_t low_a = add_terms(terms, a.sizes(), a.strides(), false);
  const int64_t low_b = add_terms(terms, b.sizes(), b.strides(), true);
  return Equation(std::move(terms)).solvable(offset_b + low_b - offset_a - low_a, false) ? Overlap::Partial
                                                                                         : Overlap::None;
}

bool share_bytes(const Placement& a, const Placement& b) {
  Terms terms;
  int64_t target = b.address - a.address;
  for (const Placement* p : {&a, &b}) {
    for (const int64_t size : p->sizes) {
      if (size == 0) return false;
    }
    const size_t first = terms.size();
    const int64_t lowest = add_terms(terms, p->sizes, p->strides, p == &b) * p->item_size;
    for (size_t i = first; i < terms.size(); ++i) terms[i].stride *= p->item_size;
    target += p == &b ? lowest : -lowest;
    const int64_t last = p->item_size - 1;
    if (last > 0) terms.push_back({1, p == &b ? -last : 0, p == &b ? 0 : last});
  }
  Equation bytes(std::move(terms));
  return bytes.solvable(target, false) || bytes.gave_up();
}

}  // namespace tenon
