// A runtime of some devices whose work is done when the call returns.
#pragma once

#include "tenon/core/device_runtime.h"

namespace tenon::testing {

class ImmediateRuntime : public DeviceRuntime {
 public:
  explicit ImmediateRuntime(int devices) noexcept : devices_(devices) {}
  int device_count() const noexcept override { return devices_; }
  uint64_t create_stream(Device) override { return 1; }
  void synchronize(Stream) override {}
  uint64_t create_event(Device) override { return 1; }
  void destroy_event(Device, uint64_t) noexcept override {}
  void record(uint64_t, Stream) override {}
  void wait(Stream, Device, uint64_t) override {}
  bool query(Device, uint64_t) override { return true; }
  void synchronize(Device, uint64_t) override {}

 private:
  int devices_;
};

}  // namespace tenon::testing
