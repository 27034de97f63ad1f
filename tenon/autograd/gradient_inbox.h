// GradientInbox: the gradients that a node gets from several threads, in the order in which one thread would
// sum them: sums in the order of arrival would have other bits in every run. Used by DevicePass, whose mutex
// guards it.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "tenon/core/tensor.h"

namespace tenon::autograd {

class GradientInbox {
 public:
  struct Arrival {
    uint64_t sequence = 0;  ///< Of the node that the gradient comes from.
    size_t edge = 0;        ///< Of that node.
    uint32_t input_nr = 0;
    bool there = false;
    Tensor grad{};
  };

  /// Notes what is to come; `sort` follows the last.
  void expect(uint64_t sequence, size_t edge, uint32_t input_nr) {
    arrivals_.push_back({sequence, edge, input_nr});
  }
  void sort() { std::ranges::sort(arrivals_, &is_before); }

  /// Takes what has come.
  void put(uint64_t sequence, size_t edge, Tensor grad) {
    auto place = std::ranges::lower_bound(arrivals_, Arrival{sequence, edge}, &is_before);
    while (place->there) ++place;
    place->there = true;
    place->grad = std::move(grad);
  }

  /// Whether the caller is the one to sum, from now until `end`.
  bool begin() noexcept { return !std::exchange(summing_, true); }
  /// The next to be added; null where that has not come, and after the last.
  Arrival* next() {
    while (next_ < arrivals_.size() && arrivals_[next_].there) {
      if (Arrival& arrival = arrivals_[next_++]; arrival.grad.defined()) return &arrival;
    }
    return nullptr;
  }
  void end() noexcept { summing_ = false; }
  /// Whether all have come and were added.
  bool complete() const noexcept { return next_ == arrivals_.size(); }

 private:
  /// Later nodes run first.
  static bool is_before(const Arrival& a, const Arrival& b) noexcept {
    return a.sequence != b.sequence ? a.sequence > b.sequence : a.edge < b.edge;
  }

  std::vector<Arrival> arrivals_;
  size_t next_ = 0;
  bool summing_ = false;
};

}  // namespace tenon::autograd
