// PassStreams: which stream each node of a backward pass runs in, and the order of work between those
// streams. Used by DevicePass. Independent of threads.
#pragma once

#include <optional>
#include <vector>

#include "tenon/autograd/node.h"
#include "tenon/core/stream.h"

namespace tenon::autograd {

/// Whether work of a device has streams, so that it belongs to a worker.
bool has_streams(Device device) noexcept;

/// Notes that work of a stream uses the tensor's memory.
void note_use(const Tensor& t, Stream user);

/// Makes a stream current for a scope, where its device has streams.
class MaybeStreamGuard {
 public:
  explicit MaybeStreamGuard(Stream stream) {
    if (has_streams(stream.device)) guard_.emplace(stream);
  }

 private:
  std::optional<StreamGuard> guard_;
};

class PassStreams {
 public:
  /// Takes what is current on this thread, the caller's.
  PassStreams() : caller_(current_devices()) {}

  /// Gives the next node, in the order of their numbers, its stream: that of its forward call. The nodes of
  /// leaves get the caller's current one: what they write is the caller's, who may have used it there just
  /// before. A node of the host gets the host's.
  Stream add(const Node& node);
  Stream of(uint32_t node) const noexcept { return nodes_[node]; }
  /// The stream in which a node reads a gradient on `device`, which need not be its own.
  Stream of(uint32_t node, Device device) const noexcept;

  /// Makes what is current on the caller current on this thread.
  void take_over() const { set_current_devices(caller_); }
  /// Lets a node go on with a gradient that was computed in this thread's current stream.
  void hand_over(const Tensor& grad, uint32_t to) const;
  /// Keeps the memory of a gradient, which the pass leaves to the caller, for the caller's stream.
  void leave_to_caller(const Tensor& grad) const;
  /// Makes what the caller does next run after all nodes, since any of them may have queued work.
  void join() const;

 private:
  Stream callers(Device device) const noexcept;

  const CurrentDevices caller_;
  std::vector<Stream> nodes_;
  std::vector<Stream> used_;  // each once
};

}  // namespace tenon::autograd
