// pencil: a small device of one thread, whose addresses are places in its sheet of memory and no pointers of
// the host. All streams share the thread, so that an event is a number of tasks.
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "tenon/abi/kernel.h"
#include "tenon/abi/program.h"

namespace {

namespace abi = tenon::abi;

constexpr uint64_t kFirst = uint64_t{1} << 62;  // no pointer looks like this
constexpr uint64_t kPage = 256;

/// The sheet: which parts of it are free.
class Sheet {
 public:
  explicit Sheet(uint64_t size) : bytes_(size) { free_[0] = size; }
  char* at(TenonAddress address) { return bytes_.data() + (address - kFirst); }
  uint64_t size() const { return bytes_.size(); }

  TenonAddress take(uint64_t nbytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    nbytes = rounded(nbytes);
    for (auto part = free_.begin(); part != free_.end(); ++part) {
      const auto [offset, size] = *part;
      if (size < nbytes) continue;
      free_.erase(part);
      if (size > nbytes) free_[offset + nbytes] = size - nbytes;
      return kFirst + offset;
    }
    throw abi::Error(TENON_ERROR_OUT_OF_MEMORY, "the sheet is full");
  }
  void give_back(TenonAddress address, uint64_t nbytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto here = free_.emplace(address - kFirst, rounded(nbytes)).first;
    const auto next = std::next(here);
    if (next != free_.end() && here->first + here->second == next->first) {
      here->second += next->second;
      free_.erase(next);
    }
    if (here == free_.begin()) return;
    const auto before = std::prev(here);
    if (before->first + before->second != here->first) return;
    before->second += here->second;
    free_.erase(here);
  }

 private:
  static uint64_t rounded(uint64_t n) { return (n + kPage - 1) / kPage * kPage; }
  std::vector<char> bytes_;
  std::map<uint64_t, uint64_t> free_;  // offset, bytes
  std::mutex mutex_;
};

/// The thread, which does what it is given one after the other.
class Hand {
 public:
  Hand() : thread_([this] { work(); }) {}
  ~Hand() { stop(); }
  uint64_t give(std::function<void()> task) {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_all();
    return ++given_;
  }
  uint64_t given() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return given_;
  }
  void wait_for(uint64_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= count || stopping_; });
  }
  void stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
      if (stopping_) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  uint64_t given_ = 0, done_ = 0;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

struct Pencil {
  explicit Pencil(abi::Options options) : sheet(options.number("memory", uint64_t{64} << 20)) {
    options.finish();
  }
  Sheet sheet;
  Hand hand;
  std::mutex mutex;
  uint64_t last_id = 0;
  std::map<uint64_t, uint64_t> events;  // id: how many tasks come before
};
Pencil& of(void* self) { return *static_cast<Pencil*>(self); }

