// HostCopies: host copies in place of a call's tensors on a device, and the way back. The one way in which
// operators (ops/fallback/cpu_fallback.h), stubs (stub.h) and pointwise expressions that a device does not
// have run on the host. Implemented in tenon/ops/fallback, which knows how bytes are copied.
#pragma once

#include <string_view>
#include <vector>

#include "tenon/core/error.h"
#include "tenon/core/tensor.h"

namespace tenon {

/// What a call does with a tensor; bits.
enum class Access : uint8_t {
  Read = 1,
  Write = 2,
  ReadWrite = 3,
  KeepStrides = 4,  ///< The call knows the tensor's strides from elsewhere.
};
constexpr Access operator|(Access a, Access b) noexcept {
  return static_cast<Access>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr bool has(Access a, Access bit) noexcept {
  return (static_cast<uint8_t>(a) & static_cast<uint8_t>(bit)) != 0;
}

/// The copies of one call: `add` its tensors, `fetch`, `run` the call, `put_back`, `move` the results; then
/// `report`.
///
/// Tensors of one storage whose elements overlap share one host copy of all that they reach, so that a write
/// through one is seen through the others, and one tensor that is passed twice is one host tensor. `fetch`
/// waits once for the device, however many tensors there are, and not at all where nothing is read. If the
/// call throws, the device's tensors are as they were.
class HostCopies {
 public:
  /// For a call on tensors of `device`, which `name` says in errors and reports: "aten::add.Tensor".
  HostCopies(Device device, std::string_view name) noexcept : device_(resolved(device)), name_(name) {}
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  /// Registers the tensor in `place`, which `fetch` replaces. Tensors of the host and undefined ones stay.
  /// Throws Error{Device} for a tensor of another device, and Error{NotImplemented} unless it is strided.
  void add(Tensor& place, Access access);
  /// Puts the host copies into the places.
  void fetch();
  /// Runs the call on the copies: f(). Where the host does not have it either, the error names both devices.
  template <class F>
  decltype(auto) run(F&& f) const {
    try {
      return f();
    } catch (Error& e) {
      if (e.kind() == ErrorKind::NotImplemented) name_devices(e);
      throw;
    }
  }
  /// Writes what was written to the device's tensors, resized if their copies were. The places keep the
  /// copies.
  void put_back();
  /// Replaces a result: a copy by the tensor that it is of; another host tensor by a new one on the
  /// device with the same strides. Host tensors that were added stay.
  void move(Tensor& result);
  /// Reports the call (core/fallback_report.h).
  void report() const;

  Device device() const noexcept { return device_; }

 private:
  struct Entry {
    Tensor original, host;
    Access access;
    int64_t first = 0, last = 0;  // of the bytes that it reaches in its storage
    size_t group = kNone;
  };
  /// Bytes of one storage, and the host's copy of them.
  struct Group {
    Storage storage, host;
    int64_t first = 0, last = 0;
  };
  static constexpr size_t kNone = ~size_t{0};

  void name_devices(Error& e) const;
  void find_groups();
  bool is_packed(const Entry& e, size_t members) const;
  void upload(const Storage& to, int64_t at, const Storage& from, int64_t from_at, int64_t nbytes);

  Device device_;
  std::string_view name_;
  std::vector<Entry> entries_;
  std::vector<Group> groups_;
  std::vector<std::pair<Tensor*, size_t>> places_;  // with their entries
  std::vector<Tensor> of_host_;
  size_t nbytes_ = 0;
};

namespace detail {

/// How an argument of type A goes into a call on host copies: kept, and exchanged where it has tensors. A
/// specialization for another type has the same members.
template <class A>
struct HostArgument {
  A value;
  explicit HostArgument(A v) : value(static_cast<A>(v)) {}
  void add(HostCopies&, Access) {}
  A get() { return static_cast<A>(value); }
};
template <>
struct HostArgument<const Tensor&> {
  Tensor value;
  explicit HostArgument(const Tensor& t) : value(t) {}
  void add(HostCopies& copies, Access access) { copies.add(value, access); }
  const Tensor& get() { return value; }
};
template <>
struct HostArgument<Tensor&> {
  Tensor value;
  explicit HostArgument(const Tensor& t) : value(t) {}
  void add(HostCopies& copies, Access) { copies.add(value, Access::ReadWrite); }
  Tensor& get() { return value; }
};
template <>
struct HostArgument<TensorList> {
  std::vector<Tensor> values;
  explicit HostArgument(TensorList list) : values(list.begin(), list.end()) {}
  void add(HostCopies& copies, Access access) {
    for (Tensor& t : values) copies.add(t, access);
  }
  TensorList get() { return values; }
};

}  // namespace detail
}  // namespace tenon
