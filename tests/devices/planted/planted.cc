// A device for the tests of the conformance kit, with one fault that an option plants: plant=NAME. Without
// one it is right. Its memory cannot be read by the host, and work runs only when something waits, so that a
// fault shows every time.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "tenon/abi/kernel.h"
#include "tenon/abi/program.h"

namespace {

namespace abi = tenon::abi;
using Task = std::function<void()>;

constexpr int32_t kDevices = 2;
constexpr uint64_t kLimit = uint64_t{1} << 28;  // Of each device.
constexpr uint64_t kAside = 1000;               // A queue of the plug-in's own.

struct Planted {
  explicit Planted(abi::Options options) : plant(options.text("plant", "")) {
    options.finish();
    const int file = memfd_create("planted", MFD_CLOEXEC);
    constexpr uint64_t whole = kDevices * kLimit;
    if (ftruncate(file, whole) != 0) throw abi::Error(TENON_ERROR_RUNTIME, "no memory");
    base = reinterpret_cast<uint64_t>(mmap(nullptr, whole, PROT_NONE, MAP_SHARED, file, 0));
    seen = static_cast<char*>(mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    ::close(file);
  }
  bool has(const char* name) const { return plant == name; }
  /// Where the device finds what has an address.
  char* at(uint64_t address) const { return seen + (address - base); }

  uint64_t queue_of(TenonStream stream) const {
    if (has("one queue")) return 0;
    return uint64_t(has("one device's queues") ? 0 : stream.device.index) << 32 | stream.id;
  }
  void give(uint64_t queue, Task task) {
    const std::lock_guard<std::mutex> lock(mutex);
    queues[queue].push_back(std::move(task));
    ++given[queue];
  }
  /// Runs the queue's first tasks, until so many of it have run.
  void run(uint64_t queue, uint64_t count) {
    const std::lock_guard<std::recursive_mutex> running(order);
    for (;;) {
      Task task;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (done[queue] >= count || queues[queue].empty()) return;
        task = std::move(queues[queue].front());
        queues[queue].pop_front();
        ++done[queue];
      }
      task();
    }
  }
  void run(uint64_t queue) { run(queue, given[queue]); }

