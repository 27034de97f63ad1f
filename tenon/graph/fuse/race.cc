#include "tenon/graph/fuse/race.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace tenon::graph {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSample = 20e3;  // nanoseconds: to them, reading the clock adds nothing
constexpr int kLeastTurns = 3, kMostTurns = 12, kMostRepeats = 1000;
constexpr double kClearlySlower = 1.25, kFaster = 0.97;

class Racer {
 public:
  explicit Racer(const Runner& runner) : runner_(&runner) {
    once();  // what is made at the first run
    best_ = once();
    if (!runner_->prepare)
      repeats_ = static_cast<int>(std::clamp(kSample / best_, 1.0, double{kMostRepeats}));
  }

  void turn() { best_ = std::min(best_, once()); }
  /// Of this duel.
  double best() const noexcept { return best_; }
  void start_again() noexcept { best_ = std::numeric_limits<double>::infinity(); }

 private:
  double once() const {
    if (runner_->prepare) runner_->prepare();
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < repeats_; ++i) runner_->run();
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / repeats_;
  }

  const Runner* runner_;
  int repeats_ = 1;
  double best_ = 0;
};

/// Whether the challenger wins.
bool duel(Racer& champion, Racer& challenger, const Budget& budget) {
  champion.start_again();
  challenger.start_again();
  int turns = 0;
  while (turns < kMostTurns) {
    // Neither always runs after the other.
    (turns % 2 ? challenger : champion).turn();
    (turns % 2 ? champion : challenger).turn();
    ++turns;
    const bool clear = turns >= kLeastTurns && challenger.best() > kClearlySlower * champion.best();
    if (clear || budget.left() < 0) break;
  }
  return turns >= kLeastTurns && challenger.best() < kFaster * champion.best();
}

void took(Trial& trial, double ns) { trial.ns = trial.ns > 0 ? std::min(trial.ns, ns) : ns; }

}  // namespace

std::string Budget::spent() const {
  return fmt::format("not timed: the budget of {:.3g} ms was spent", ns_ / 1e6);
}

size_t race(std::span<const Runner> runners, std::span<Trial> trials, const Budget& budget) {
  const auto is_left = [](const Trial& t) { return t.reason.empty(); };
  auto winner = static_cast<size_t>(std::ranges::find_if(trials, is_left) - trials.begin());
  Racer champion(runners[winner]);
  for (int turn = 0; turn < kLeastTurns; ++turn) champion.turn();
  took(trials[winner], champion.best());
  for (size_t i = winner + 1; i < trials.size(); ++i) {
    if (!is_left(trials[i])) continue;
    if (budget.left() < 0) {
      trials[i].reason = budget.spent();
      trials[i].is_late = true;
      continue;
    }
    Racer challenger(runners[i]);
    const bool wins = duel(champion, challenger, budget);
    took(trials[i], challenger.best());
    took(trials[winner], champion.best());
    const auto lost = [&](Trial& loser, const Trial& by) {
      loser.reason = loser.ns < by.ns ? fmt::format("not faster than {} beyond noise", by.name)
                                      : fmt::format("slower than {}", by.name);
    };
    if (!wins) {
      lost(trials[i], trials[winner]);
      continue;
    }
    lost(trials[winner], trials[i]);
    champion = challenger;
    winner = i;
  }
  return winner;
}

}  // namespace tenon::graph
