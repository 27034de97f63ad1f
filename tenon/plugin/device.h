// PluginDevice: a loaded plug-in as the rest of Tenon sees devices: streams, events, memory, copies. Every
// call across the border goes through it. Used by this room alone.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "tenon/core/caching_allocator.h"
#include "tenon/core/device_memory.h"
#include "tenon/core/device_runtime.h"
#include "tenon/plugin/status.h"

namespace tenon::plugin {

/// A stream as plug-ins see it: its device has an index.
inline TenonStream abi_stream(Stream stream) noexcept {
  const int8_t index = stream.device.index;
  return {stream.id, {stream.device.backend, index < 0 ? int8_t{0} : index}, {}};
}

/// Lives as long as the process, also once it is unloaded: tables that were replaced refer to it.
class PluginDevice final : public DeviceRuntime, public DeviceMemory {
 public:
  /// `plugin` and `table` have been completed: their sizes are those of this header, and what the plug-in
  /// does not have is null.
  PluginDevice(Backend backend, std::string name, std::string path, const TenonPlugin& plugin,
               const TenonDeviceTable& table);

  Backend backend() const noexcept { return backend_; }
  const std::string& device_name() const noexcept { return device_name_; }
  const std::string& path() const noexcept { return path_; }
  /// What the plug-in said of its device 0 when it was loaded.
  const std::string& description() const noexcept { return description_; }
  TenonDeviceProperties properties(int index) const;

  int device_count() const noexcept override { return device_count_; }
  uint64_t create_stream(Device device) override;
  void synchronize(Stream stream) override;
  uint64_t create_event(Device device) override;
  void destroy_event(Device device, uint64_t event) noexcept override;
  void record(uint64_t event, Stream stream) override;
  void wait(Stream stream, Device device, uint64_t event) override;
  bool query(Device device, uint64_t event) override;
  void synchronize(Device device, uint64_t event) override;

  void throw_unreported() override;
  bool copies_bytes() const noexcept override { return true; }
  void copy_bytes(Stream stream, Address to, Place to_place, Address from, Place from_place, size_t nbytes,
                  uint32_t flags) override;

  // optional_functions.cc: times, capture, mapped, pinned and exchanged memory.
  uint64_t create_timed_event(Device device) override;
  double elapsed(Device device, uint64_t begin, uint64_t end) override;
  bool captures() const noexcept override;
  void begin_capture(Stream stream) override;
  uint64_t end_capture(Stream stream, bool keep) override;
  void launch_capture(Stream stream, uint64_t capture) override;
  void destroy_capture(Device device, uint64_t capture) noexcept override;
  bool has_handles() const noexcept override;
  Handle export_memory(Device device, Address address) override;
  Address import_memory(Device device, Handle from, size_t nbytes) override;
  void forget_memory(Device device, Address address) noexcept override;
  size_t map_granularity() const noexcept override { return map_granularity_; }
  Address reserve(Device device, size_t nbytes) override;
  bool map(Device device, Address address, size_t nbytes) override;
  void unmap(Device device, Address address, size_t nbytes) noexcept override;
  void unreserve(Device device, Address address, size_t nbytes) noexcept override;
  Allocator* pinned_memory() noexcept override { return pinned_.get(); }
  CachingAllocator* pinned() const noexcept { return pinned_.get(); }
  /// Null where there is no more.
  void* take_host_memory(size_t nbytes) const;
  std::string shortage(Device device) const override { return shortage_of(std::max<int>(device.index, 0)); }
  /// What was said when there was no more memory of a device, or, kPinned, of the host.
  std::string shortage_of(int32_t index) const;
  static constexpr int32_t kPinned = -1;
  void give_host_memory(void* address, size_t nbytes) const noexcept;

  size_t granularity() const noexcept override { return granularity_; }
  Address allocate(Device device, size_t nbytes) override;
  void free(Device device, Address address, size_t nbytes) noexcept override;
  void copy(Address to, Address from, size_t nbytes, Stream stream) override;
  Info info(Device device) const override;

  /// Whether the plug-in runs pointwise expressions.
  bool has_pointwise() const noexcept { return table_.pointwise != nullptr; }
  /// A PointwiseDeviceFunction over a PluginDevice.
  static bool run_pointwise(void* device, const TenonLaunch& launch);

  /// Calls a function of the plug-in with its `self`, and throws what it fails with; `what` says what was
  /// asked of one of its devices. An exception that the function lets out fails the device for good.
  template <class... P, class... A>
  void call(const char* what, int32_t index, TenonStatus* (*function)(void*, P...), A... arguments) const {
    if (TenonStatus* status = status_of(what, function, arguments...)) raise(status, text_of(what, index));
  }
  /// The same for callers that know what to do with a status, TENON_DECLINED among them. `what` is a text, or
  /// a function that makes it.
  template <class What, class... P, class... A>
  TenonStatus* status_of(const What& what, TenonStatus* (*function)(void*, P...), A... arguments) const {
    const RunningCall running(*this);
    return status_in(running, what, function, arguments...);
  }
  /// ": device openreg:1: a copy"; the colon follows the operator that is being called.
  std::string text_of(std::string_view what, int32_t index) const;

