// Copies and fills on devices that can copy bytes: from those, every copy of strided tensors, of other dtypes
// and between devices is made. Used by copy_elements, by host copies (ops/fallback), and as copy_stub and
// fill_stub of devices that have not filled them in. Knows devices as DeviceRuntime and Allocator only.
//
// Same device: bytes where both sides have one layout; else the device's pointwise function runs the
// identity; else through the host. Host and device: bytes where both sides have one layout, otherwise the
// side on the device is packed there if it can be, else the bytes that it reaches go to the host, are read or
// changed there, and go back. Between devices: through the host, which is reported as a hidden copy.
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "tenon/core/tensor.h"

namespace tenon::ops {

/// Whether a backend's device is reached by bytes: it has a DeviceRuntime that copies them.
bool copies_bytes(Backend backend) noexcept;

/// copy_stub's contract (ops/device_stubs.h) on a device that copies bytes.
void copy_by_bytes(const Tensor& dst, const Tensor& src, bool non_blocking);
/// fill_stub's contract on such a device.
void fill_by_bytes(const Tensor& dst, const Scalar& value);

/// Copies between tensors of equal sizes on two different devices, by way of the host. Neither device is the
/// host or meta.
void copy_between_devices(const Tensor& dst, const Tensor& src, const char* op, bool non_blocking);

/// Copies `nbytes` bytes at a place in one storage to a place in another. One is on the host, the other on a
/// device, on whose current stream the copy runs. With `host_stays`, see kCopyHostStays.
void copy_range(const Storage& to, int64_t to_at, const Storage& from, int64_t from_at, int64_t nbytes,
                bool host_stays);

/// Waits for a stream if an exception leaves its scope: host memory that the stream still reads or writes
/// would go with it. Where waiting for the stream fails, the memory that it was given is never freed.
class WaitOnError {
 public:
  explicit WaitOnError(Stream stream) noexcept : stream_(stream) {}
  ~WaitOnError();
  /// Host memory that the stream is about to use.
  void hold(const Storage& host);
  WaitOnError(const WaitOnError&) = delete;
  WaitOnError& operator=(const WaitOnError&) = delete;

 private:
  Stream stream_;
  int exceptions_ = std::uncaught_exceptions();
  struct Held {
    std::vector<Storage> storages;
    Held* next = nullptr;
  };
  std::unique_ptr<Held> held_;
};

/// Whether a device copies between strided tensors of its own without a way over the host, so that packing
/// what is sparse pays.
bool packs_on_device(Backend backend) noexcept;

/// The bytes of a storage that a tensor with elements reaches.
struct ByteRange {
  int64_t first = 0, last = 0;
  int64_t size() const noexcept { return last - first; }
};
ByteRange bytes_of(const Tensor& t);
/// Whether a tensor's elements fill the bytes that it reaches, in whatever order and direction.
bool fills_its_range(const Tensor& t);

}  // namespace tenon::ops
