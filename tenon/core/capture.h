// DeviceGraph: work of a stream that is recorded once and runs as often as it is replayed. Used by callers
// whose work repeats; streams, events, copies and random operators ask here whether a stream is being
// captured. What records is the device's DeviceRuntime.
//
// Memory. What is allocated on the stream meanwhile comes from a private pool of the caching allocator,
// because a replay uses the same addresses again. Random numbers. Work that is recorded reads seed and
// position at an address, which each replay fills in: a replay draws what the calls would have drawn. Waits.
// Recorded work has not run, so nothing can wait for it or read its results on the host. What tries to is
// refused, and the capture has failed.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/core/caching_allocator.h"
#include "tenon/core/generator.h"
#include "tenon/core/storage.h"

namespace tenon {

namespace detail {
struct Capture;
/// How many captures go on in the process.
extern std::atomic<int> captures;
bool is_captured(Stream stream) noexcept;
void refuse_captured(Device device, const uint64_t* stream, std::string_view what, std::string_view why);
inline constexpr std::string_view kCannotWait =
    "its work runs only when it is replayed, so nothing can wait for it or read on the host what it computes";
}  // namespace detail

/// Whether work that is queued on a stream is recorded instead.
inline bool is_capturing(Stream stream) noexcept {
  return detail::captures.load(std::memory_order_acquire) > 0 && detail::is_captured(stream);
}
/// The same of any stream of a device.
bool is_capturing(Device device);
/// Throws Error{Runtime} if the stream, or any stream of the device, is being captured, and makes that
/// capture fail. `what` cannot be done then, because it waits for work or reads what it computes, or for the
/// reason that is given.
inline void refuse_captured(Stream stream, std::string_view what,
                            std::string_view why = detail::kCannotWait) {
  if (detail::captures.load(std::memory_order_acquire) > 0)
    detail::refuse_captured(stream.device, &stream.id, what, why);
}
inline void refuse_captured(Device device, std::string_view what) {
  if (detail::captures.load(std::memory_order_acquire) > 0)
    detail::refuse_captured(device, nullptr, what, detail::kCannotWait);
}
/// Keeps a storage that recorded work of the stream uses as long as its graph.
void keep_for_capture(Stream stream, Storage storage);
/// Takes blocks of a generator's stream for work that is queued on the current stream of a device: while that
/// is captured, a position whose `at` is set.
PhiloxState take_philox(const Generator& generator, Device device, uint64_t blocks);

/// Not thread-safe. The tensors that its work reads and writes must live as long as it is replayed.
class DeviceGraph {
 public:
  DeviceGraph() noexcept;
  ~DeviceGraph();
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;

  /// Records what is queued on `stream` from now on, on any thread. Its memory comes from `pool`, which
  /// graphs that are never replayed at the same time may share, by default from a new one. Throws
  /// Error{Runtime} for a default stream and for one that is captured already, Error{NotImplemented} for a
  /// device that records nothing.
  void capture_begin(Stream stream, std::shared_ptr<PrivatePool> pool = nullptr);
  /// Ends the recording. Throws Error{Runtime} if something was refused meanwhile; then the graph is as if
  /// nothing had been captured.
  void capture_end();
  /// Ends the recording and throws away what was recorded.
  void abandon() noexcept;
  /// Queues the recorded work on the current stream of its device. Throws Error{Runtime} if there is none.
  void replay();
  /// Forgets what was recorded and gives the pool back. Work that was replayed still runs.
  void reset() noexcept;
  bool captured() const noexcept { return id_ != 0; }
  /// The pool of what was or is being captured; null if nothing was.
  const std::shared_ptr<PrivatePool>& pool() const noexcept { return pool_; }

 private:
  /// What the recorded work draws from one generator.
  struct Draws {
    Generator generator;
    Storage place;  // seed and position
    uint64_t blocks = 0;
  };
  void end_recording() noexcept;
  friend detail::Capture;
  friend PhiloxState take_philox(const Generator& generator, Device device, uint64_t blocks);

  Stream stream_;
  uint64_t id_ = 0;
  std::unique_ptr<detail::Capture> capture_;  // while it goes on
  std::shared_ptr<PrivatePool> pool_;
  std::vector<Draws> draws_;
  std::vector<Storage> kept_;
  std::vector<std::pair<Stream, Event>> replayed_;  // the latest replay on each stream
};

}  // namespace tenon
