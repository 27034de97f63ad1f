// Race: which of several ways to compute the same takes the least time. They run in turns with the best so
// far, so that whatever else the machine does falls on both, and the least time of each counts. Used by the
// tuner and for plans of built graphs. Independent of what runs.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>

namespace tenon::graph {

/// What became of a candidate.
struct Trial {
  std::string name;      ///< "composed(rows=24)"
  double ns = 0;         ///< The least time of a run; 0 where it was not timed.
  std::string reason;    ///< Why it was not taken, or not timed; empty for the one that was.
  bool is_late = false;  ///< Not timed, because the budget was spent.
};

struct Runner {
  std::function<void()> run;
  std::function<void()> prepare = {};  ///< Before each run, and not timed; may be null.
};

/// Nanoseconds that may be spent from now on.
class Budget {
 public:
  explicit Budget(double ns) : ns_(ns), start_(Clock::now()) {}
  /// "not timed: the budget of 50 ms was spent".
  std::string spent() const;
  double left() const {
    return ns_ - std::chrono::duration<double, std::nano>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  double ns_;
  Clock::time_point start_;
};

/// The place of the winner, which is the first without a `reason` if no other beats it by more than noise
/// does; sets times, and the reasons of the others. Those that have a reason already do not run, and a time
/// that is there already stays if it is less. Throws what a run throws. At least one is without.
size_t race(std::span<const Runner> runners, std::span<Trial> trials, const Budget& budget);

}  // namespace tenon::graph
