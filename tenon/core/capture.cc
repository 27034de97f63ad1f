#include "tenon/core/capture.h"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <string>

#include "tenon/core/device_runtime.h"
#include "tenon/core/error.h"

namespace tenon {
namespace detail {

constinit std::atomic<int> captures{0};

struct Capture {
  explicit Capture(DeviceGraph& of) : graph(of) {}
  const Stream& stream() const noexcept { return graph.stream_; }
  std::vector<Storage>& kept() noexcept { return graph.kept_; }

  DeviceGraph& graph;
  std::unique_ptr<CaptureScope> scope;
  std::string failure;  // what was refused first
};

}  // namespace detail

namespace {

using detail::Capture;

/// The captures that go on.
struct Captures {
  std::mutex mutex;
  std::vector<Capture*> list;
};
Captures& all() {
  static Captures& captures = *new Captures;
  return captures;
}

/// Calls f(capture) under the lock for the capture of a stream, if there is one; what it returned, or false.
template <class F>
bool with_capture(Stream stream, F&& f) {
  if (detail::captures.load(std::memory_order_acquire) == 0) return false;
  stream.device = resolved(stream.device);
  Captures& captures = all();
  const std::lock_guard lock(captures.mutex);
  for (Capture* c : captures.list) {
    if (c->stream() == stream) {
      f(*c);
      return true;
    }
  }
  return false;
}

void add(Capture& capture) {
  Captures& captures = all();
  const std::lock_guard lock(captures.mutex);
  captures.list.push_back(&capture);
  detail::captures.store(static_cast<int>(captures.list.size()), std::memory_order_release);
}
void remove(Capture& capture) noexcept {
  Captures& captures = all();
  const std::lock_guard lock(captures.mutex);
  std::erase(captures.list, &capture);
  detail::captures.store(static_cast<int>(captures.list.size()), std::memory_order_release);
}

DeviceRuntime& runtime_for(Device device) {
  DeviceRuntime* runtime = device_runtime(device.backend);
  TENON_CHECK(runtime && runtime->captures(), NotImplemented,
              fmt::format("capture_begin: device {} records no work to replay it", to_string(device)));
  return *runtime;
}

}  // namespace

bool detail::is_captured(Stream stream) noexcept {
  return with_capture(stream, [](Capture&) {});
}

bool is_capturing(Device device) {
  if (detail::captures.load(std::memory_order_acquire) == 0) return false;
  device = resolved(device);
  Captures& captures = all();
  const std::lock_guard lock(captures.mutex);
  return std::ranges::any_of(captures.list, [&](const Capture* c) { return c->stream().device == device; });
}

void detail::refuse_captured(Device device, const uint64_t* stream, std::string_view what,
                             std::string_view why) {
  device = resolved(device);
  std::string text;
  {
    Captures& captures = all();
    const std::lock_guard lock(captures.mutex);
    for (Capture* c : captures.list) {
      if (c->stream().device != device || (stream && *stream != c->stream().id)) continue;
      text = fmt::format("{}: {} is being captured; {}", what, to_string(c->stream()), why);
      if (c->failure.empty()) c->failure = text;
    }
  }
  if (!text.empty()) throw_error(ErrorKind::Runtime, text);
}

void keep_for_capture(Stream stream, Storage storage) {
  with_capture(stream, [&](Capture& c) { c.kept().push_back(std::move(storage)); });
}

PhiloxState take_philox(const Generator& generator, Device device, uint64_t blocks) {
  const Stream stream = current_stream(device);
  if (!is_capturing(stream)) return generator->take(blocks);
  const Storage fresh = Storage::allocate(2 * sizeof(uint64_t), stream.device);
  PhiloxState taken;
  with_capture(stream, [&](Capture& c) {
    auto& draws = c.graph.draws_;
    auto found = std::find_if(draws.begin(), draws.end(),
                              [&](const auto& d) { return d.generator.impl() == generator.impl(); });
    if (found == draws.end()) found = draws.insert(found, {generator, fresh});
    taken = {0, found->blocks, found->place.address()};
    found->blocks += blocks;
  });
  return taken;
}

DeviceGraph::DeviceGraph() noexcept = default;

DeviceGraph::~DeviceGraph() {
  abandon();
  reset();
}

void DeviceGraph::capture_begin(Stream stream, std::shared_ptr<PrivatePool> pool) {
  stream.device = resolved(stream.device);
  TENON_CHECK(!capture_ && !captured(), Runtime,
              "capture_begin: this graph has been captured already; reset() it first");
  DeviceRuntime& runtime = runtime_for(stream.device);
  TENON_CHECK(
      stream.id != 0, Runtime,
      fmt::format("capture_begin: the default stream of {} cannot be captured; make another the current one",
                  to_string(stream.device)));
  auto* allocator = dynamic_cast<CachingAllocator*>(&allocator_for(stream.device));
  TENON_CHECK(allocator, NotImplemented,
              fmt::format("capture_begin: the memory of {} has no private pools", to_string(stream.device)));
  DeviceCache& cache = allocator->cache(stream.device);
  if (!pool) pool = std::make_shared<PrivatePool>(cache);
  TENON_CHECK(
      &pool->cache() == &cache, Device,
      fmt::format("capture_begin: the pool is one of another device than {}", to_string(stream.device)));
  auto capture = std::make_unique<Capture>(*this);
  capture->scope = std::make_unique<CaptureScope>(*pool, stream);
  runtime.begin_capture(stream);
  stream_ = stream;
  pool_ = std::move(pool);
  capture_ = std::move(capture);
  add(*capture_);
}

void DeviceGraph::capture_end() {
  TENON_CHECK(capture_, Runtime, "capture_end: nothing is being captured");
  const std::string failure = capture_->failure;
  if (!failure.empty()) {
    abandon();
    throw_error(ErrorKind::Runtime, fmt::format("capture_end: the capture has failed: {}", failure));
  }
  remove(*capture_);
  try {
    id_ = device_runtime(stream_.device.backend)->end_capture(stream_, true);
  } catch (...) {
    end_recording();
    throw;
  }
  capture_.reset();
}

void DeviceGraph::abandon() noexcept {
  if (!capture_) return;
  remove(*capture_);
  end_recording();
}

/// Throws away what is recorded.
void DeviceGraph::end_recording() noexcept {
  try {
    device_runtime(stream_.device.backend)->end_capture(stream_, false);
  } catch (...) {
    // A device that has failed, or could not keep what it recorded, records nothing more.
  }
  capture_.reset();
  reset();
}

void DeviceGraph::replay() {
  TENON_CHECK(captured(), Runtime, "replay: nothing has been captured");
  const Stream stream = current_stream(stream_.device);
  TENON_CHECK(
      !is_capturing(stream), Runtime,
      fmt::format("replay: {} is being captured, and a graph is no part of another", to_string(stream)));
  DeviceRuntime& runtime = *device_runtime(stream_.device.backend);
  for (const Draws& draws : draws_) {
    const PhiloxState taken = draws.generator->take(draws.blocks);
    const uint64_t numbers[] = {taken.seed, taken.offset};
    runtime.copy_bytes(stream, draws.place.address(), Place::Device, reinterpret_cast<Address>(numbers),
                       Place::Host, sizeof numbers, 0);
  }
  runtime.launch_capture(stream, id_);
  auto last =
      std::find_if(replayed_.begin(), replayed_.end(), [&](const auto& r) { return r.first == stream; });
  if (last == replayed_.end()) last = replayed_.emplace(last, stream, Event(stream.device));
  last->second.record(stream);
}

void DeviceGraph::reset() noexcept {
  if (capture_) return;
  if (DeviceRuntime* runtime = device_runtime(stream_.device.backend); runtime && captured())
    runtime->destroy_capture(stream_.device, id_);
  id_ = 0;
  // The pool's memory goes back in the order of its stream, which comes after every replay.
  for (auto& [stream, event] : replayed_) {
    try {
      if (is_capturing(stream_))
        event.synchronize();
      else
        event.wait(stream_);
    } catch (...) {
      // A device that has failed gives no memory back.
    }
  }
  replayed_.clear();
  draws_.clear();
  kept_.clear();
  pool_.reset();
}

}  // namespace tenon
