#include "tenon/ops/window/axis.h"

namespace tenon {

Axis Axis::transposed() const {
  Axis back;
  if (taps == Taps::Adaptive) {
    // i is in [floor(o I / O), ceil((o + 1) I / O)) exactly where o is in [floor(i O / I), ceil((i + 1) O /
    // I)).
    back = adaptive(outputs, inputs);
  } else if (taps == Taps::Affine && kernel == 1 && stride == 1) {
    back = windows(outputs, inputs, 1, 1, -pad, 1);
  } else {
    back = listed(outputs, inputs);
    back.begins.assign(static_cast<size_t>(inputs) + 1, 0);
    for (int64_t o = 0; o < outputs; ++o)
      for_each_tap(o, [&](int64_t i, double) { ++back.begins[static_cast<size_t>(i) + 1]; });
    for (size_t i = 0; i < static_cast<size_t>(inputs); ++i) back.begins[i + 1] += back.begins[i];
    back.places.resize(static_cast<size_t>(back.begins.back()));
    if (!weights.empty()) back.weights.resize(back.places.size());
    std::vector<int64_t> next(back.begins.begin(), back.begins.end() - 1);
    for (int64_t o = 0; o < outputs; ++o) {
      for_each_tap(o, [&](int64_t i, double weight) {
        const auto at = static_cast<size_t>(next[static_cast<size_t>(i)]++);
        back.places[at] = o;
        if (!weights.empty()) back.weights[at] = weight;
      });
    }
  }
  back.divisors = input_divisors;
  back.input_divisors = divisors;
  return back;
}

}  // namespace tenon
