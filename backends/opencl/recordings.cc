#include "recordings.h"

#include "tenon/abi/plugin.h"

namespace opencl {

namespace abi = tenon::abi;

bool Recordings::is_open(cl_command_queue queue) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return open_.count(queue) > 0;
}

void Recordings::begin(cl_command_queue queue) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!open_.try_emplace(queue).second)
    throw abi::Error(TENON_ERROR_RUNTIME, "the stream is being captured already");
  open_count_.store(open_.size(), std::memory_order_release);
}

void Recordings::add(cl_command_queue queue, Command command) {
  const std::lock_guard<std::mutex> lock(mutex_);
  open_.at(queue).push_back(std::move(command));
}

Recordings::Work Recordings::end(cl_command_queue queue) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = open_.find(queue);
  if (found == open_.end()) throw abi::Error(TENON_ERROR_RUNTIME, "the stream is not being captured");
  Work work = std::move(found->second);
  open_.erase(found);
  open_count_.store(open_.size(), std::memory_order_release);
  return work;
}

uint64_t Recordings::keep(std::shared_ptr<const Work> work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  kept_.emplace(++last_, std::move(work));
  return last_;
}

std::shared_ptr<const Recordings::Work> Recordings::get(uint64_t number) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = kept_.find(number);
  if (found == kept_.end())
    throw abi::Error(TENON_ERROR_VALUE, "there is no captured work " + std::to_string(number));
  return found->second;
}

void Recordings::remove(uint64_t number) {
  std::shared_ptr<const Work> last;  // what it keeps goes when nothing is locked
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = kept_.find(number);
  if (found == kept_.end()) return;
  last = std::move(found->second);
  kept_.erase(found);
}

}  // namespace opencl
