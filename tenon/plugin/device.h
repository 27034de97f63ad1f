// PluginDevice: a loaded plug-in as the rest of Tenon sees devices: streams, events, memory, copies. Every
// call across the border goes through it. Used by this room alone.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "tenon/core/device_memory.h"
#include "tenon/core/device_runtime.h"
#include "tenon/plugin/status.h"

namespace tenon::plugin {

/// A stream as plug-ins see it: its device has an index.
inline TenonStream abi_stream(Stream stream) noexcept {
  const int8_t index = stream.device.index;
  return {stream.id, {stream.device.backend, index < 0 ? int8_t{0} : index}, {}};
}

/// Lives as long as the process: tensors, streams and tables refer to it.
class PluginDevice final : public DeviceRuntime, public DeviceMemory {
 public:
  /// `plugin` and `table` have been completed: their sizes are those of this header, and what the plug-in
  /// does not have is null.
  PluginDevice(Backend backend, std::string name, std::string path, const TenonPlugin& plugin,
               const TenonDeviceTable& table);

  Backend backend() const noexcept { return backend_; }
  const std::string& device_name() const noexcept { return device_name_; }
  const std::string& path() const noexcept { return path_; }
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

  bool copies_bytes() const noexcept override { return true; }
  void copy_bytes(Stream stream, Address to, Place to_place, Address from, Place from_place, size_t nbytes,
                  uint32_t flags) override;

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
  /// asked of the device. An exception that the function lets out fails the device for good.
  template <class... P, class... A>
  void call(const char* what, TenonStatus* (*function)(void*, P...), A... arguments) const {
    if (TenonStatus* status = status_of(what, function, arguments...)) raise(status, text_of(what));
  }
  /// The same for callers that know what to do with a status, TENON_DECLINED among them.
  template <class... P, class... A>
  TenonStatus* status_of(const char* what, TenonStatus* (*function)(void*, P...), A... arguments) const {
    check_usable();
    try {
      return function(plugin_.self, arguments...);
    } catch (...) {
      fail(what);
    }
  }

  /// In a child of fork: the device refuses from now on.
  void note_fork() noexcept { state_.store(State::Forked, std::memory_order_relaxed); }
  /// At the end of the process: the plug-in ends its threads, and what follows is not asked of it any more.
  void shut_down() noexcept;

 private:
  enum class State : uint8_t { Usable, Failed, Forked, ShutDown };

  void check_usable() const {
    if (state_.load(std::memory_order_relaxed) != State::Usable) [[unlikely]]
      refuse();
  }
  [[noreturn]] void refuse() const;
  [[noreturn]] void fail(const char* what) const;
  std::string text_of(const char* what) const;

  const Backend backend_;
  const std::string device_name_, path_;
  const TenonPlugin plugin_;
  const TenonDeviceTable table_;
  const int device_count_;
  size_t granularity_ = 512;
  mutable std::atomic<State> state_{State::Usable};
};

}  // namespace tenon::plugin
