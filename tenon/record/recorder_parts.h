// What the files of the recorder share.
#pragma once

#include <mutex>
#include <vector>

#include "tenon/core/thread_state.h"
#include "tenon/record/recorder.h"

namespace tenon::record {

inline constexpr DispatchKeySet kRecord{Functionality::Record};
/// Why a segment ends in the best case.
inline constexpr const char* kScopeEnd = "the scope ended";

/// The fallback that records is there from the first scope on: until then, tables have no such kernel.
void start_recording();

inline bool recording_here() noexcept {
  return thread_state.included.has(Functionality::Record) &&
         !thread_state.excluded.has(Functionality::Record);
}

/// All recorders there ever were: they are handed on from threads that end to threads that begin, since
/// storages refer to them.
struct Recorders {
  std::mutex mutex;
  std::vector<Recorder*> all, free;
};
Recorders& recorders();

/// Calls f(tensor, argument) for the tensors of a call.
template <class F>
void each_tensor(const Stack& stack, size_t first, F&& f) {
  for (size_t i = first; i < stack.size(); ++i) {
    if (stack.tag(i) == CellTag::Tensor) f(stack.at<Tensor>(i), i - first);
    if (stack.tag(i) == CellTag::TensorList) {
      for (const Tensor& t : stack.at<std::vector<Tensor>>(i)) f(t, i - first);
    }
  }
}

/// Held while the segment is read or changed. Free while the process has one thread.
class Recorder::Lock {
 public:
  explicit Lock(Recorder& r) : lock_(r.mutex_, std::defer_lock) {
    if (!tenon::detail::single_threaded()) lock_.lock();
  }
  std::vector<SlotState> garbage;  // freed when the lock is, as owners of memory may take locks of their own

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace tenon::record
