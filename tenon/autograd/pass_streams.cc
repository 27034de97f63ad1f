#include "tenon/autograd/pass_streams.h"

#include <algorithm>

#include "tenon/core/device_runtime.h"

namespace tenon::autograd {

bool has_streams(Device device) noexcept { return device_runtime(device.backend) != nullptr; }

void note_use(const Tensor& t, Stream user) {
  const Storage& storage = t.storage();
  if (!storage || storage.nbytes() == 0 || !storage->allocator()) return;
  storage->allocator()->record_stream(storage.address(), resolved(storage->device()), user);
}

Stream PassStreams::add(const Node& node) {
  Stream stream{kCPU};
  for (size_t i = 0; i < node.num_inputs(); ++i) {
    const Device device = node.input_meta(i).device();
    if (!has_streams(device)) continue;
    stream = node.next_edges().empty() ? callers(device) : node.input_meta(i).stream();
    if (std::ranges::find(used_, stream) == used_.end()) {
      check_stream(stream, "backward");
      used_.push_back(stream);
    }
    break;
  }
  nodes_.push_back(stream);
  return stream;
}

Stream PassStreams::of(uint32_t node, Device device) const noexcept {
  device = resolved(device);
  return nodes_[node].device == device ? nodes_[node] : callers(device);
}

Stream PassStreams::callers(Device device) const noexcept {
  if (device.index < 0) device.index = caller_.index[device.backend];
  for (const Stream& s : caller_.streams) {
    if (s.device == device) return s;
  }
  return {device, 0};
}

void PassStreams::hand_over(const Tensor& grad, uint32_t to) const {
  if (!has_streams(grad.device())) return;
  const Stream reads = of(to, grad.device()), wrote = current_stream(reads.device);
  if (reads == wrote) return;
  Event computed(wrote.device);
  computed.record(wrote);
  computed.wait(reads);
  note_use(grad, reads);
}

void PassStreams::leave_to_caller(const Tensor& grad) const {
  const Device device = resolved(grad.device());
  if (has_streams(device) && current_stream(device) != callers(device)) note_use(grad, callers(device));
}

void PassStreams::join() const {
  for (const Stream stream : used_) {
    const Stream own = callers(stream.device);
    if (own == stream) continue;
    Event passed(stream.device);
    passed.record(stream);
    passed.wait(own);
  }
}

}  // namespace tenon::autograd
