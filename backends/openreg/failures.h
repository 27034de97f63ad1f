// Failures: the calls of the plug-in's functions that are to fail, as the options `fail`, `throw` and
// `throw_int` say: "copy:3" is the third call of `copy`, "raw_alloc:1,raw_free:2" are two. With them tests
// see what becomes of a device that fails.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tenon/abi/plugin.h"

namespace openreg {

/// The functions that may be named; those of the table have the table's names.
constexpr std::string_view kFunctions[] = {"device_count",
                                           "properties",
                                           "raw_alloc",
                                           "raw_free",
                                           "copy",
                                           "stream_new",
                                           "stream_free",
                                           "stream_sync",
                                           "event_new",
                                           "event_free",
                                           "event_record",
                                           "event_sync",
                                           "event_query",
                                           "stream_wait_event",
                                           "pointwise",
                                           "memory_info",
                                           "shutdown",
                                           "open",
                                           "register_kernels",
                                           "close",
                                           "event_elapsed",
                                           "event_new_timed",
                                           "host_alloc",
                                           "host_free",
                                           "reserve",
                                           "map",
                                           "unmap",
                                           "unreserve",
                                           "capture_begin",
                                           "capture_end",
                                           "capture_launch",
                                           "capture_free"};
constexpr size_t index_of(std::string_view name) {
  size_t i = 0;
  while (i < std::size(kFunctions) && kFunctions[i] != name) ++i;
  return i;
}

class Failures {
 public:
  enum class How { Status, Exception, Int };

  /// Throws abi::Error for a text that is no list of functions with numbers.
  void plan(How how, const std::string& option, const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(',', at), text.size()), colon = text.find(':', at);
      const size_t function = index_of(std::string_view(text).substr(at, std::min(colon, end) - at));
      const std::string number = colon < end ? text.substr(colon + 1, end - colon - 1) : "";
      if (function == std::size(kFunctions) || number.empty() || number.size() > 9 ||
          number.find_first_not_of("0123456789") != std::string::npos)
        throw tenon::abi::Error(TENON_ERROR_VALUE, "option " + option + "=" + text +
                                                       ": expected functions and numbers, such as copy:3");
      plans_.emplace_back(function, std::stoll(number), how);
      at = end + 1;
    }
  }

  /// Counts a call, and fails if it is one that is to fail.
  void check(size_t function) {
    for (Plan& plan : plans_) {
      if (plan.function != function || plan.left.fetch_sub(1) != 1) continue;
      if (plan.how == How::Int) throw 7;
      const std::string text = "a failure of " + std::string(kFunctions[function]) + " that was asked for";
      if (plan.how == How::Exception) throw std::runtime_error(text);
      throw tenon::abi::Error(TENON_ERROR_RUNTIME, text);
    }
  }

 private:
  struct Plan {
    Plan(size_t f, int64_t n, How h) : function(f), left(n), how(h) {}
    size_t function;
    std::atomic<int64_t> left;
    How how;
  };
  std::deque<Plan> plans_;  // none is added once calls are counted
};

/// A function of the table as it is given to Tenon: one that may fail. What it throws goes out on purpose.
template <size_t kFunction, auto kCalled>
struct MayFail;
template <size_t kFunction, class... A, TenonStatus* (*kCalled)(void*, A...)>
struct MayFail<kFunction, kCalled> {
  static_assert(kFunction < std::size(kFunctions));
  template <class Backend>
  static TenonStatus* call(void* self, A... arguments) {
    try {
      static_cast<Backend*>(self)->failures.check(kFunction);
    } catch (const tenon::abi::Error& e) {
      return tenon::abi::host().status_new(e.kind(), e.what());
    }
    return kCalled(self, arguments...);
  }
};

}  // namespace openreg
