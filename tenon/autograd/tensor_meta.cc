#include "tenon/autograd/tensor_meta.h"

#include <mutex>
#include <unordered_map>

namespace tenon::autograd {
namespace {

/// Every stream that something was recorded in, save the default ones: streams live as long as the process.
struct StreamNumbers {
  std::mutex mutex;
  std::unordered_map<uint64_t, uint32_t> numbers;
  std::vector<uint64_t> ids{0};
};
StreamNumbers& stream_numbers() {
  static StreamNumbers& all = *new StreamNumbers;
  return all;
}

}  // namespace

void TensorMeta::note_stream() noexcept {
  const uint64_t id = current_stream(device_).id;
  if (id == 0) return;
  StreamNumbers& all = stream_numbers();
  const std::lock_guard lock(all.mutex);
  const auto [known, is_new] = all.numbers.try_emplace(id, static_cast<uint32_t>(all.ids.size()));
  if (is_new) all.ids.push_back(id);
  stream_ = known->second;
}

Stream TensorMeta::stream() const {
  if (stream_ == 0) return {resolved(device_), 0};
  StreamNumbers& all = stream_numbers();
  const std::lock_guard lock(all.mutex);
  return {resolved(device_), all.ids[stream_]};
}

}  // namespace tenon::autograd
