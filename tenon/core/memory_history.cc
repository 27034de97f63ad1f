#include "tenon/core/memory_history.h"

#include <dlfcn.h>

#include <chrono>
#include <new>

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define TENON_BACKTRACE 1
#else
#define TENON_BACKTRACE 0
#endif

namespace tenon {
namespace {

constexpr int kMostFrames = 48;

/// Whether an address is in the object that has this code: the library, or a program that is linked with it
/// statically, whose own frames are then kept.
bool is_own(const void* address) noexcept {
  static const void* const base = [] {
    Dl_info info{};
    return dladdr(reinterpret_cast<const void*>(&describe_site), &info) ? info.dli_fbase : nullptr;
  }();
  Dl_info info{};
  return dladdr(address, &info) && info.dli_fbase == base;
}

}  // namespace

std::shared_ptr<const MemoryStack> MemoryStack::take() {
  auto stack = std::make_shared<MemoryStack>();
  if (const SourceMark mark = note_caller(nullptr)) stack->marks.push_back(mark);
#if TENON_BACKTRACE
  void* frames[kMostFrames];
  const int count = backtrace(frames, kMostFrames);
  int first = 0;
  while (first < count && is_own(frames[first])) ++first;
  if (first == count) first = 0;
  for (int i = first; i < count; ++i)
    stack->marks.push_back({.place = reinterpret_cast<uint64_t>(frames[i])});
#endif
  return stack;
}

std::vector<std::string> describe(const MemoryStack& stack) {
  std::vector<std::string> lines;
  for (const SourceMark& mark : stack.marks) lines.push_back(describe_source(mark));
  return lines;
}

std::string describe_site(const MemoryStack& stack) {
  return describe_source(stack.marks.empty() ? SourceMark{} : stack.marks.front());
}

const char* name(MemoryEvent::Action action) noexcept {
  switch (action) {
    case MemoryEvent::Action::Alloc:
      return "alloc";
    case MemoryEvent::Action::FreeRequested:
      return "free_requested";
    case MemoryEvent::Action::FreeCompleted:
      return "free_completed";
    case MemoryEvent::Action::SegmentAlloc:
      return "segment_alloc";
    case MemoryEvent::Action::SegmentFree:
      return "segment_free";
    case MemoryEvent::Action::SegmentMap:
      return "segment_map";
    case MemoryEvent::Action::SegmentUnmap:
      return "segment_unmap";
    case MemoryEvent::Action::OutOfMemory:
      break;
  }
  return "oom";
}

void MemoryHistory::start(size_t max_events) {
  max_events_ = max_events;
  if (!events_) events_.emplace();
  while (events_->size() > max_events_) events_->pop_front();
  on_.store(true, std::memory_order_relaxed);
}

void MemoryHistory::stop() noexcept {
  on_.store(false, std::memory_order_relaxed);
  events_.reset();
  made_by_.clear();
}

void MemoryHistory::record(MemoryEvent::Action action, Address address, size_t size, Stream stream,
                           std::shared_ptr<const MemoryStack> stack) noexcept try {
  if (action == MemoryEvent::Action::Alloc) made_by_[address] = stack;
  if (action == MemoryEvent::Action::FreeRequested) made_by_.erase(address);
  if (!events_ || max_events_ == 0) return;
  if (events_->size() == max_events_) events_->pop_front();
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const int64_t time = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  events_->push_back({action, address, size, stream, time, std::move(stack)});
} catch (const std::bad_alloc&) {
}

std::shared_ptr<const MemoryStack> MemoryHistory::made_by(Address address) const {
  const auto found = made_by_.find(address);
  return found == made_by_.end() ? nullptr : found->second;
}

}  // namespace tenon