  /// Returns when no other call runs. A call of another thread, unless it frees or waits, takes it back: the
  /// device is in use. Throws for a device that does not belong to this process, or no more.
  void begin_unloading();
  /// From now on only this thread may call the plug-in, save for freeing and waiting. False: another thread's
  /// call came between.
  bool refuse_others() noexcept;
  /// Everything is as it was before.
  void keep_loaded() noexcept;
  /// Whether a function let an exception out.
  bool has_failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  /// Events that were created and not destroyed.
  int64_t live_events() const noexcept { return live_events_.load(std::memory_order_acquire); }
  /// Gives back the unused streams of a device, and ends the plug-in's instance. False: it
  /// has failed, and nothing of it was called; its library must stay.
  bool end(const std::vector<Stream>& streams);

  /// In a child of fork: the device refuses from now on.
  void note_fork() noexcept { state_.store(State::Forked, std::memory_order_relaxed); }
  /// At the end of the process: the plug-in ends its threads, and what follows is not asked of it any more.
  void shut_down() noexcept;

 private:
  /// Asked: it is being found out whether the device may go. Unloading: nothing speaks against it, and its
  /// caches are emptied. Ending: it goes.
  enum class State : uint8_t { Usable, Failed, Forked, ShutDown, Asked, Unloading, Ending, Unloaded };

  /// A call across the border. An unloading thread waits until there is none, so a call is counted
  /// before it looks whether it may be made.
  class RunningCall {
   public:
    /// `ends`: it frees or waits, and makes nothing that could keep the device.
    explicit RunningCall(const PluginDevice& device, bool ends = false) : device_(device) {
      device.calls_.fetch_add(1);
      if (device.state_.load() != State::Usable) [[unlikely]]
        device.refuse(ends);
    }
    ~RunningCall() { device_.calls_.fetch_sub(1); }
    RunningCall(const RunningCall&) = delete;

   private:
    const PluginDevice& device_;
  };

  void set_optional_memory();
  uint64_t counted_event(Device device, TenonStatus* (*create)(void*, int32_t, uint64_t*));
  /// Throws, and takes back the count of the call, unless it is one of the thread that unloads the device, or
  /// nothing is decided yet.
  void refuse(bool ends) const;
  /// `call` for what waits: refusing it would free host memory that the device still uses.
  template <class... P, class... A>
  void call_to_wait(const char* what, int32_t index, TenonStatus* (*function)(void*, P...),
                    A... arguments) const {
    const RunningCall running(*this, true);
    if (TenonStatus* status = status_in(running, what, function, arguments...))
      raise(status, text_of(what, index));
  }
  [[noreturn]] void throw_refusal(State state) const;
  template <class What, class... P, class... A>
  TenonStatus* status_in(const RunningCall&, const What& what, TenonStatus* (*function)(void*, P...),
                         A... arguments) const {
    try {
      return function(plugin_.self, arguments...);
    } catch (...) {
      if constexpr (std::is_invocable_v<What>)
        fail(what());
      else
        fail(what);
    }
  }
  [[noreturn]] void fail(std::string_view what) const;
  /// Calls a function whose failure cannot be reported at once.
  template <class... P, class... A>
  void call_noexcept(const char* what, int32_t index, TenonStatus* (*function)(void*, P...),
                     A... arguments) const noexcept {
    const State state = state_.load();
    // Of a device that has failed, or does not belong to this process, it has been said why.
    if (has_failed() || (state != State::Usable && state != State::Asked && state != State::Unloading &&
                         state != State::Ending))
      return;
    try {
      const RunningCall running(*this, true);
      if (TenonStatus* status = status_in(running, what, function, arguments...))
        raise(status, text_of(what, index));
    } catch (const std::exception& e) {
      keep_unreported(e.what());
    }
  }
  void keep_unreported(const char* text) const noexcept;
  /// Whether a function that takes memory succeeded; throws unless it failed for want of memory, when it
  /// keeps what the plug-in says.
  bool has_memory(TenonStatus* status, const char* what, int32_t index) const;
  /// The id or address that a function gave; throws for 0, which is none.
  template <class T>
  T given(T value, const char* what, int32_t index, const char* function) const {
    if (value == T{}) throw_nothing_given(what, index, function);
    return value;
  }
  [[noreturn]] void throw_nothing_given(const char* what, int32_t index, const char* function) const;

  const Backend backend_;
  const std::string device_name_, path_;
  const TenonPlugin plugin_;
  const TenonDeviceTable table_;
  const int device_count_;
  std::string description_;
  size_t granularity_ = 512, map_granularity_ = 0;
  std::unique_ptr<DeviceMemory> host_memory_;  // of `pinned_`
  std::unique_ptr<CachingAllocator> pinned_;
  mutable std::atomic<State> state_{State::Usable};
  mutable std::atomic<bool> failed_{false};
  mutable std::atomic<int64_t> calls_{0};
  std::atomic<int64_t> live_events_{0};
  std::atomic<std::thread::id> unloader_{};
  mutable std::mutex mutex_;        // of what follows
  mutable std::string failure_;     // what the device failed with
  mutable std::string unreported_;  // the first failure of call_noexcept that was not reported
  mutable std::map<int32_t, std::string> shortages_;  // by device
};

}  // namespace tenon::plugin