  const std::string plant;
  uint64_t base = 0, last_id = 0;
  uint64_t used[kDevices] = {}, taken[kDevices] = {};  // What was ever handed out, and what is.
  char* seen = nullptr;
  std::map<uint64_t, std::deque<uint64_t>> free_blocks[kDevices];  // by size
  std::map<uint64_t, std::deque<Task>> queues;
  std::map<uint64_t, uint64_t> given, done;
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> events;  // queue, count
  std::map<uint64_t, std::chrono::steady_clock::time_point> times;
  std::mutex mutex;
  std::recursive_mutex order;
};

Planted& of(void* self) { return *static_cast<Planted*>(self); }

// ---- The table ----

int32_t device_count(void*) { return kDevices; }
TenonStatus* properties(void* self, int32_t, TenonDeviceProperties* out) {
  static const TenonDType floats[] = {TENON_DTYPE_FLOAT32, TENON_DTYPE_FLOAT64};
  const Planted& d = of(self);
  TenonDeviceProperties p{};
  p.struct_size = sizeof p;
  p.granularity = 64;
  p.description = "a device with a planted fault";
  p.total_memory = kLimit;
  p.num_dtypes = d.has("claim") || d.has("float32 alone") ? 1 : d.has("typed kernels") ? 2 : 0;
  p.dtypes = p.num_dtypes ? floats : nullptr;
  if (d.has("float32 alone")) p.ops_printed = abi::kKnownOps;
  std::memcpy(out, &p, out->struct_size < sizeof p ? out->struct_size : sizeof p);
  return nullptr;
}
TenonStatus* raw_alloc(void* self, int32_t index, uint64_t nbytes, TenonAddress* out) {
  return abi::guarded([&] {
    Planted& d = of(self);
    const std::lock_guard<std::mutex> lock(d.mutex);
    if (d.has("index of memory")) index = 0;
    const uint64_t size = (nbytes + 63) / 64 * 64;
    auto& blocks = d.free_blocks[index][size];
    if (blocks.empty() && d.used[index] + size > kLimit)
      throw abi::Error(d.has("out of memory") ? TENON_ERROR_RUNTIME : TENON_ERROR_OUT_OF_MEMORY,
                       "it is full");
    d.taken[index] += size;
    if (!blocks.empty()) {
      *out = blocks.front();
      blocks.pop_front();
      return;
    }
    *out = d.base + uint64_t(index) * kLimit + d.used[index];
    d.used[index] += size;
  });
}
TenonStatus* raw_free(void* self, int32_t, TenonAddress address, uint64_t nbytes) {
  return abi::guarded([&] {
    Planted& d = of(self);
    const std::lock_guard<std::mutex> lock(d.mutex);
    const uint64_t index = (address - d.base) / kLimit, size = (nbytes + 63) / 64 * 64;
    d.free_blocks[index][size].push_back(address);
    d.taken[index] -= size;
  });
}
TenonStatus* memory_info(void* self, int32_t index, uint64_t* free_bytes, uint64_t* total_bytes) {
  return abi::guarded([&] {
    Planted& d = of(self);
    *free_bytes = kLimit - d.taken[d.has("index of figures") ? 0 : index];
    *total_bytes = kLimit;
    if (d.has("memory info")) std::swap(*free_bytes, *total_bytes);
  });
}
TenonStatus* copy(void* self, TenonStream stream, TenonAddress dst, TenonPlace dst_place, TenonAddress src,
                  TenonPlace src_place, uint64_t nbytes, uint32_t) {
  return abi::guarded([&] {
    Planted& d = of(self);
    char* to = dst_place == TENON_PLACE_HOST ? reinterpret_cast<char*>(dst) : d.at(dst);
    const uint64_t queue = d.queue_of(stream);
    if (d.has("half of a copy") && nbytes > 100000) nbytes /= 2;
    if (src_place == TENON_PLACE_HOST) {
      const char* from = reinterpret_cast<const char*>(src);
      d.give(queue, [to, bytes = std::vector<char>(from, from + nbytes)] {
        std::memcpy(to, bytes.data(), bytes.size());
      });
      return;
    }
    d.give(queue, [to, from = d.at(src), nbytes] { std::memmove(to, from, nbytes); });
    if (dst_place != TENON_PLACE_HOST) return;
    d.run(queue, d.given[queue] - 1);
    d.run(kAside);
    d.run(queue);
  });
}
TenonStatus* stream_new(void* self, int32_t, uint64_t* out) {
  *out = of(self).has("stream id") ? 7 : ++of(self).last_id;
  return nullptr;
}
TenonStatus* stream_free(void* self, TenonStream stream) {
  return abi::guarded([&] { of(self).run(of(self).queue_of(stream)); });
}
TenonStatus* stream_sync(void* self, TenonStream stream) {
  return abi::guarded([&] {
    of(self).run(of(self).queue_of(stream));
    of(self).run(kAside);
  });
}
TenonStatus* event_new(void* self, int32_t, uint64_t* out) {
  *out = ++of(self).last_id;
  return nullptr;
}
TenonStatus* event_free(void*, int32_t, uint64_t) { return nullptr; }
TenonStatus* event_record(void* self, int32_t, uint64_t event, TenonStream stream) {
  return abi::guarded([&] {
    Planted& d = of(self);
    const uint64_t queue = d.queue_of(stream);
    d.give(queue, [&d, event] { d.times[event] = std::chrono::steady_clock::now(); });
    d.events[event] = {queue, d.has("event at once") ? 0 : d.given[queue]};
  });
}
TenonStatus* event_sync(void* self, int32_t, uint64_t event) {
  return abi::guarded([&] {
    const auto [queue, count] = of(self).events[event];
    of(self).run(queue, count);
  });
}
TenonStatus* event_query(void* self, int32_t, uint64_t event, int32_t* out) {
  return abi::guarded([&] {
    Planted& d = of(self);
    const auto [queue, count] = d.events[event];
    *out = d.has("query yes") || (d.done[queue] >= count && !d.has("query no"));
  });
}
TenonStatus* event_elapsed(void* self, int32_t, uint64_t begin, uint64_t end, double* out) {
  return abi::guarded([&] {
    Planted& d = of(self);
    *out = std::chrono::duration<double, std::milli>(d.times[end] - d.times[begin]).count();
    if (d.has("elapsed time")) *out = -*out;
    if (d.has("seconds")) *out /= 1000;
  });
}
TenonStatus* stream_wait_event(void* self, TenonStream stream, int32_t, uint64_t event) {
  return abi::guarded([&] {
    Planted& d = of(self);
    if (d.has("wait for event")) return;
    d.give(d.queue_of(stream), [&d, place = d.events[event]] { d.run(place.first, place.second); });
  });
}

// ---- Kernels, of float32 alone ----

/// What a kernel that runs later knows of a tensor.
struct Strided {
  Strided(const Planted& d, const TenonTensorView& v)
      : data(reinterpret_cast<float*>(d.at(v.address))), sizes(v.sizes, v.sizes + v.ndim) {
    strides.assign(v.strides, v.strides + v.ndim);
    if (d.has("host access")) data = reinterpret_cast<float*>(v.address);
    if (d.has("offset")) data = reinterpret_cast<float*>(d.at(v.storage_address));
    if (d.has("negative stride"))
      for (int64_t& s : strides) s = std::abs(s);
  }
  /// As if it were contiguous.
  Strided& dense() {
    int64_t step = 1;
    for (size_t d = sizes.size(); d-- > 0; step *= sizes[d]) strides[d] = step;
    return *this;
  }
  float& operator[](int64_t i) const {
    int64_t offset = 0;
    for (size_t d = sizes.size(); d-- > 0; i /= sizes[d]) offset += i % sizes[d] * strides[d];
    return data[offset];
  }
  float* data;
  std::vector<int64_t> sizes, strides;
};

bool is_served(const TenonTensorView& v) { return v.dtype == TENON_DTYPE_FLOAT32; }

uint64_t queue_of(const Planted& d, const abi::Call& call) {
  TenonStream stream = call.stream();
  if (d.has("index of streams")) stream.device.index = 0;
  return d.has("record_stream") ? kAside : d.queue_of(stream);
}

void absolute(Planted& d, abi::Call& call, const TenonTensorView& result, const TenonTensorView& x) {
  Strided from(d, x), to(d, result);
  if (d.has("contiguity")) from.dense();
  const bool lose_nan = d.has("nan");
  if (d.has("large") && x.numel >= 100) return;
  const Task task = [from, to, n = x.numel, lose_nan] {
    for (int64_t i = 0; i < n; ++i) to[i] = lose_nan && std::isnan(from[i]) ? 0 : std::fabs(from[i]);
  };
  if (d.has("host access") || d.has("stream order")) return task();
  d.give(queue_of(d, call), task);
}

abi::Tensor abs_kernel(abi::Call& call, const abi::Tensor& self) {
  auto& d = call.self<Planted>();
  const TenonTensorView x = self.view();
  if (!is_served(x) || d.has("claim")) call.decline();
  abi::Tensor result = abi::empty_like(self);
  if (d.has("result strides") && x.ndim == 2) {
    const int64_t strides[] = {1, x.sizes[0]};
    TenonTensor* out = nullptr;
    abi::check(abi::host().tensor_empty(x.sizes, strides, 2, x.dtype, x.device, &out));
    result = abi::Tensor::adopt(out);
  }
  if (x.numel > 0) absolute(d, call, result.view(), x);
  return result;
}

abi::Tensor abs_out(abi::Call& call, const abi::Tensor& self, const abi::Tensor& out) {
  auto& d = call.self<Planted>();
  const TenonTensorView x = self.view(), o = out.view();
  if (!is_served(x) || !is_served(o) || x.storage_address == o.storage_address) call.decline();
  const bool fits = o.ndim == x.ndim && std::equal(o.sizes, o.sizes + o.ndim, x.sizes);
  if (!fits && d.has("out size")) return out;
  if (!fits && !(x.flags & TENON_TENSOR_CONTIGUOUS)) call.decline();
  if (!fits) abi::check(abi::host().tensor_resize(out.get(), x.sizes, x.ndim));
  if (x.numel > 0) absolute(d, call, out.view(), x);
  return out;
}

bool same_sizes(const TenonTensorView& a, const TenonTensorView& b) {
  return a.ndim == b.ndim && std::equal(a.sizes, a.sizes + a.ndim, b.sizes);
}

double number(const TenonScalar& s) { return s.kind == 2 ? s.value.d : static_cast<double>(s.value.i); }

abi::Tensor add_kernel(abi::Call& call, const abi::Tensor& self, const abi::Tensor& other,
                       const TenonScalar& alpha) {
  auto& d = call.self<Planted>();
  const TenonTensorView x = self.view(), y = other.view();
  const bool promotes = d.has("promotion") && y.dtype == TENON_DTYPE_FLOAT64;
  if (!(x.flags & TENON_TENSOR_CONTIGUOUS)) call.decline();
  if (!is_served(x) || !same_sizes(x, y) || (!is_served(y) && !promotes)) call.decline();
  abi::Tensor result = abi::empty_like(self);
  if (promotes) return result;
  d.give(queue_of(d, call), [from = Strided(d, x), more = Strided(d, y), to = Strided(d, result.view()),
                             n = x.numel, by = static_cast<float>(number(alpha))] {
    for (int64_t i = 0; i < n; ++i) to[i] = std::fma(by, more[i], from[i]);
  });
  return result;
}

/// Adds in the order of elements; the fault is that nobody looks whether memory is shared.
abi::Tensor add_in_place(abi::Call& call, const abi::Tensor& self, const abi::Tensor& other,
                         const TenonScalar& alpha) {
  auto& d = call.self<Planted>();
  const TenonTensorView x = self.view(), y = other.view();
  if (!is_served(x) || !is_served(y) || !same_sizes(x, y) || !d.has("aliasing")) call.decline();
  d.give(queue_of(d, call),
         [to = Strided(d, x), more = Strided(d, y), n = x.numel, by = static_cast<float>(number(alpha))] {
           for (int64_t i = 0; i < n; ++i) to[i] = std::fma(by, more[i], to[i]);
         });
  return self;
}

/// The program with each f32 fma as a product that is rounded, and a sum.
struct Rewritten {
  explicit Rewritten(const TenonProgram& given) : program(given) {
    std::vector<uint32_t> place;
    for (uint32_t id = 0; id < given.num_nodes; ++id) {
      TenonNode node = given.nodes[id];
      for (int i = 0; i < node.arity; ++i) node.args[i] = place[node.args[i]];
      if (node.op == TENON_OP_FMA && node.type == TENON_TYPE_F32) {
        TenonNode product = node;
        product.op = TENON_OP_MUL;
        product.arity = 2;
        nodes.push_back(product);
        node.op = TENON_OP_ADD;
        node.arity = 2;
        node.args[0] = static_cast<uint32_t>(nodes.size() - 1);
        node.args[1] = node.args[2];
      }
      place.push_back(static_cast<uint32_t>(nodes.size()));
      nodes.push_back(node);
    }
    for (uint32_t k = 0; k < given.num_outputs; ++k) outputs.push_back(place[given.outputs[k]]);
    program.nodes = nodes.data();
    program.num_nodes = static_cast<uint32_t>(nodes.size());
    program.outputs = outputs.data();
  }
  std::vector<TenonNode> nodes;
  std::vector<uint32_t> outputs;
  TenonProgram program;
};

/// Runs programs. "rounding" rounds the products in fma. "gradient stride" takes what derivatives get to be
/// contiguous, that is the first input of programs of several operands over several dimensions; "second
/// derivative" takes that of derivatives of derivatives to be one number.
TenonStatus* pointwise(void* self, const TenonLaunch* launch) {
  return abi::guarded([&] {
    Planted& d = of(self);
    if (!abi::evaluates(*launch->program)) throw abi::Declined();
    for (uint32_t k = 0;
         d.has("float32 alone") && k < launch->program->num_outputs + launch->program->num_inputs; ++k)
      if (launch->operands[k].dtype != TENON_DTYPE_FLOAT32) throw abi::Declined();
    std::vector<TenonOperand> operands(
        launch->operands, launch->operands + launch->program->num_outputs + launch->program->num_inputs);
    std::vector<int64_t> strides;
    TenonLaunch changed = *launch;
    const std::string_view name = launch->name;
    const size_t once = name.find("backward"), last = name.rfind("backward");
    const bool second = d.has("second derivative") && once != last;
    if (second || (d.has("gradient stride") && once != name.npos)) {
      TenonOperand& gradient = operands[launch->program->num_outputs];
      int64_t step = second ? 0 : 4;
      for (uint32_t k = 0; k < launch->ndim; step *= launch->sizes[k++]) strides.push_back(step);
      gradient.strides = strides.data();
      changed.operands = operands.data();
    }
    const auto rewritten = std::make_shared<Rewritten>(*launch->program);
    if (d.has("rounding")) changed.program = &rewritten->program;
    d.give(d.queue_of(launch->stream), [&d, rewritten, kept = abi::KeptLaunch(changed)] {
      abi::run(*kept, [&d](const TenonOperand& o) -> void* {
        return o.place == TENON_PLACE_HOST ? reinterpret_cast<void*>(o.address) : d.at(o.address);
      });
    });
  });
}

const TenonDeviceTable& table() {
  static const TenonDeviceTable filled = [] {
    TenonDeviceTable t{};
    t.struct_size = sizeof t;
    t.device_count = &device_count;
    t.properties = &properties;
    t.raw_alloc = &raw_alloc;
    t.raw_free = &raw_free;
    t.copy = &copy;
    t.memory_info = &memory_info;
    t.stream_new = &stream_new;
    t.stream_free = &stream_free;
    t.stream_sync = &stream_sync;
    t.event_new = t.event_new_timed = &event_new;
    t.event_free = &event_free;
    t.event_record = &event_record;
    t.event_sync = &event_sync;
    t.event_query = &event_query;
    t.event_elapsed = &event_elapsed;
    t.stream_wait_event = &stream_wait_event;
    t.pointwise = &pointwise;
    return t;
  }();
  return filled;
}

}  // namespace

TENON_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("abs", &abs_kernel);
  m.impl("abs.out", &abs_out);
  m.impl("add.Tensor", &add_kernel);
  m.impl("add_.Tensor", &add_in_place);
}

extern "C" [[gnu::visibility("default")]] TenonStatus* tenon_plugin_v1(const TenonHost* host,
                                                                       const TenonOptions* options,
                                                                       TenonPlugin* out) {
  abi::set_host(host);
  return abi::guarded([&] {
    TenonPlugin plugin{};
    plugin.struct_size = sizeof plugin;
    plugin.built_minor = TENON_ABI_MINOR;
    plugin.self = new Planted(abi::Options(options));
    plugin.name = "planted";
    plugin.key = "Planted";
    plugin.table = &table();
    plugin.register_kernels = &abi::register_blocks;
    std::memcpy(out, &plugin, out->struct_size < sizeof plugin ? out->struct_size : sizeof plugin);
  });
}
