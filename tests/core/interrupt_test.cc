#include "tenon/core/interrupt.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tenon/core/parallel.h"

namespace tenon {
namespace {

struct Stopped : Interruption {};

std::thread::id g_asked;

/// Stops the thread that the test runs on, as a program's main thread would be.
bool stop() {
  if (std::this_thread::get_id() != g_asked) return false;
  throw Stopped();
}

class Interrupt : public ::testing::Test {
 protected:
  void SetUp() override {
    g_asked = std::this_thread::get_id();
    threads_ = num_threads();
    set_interrupt_answer(&stop);
  }
  void TearDown() override {
    set_interrupt_answer(nullptr);
    detail::interrupt_requested = false;
    set_num_threads(threads_);
  }

  int threads_ = 0;
};

constexpr int64_t kMany = 1 << 20;

TEST_F(Interrupt, NoPieceRunsOnAThreadAfterTheRequest) {
  set_num_threads(1);
  int pieces = 0;
  const auto some = [&](int64_t, int64_t) {
    if (++pieces == 3) request_interrupt();
  };
  EXPECT_THROW(parallel_for(0, kMany, 1, some), Stopped);
  EXPECT_EQ(pieces, 3);
  pieces = 10;  // no second request
  int64_t covered = 0;
  parallel_for(0, kMany, 1, [&](int64_t b, int64_t e) { covered += e - b; });
  EXPECT_EQ(covered, kMany);
}

TEST_F(Interrupt, OtherThreadsStopTooAndTheErrorIsTheAnswer) {
  set_num_threads(4);
  std::atomic<bool> asked{false};
  std::atomic<int> mine{0};
  const auto some = [&](int64_t, int64_t) {
    if (std::this_thread::get_id() == g_asked) {
      ++mine;
      request_interrupt();
      asked = true;
    } else {
      while (!asked) std::this_thread::yield();
    }
  };
  EXPECT_THROW(parallel_for(0, kMany, 1, some), Stopped);
  // A thread that the request is not meant for may just have it in its hands.
  EXPECT_LT(mine, 32);
}

TEST_F(Interrupt, LongRangesAskBetweenTheirSteps) {
  set_num_threads(2);
  std::atomic<bool> asked{false};
  std::atomic<int64_t> others{0};
  constexpr int64_t kSteps = int64_t{1} << 40;
  const auto long_range = [&](int64_t, int64_t) {
    if (std::this_thread::get_id() == g_asked) {
      request_interrupt();
      asked = true;
      check_stop();
    } else {
      while (!asked) std::this_thread::yield();
      for (int64_t i = 0; i < kSteps; ++i) {  // would take days
        check_stop();
        ++others;
      }
    }
  };
  EXPECT_THROW(parallel_for(0, 2, 1, long_range), Stopped);
  EXPECT_LT(others, kSteps);
}

TEST_F(Interrupt, ARequestStaysForTheThreadThatItIsMeantFor) {
  request_interrupt();
  std::thread([] { EXPECT_NO_THROW(check_interrupt()); }).join();
  EXPECT_THROW(check_interrupt(), Stopped);
  EXPECT_NO_THROW(check_interrupt());
}

TEST_F(Interrupt, WorkThatOthersRelyOnIsNotStopped) {
  request_interrupt();
  {
    const Uninterrupted whole;
    EXPECT_NO_THROW(check_interrupt());
  }
  EXPECT_THROW(check_interrupt(), Stopped);
}

TEST_F(Interrupt, PiecesCoverTheRangeAndNoneIsSmallerThanTheGrain) {
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    for (const int64_t n : {1, 100, 12345, 1 << 20}) {
      std::atomic<int64_t> covered{0}, least{n};
      parallel_for(0, n, 100, [&](int64_t b, int64_t e) {
        covered += e - b;
        int64_t seen = least;
        while (e - b < seen && !least.compare_exchange_weak(seen, e - b)) {
        }
      });
      EXPECT_EQ(covered, n);
      EXPECT_GE(least, std::min<int64_t>(n, 100));
    }
  }
}

}  // namespace
}  // namespace tenon