int32_t device_count(void*) { return 1; }
TenonStatus* properties(void* self, int32_t, TenonDeviceProperties* out) {
  TenonDeviceProperties p{};
  p.struct_size = sizeof p;
  p.description = "pencil, a device of one thread";
  p.granularity = kPage;
  p.total_memory = of(self).sheet.size();
  p.ops_printed = abi::kKnownOps;
  std::memcpy(out, &p, out->struct_size < sizeof p ? out->struct_size : sizeof p);
  return nullptr;
}
TenonStatus* raw_alloc(void* self, int32_t, uint64_t nbytes, TenonAddress* out) {
  return abi::guarded([&] { *out = of(self).sheet.take(nbytes); });
}
TenonStatus* raw_free(void* self, int32_t, TenonAddress address, uint64_t nbytes) {
  return abi::guarded([&] { of(self).sheet.give_back(address, nbytes); });
}
TenonStatus* copy(void* self, TenonStream, TenonAddress dst, TenonPlace dst_place, TenonAddress src,
                  TenonPlace src_place, uint64_t nbytes, uint32_t flags) {
  return abi::guarded([&] {
    Pencil& p = of(self);
    const auto pointer = [&](TenonAddress address, TenonPlace place) {
      return place == TENON_PLACE_HOST ? reinterpret_cast<char*>(address) : p.sheet.at(address);
    };
    const uint64_t task = p.hand.give([to = pointer(dst, dst_place), from = pointer(src, src_place), nbytes] {
      std::memmove(to, from, nbytes);
    });
    const bool with_host = dst_place == TENON_PLACE_HOST || src_place == TENON_PLACE_HOST;
    if (with_host && !(flags & TENON_COPY_HOST_STAYS)) p.hand.wait_for(task);
  });
}
TenonStatus* new_id(void* self, int32_t, uint64_t* out) {
  return abi::guarded([&] {
    const std::lock_guard<std::mutex> lock(of(self).mutex);
    *out = ++of(self).last_id;
  });
}
TenonStatus* stream_sync(void* self, TenonStream) {
  return abi::guarded([&] { of(self).hand.wait_for(of(self).hand.given()); });
}
TenonStatus* event_free(void* self, int32_t, uint64_t event) {
  return abi::guarded([&] {
    const std::lock_guard<std::mutex> lock(of(self).mutex);
    of(self).events.erase(event);
  });
}
TenonStatus* event_record(void* self, int32_t, uint64_t event, TenonStream) {
  return abi::guarded([&] {
    const std::lock_guard<std::mutex> lock(of(self).mutex);
    of(self).events[event] = of(self).hand.given();
  });
}
TenonStatus* event_sync(void* self, int32_t, uint64_t event) {
  return abi::guarded([&] {
    std::unique_lock<std::mutex> lock(of(self).mutex);
    const uint64_t count = of(self).events[event];
    lock.unlock();
    of(self).hand.wait_for(count);
  });
}
/// One thread runs all streams in the order in which work was given: what is recorded comes first.
TenonStatus* stream_wait_event(void*, TenonStream, int32_t, uint64_t) { return nullptr; }

TenonStatus* pointwise(void* self, const TenonLaunch* launch) {
  return abi::guarded([&] {
    if (!abi::evaluates(*launch->program)) throw abi::Declined();
    Pencil& p = of(self);
    p.hand.give([&p, kept = abi::KeptLaunch(*launch)] {
      abi::run(*kept, [&p](const TenonOperand& o) -> void* {
        return o.place == TENON_PLACE_HOST ? reinterpret_cast<void*>(o.address) : p.sheet.at(o.address);
      });
    });
  });
}
void shutdown(void* self) { of(self).hand.stop(); }

const TenonDeviceTable& table() {
  static const TenonDeviceTable filled = [] {
    TenonDeviceTable t{};
    t.struct_size = sizeof t;
    t.device_count = &device_count;
    t.properties = &properties;
    t.raw_alloc = &raw_alloc;
    t.raw_free = &raw_free;
    t.copy = &copy;
    t.stream_new = t.event_new = &new_id;
    t.stream_free = t.stream_sync = &stream_sync;
    t.event_free = &event_free;
    t.event_record = &event_record;
    t.event_sync = &event_sync;
    t.stream_wait_event = &stream_wait_event;
    t.pointwise = &pointwise;
    t.shutdown = &shutdown;
    return t;
  }();
  return filled;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] TenonStatus* tenon_plugin_v1(const TenonHost* host,
                                                                       const TenonOptions* options,
                                                                       TenonPlugin* out) {
  abi::set_host(host);
  return abi::guarded([&] {
    TenonPlugin plugin{};
    plugin.struct_size = sizeof plugin;
    plugin.built_minor = TENON_ABI_MINOR;
    plugin.self = new Pencil(abi::Options(options));
    plugin.name = "pencil";
    plugin.key = "Pencil";
    plugin.table = &table();
    plugin.close = [](void* self) { delete static_cast<Pencil*>(self); };
    std::memcpy(out, &plugin, out->struct_size < sizeof plugin ? out->struct_size : sizeof plugin);
  });
}
