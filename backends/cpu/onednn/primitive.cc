#include "backends/cpu/onednn/primitive.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <optional>
#include <string_view>

#include "tenon/core/error.h"
#include "tenon/core/parallel.h"
#include "tenon/core/storage.h"

namespace tenon::cpu::onednn {
namespace {

constexpr size_t kKept = 256;

const Api& api() { return library().api; }

void check(int status, const char* what) {
  constexpr int kOutOfMemory = 1;
  if (status == 0) return;
  throw_error(status == kOutOfMemory ? ErrorKind::OutOfMemory : ErrorKind::Internal,
              fmt::format("oneDNN: {} failed with status {}", what, status));
}

/// An object of oneDNN's, with its function that ends it.
template <class T>
struct Destroy {
  int (*function)(T*) = nullptr;
  void operator()(T* object) const { function(object); }
};
template <class T>
using Owned = std::unique_ptr<T, Destroy<T>>;
template <class T>
Owned<T> owned(T* object, int (*destroy)(T*)) {
  return Owned<T>(object, {destroy});
}

Owned<LayoutObject> make(const Layout& layout) {
  Sizes sizes{}, strides{};
  std::copy(layout.sizes.begin(), layout.sizes.end(), sizes);
  std::copy(layout.strides.begin(), layout.strides.end(), strides);
  LayoutObject* made = nullptr;
  const int ndim = static_cast<int>(layout.sizes.size());
  if (ndim) check(api().memory_desc_create_with_strides(&made, ndim, sizes, kFloat32, strides), "a layout");
  return owned(made, api().memory_desc_destroy);
}

Owned<LayoutObject> any_layout(const Dims& all) {
  Sizes sizes{};
  std::copy(all.begin(), all.end(), sizes);
  LayoutObject* made = nullptr;
  check(api().memory_desc_create_with_tag(&made, static_cast<int>(all.size()), sizes, kFloat32, kAnyTag),
        "a layout");
  return owned(made, api().memory_desc_destroy);
}

/// Bytes at an address, as oneDNN's functions take them; an address for as long as this lives.
class Memory {
 public:
  Memory(const LayoutObject* layout, void* address) {
    check(api().memory_create(&object_, layout, library().engine, address), "an operand");
  }
  ~Memory() { api().memory_destroy(object_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  MemoryObject* get() const noexcept { return object_; }

 private:
  MemoryObject* object_ = nullptr;
};

/// Each thread has its own; work is done when a call returns.
class Stream {
 public:
  Stream() { check(api().stream_create(&object_, library().engine, 0), "a stream"); }
  ~Stream() { api().stream_destroy(object_); }
  void run(const PrimitiveObject* primitive, std::span<const Argument> arguments) {
    check(api().primitive_execute(primitive, object_, static_cast<int>(arguments.size()), arguments.data()),
          "a call");
    check(api().stream_wait(object_), "a call");
  }

 private:
  StreamObject* object_ = nullptr;
};

Stream& stream() {
  thread_local Stream mine;
  return mine;
}

Owned<AttributeObject> make_attributes(std::span<const PostOp> all) {
  PostOpsObject* raw_list = nullptr;
  check(api().post_ops_create(&raw_list), "a list of post-ops");
  const auto list = owned(raw_list, api().post_ops_destroy);
  for (const PostOp& op : all) {
    if (op.is_binary)
      check(api().post_ops_append_binary(list.get(), op.algorithm, make(op.operand).get()), "a post-op");
    else
      check(api().post_ops_append_eltwise(list.get(), op.algorithm, op.alpha, op.beta), "a post-op");
  }
  AttributeObject* raw = nullptr;
  check(api().primitive_attr_create(&raw), "attributes");
  auto made = owned(raw, api().primitive_attr_destroy);
  check(api().primitive_attr_set_post_ops(made.get(), list.get()), "attributes");
  // Scratch memory comes with each call, so that calls of several threads do not share it; and no variable
  // of the environment makes the arithmetic less exact.
  check(api().primitive_attr_set_scratchpad_mode(made.get(), kUserScratchpad), "attributes");
  check(api().primitive_attr_set_fpmath_mode(made.get(), kStrictMaths), "attributes");
  return made;
}

/// What a primitive is made of, with the layouts that oneDNN chose.
struct Made {
  Owned<SketchObject> sketch;
  Owned<PrimitiveObject> primitive;

  const LayoutObject* layout(int query) const {
    return api().primitive_desc_query_md(sketch.get(), query, 0);
  }
};

Made finish(Owned<SketchObject> sketch) {
  PrimitiveObject* primitive = nullptr;
  check(api().primitive_create(&primitive, sketch.get()), "a primitive");
  return {std::move(sketch), owned(primitive, api().primitive_destroy)};
}

/// Nothing where both are the same.
std::optional<Made> reorder(const LayoutObject* from, const LayoutObject* to) {
  if (api().memory_desc_equal(from, to)) return std::nullopt;
  EngineObject* const engine = library().engine;
  SketchObject* raw = nullptr;
  check(api().reorder_primitive_desc_create(&raw, from, engine, to, engine, make_attributes({}).get()),
        "a change of layout");
  return finish(owned(raw, api().primitive_desc_destroy));
}

}  // namespace

struct Primitive::Parts {
  Owned<LayoutObject> source, weights, bias, result;  ///< As described.
  std::vector<Owned<LayoutObject>> operands;          ///< Of post-ops; null for functions of one argument.
  Made made;
  /// To the layouts that oneDNN chose, and from that of its result, where these are others.
  std::optional<Made> reorder_source, reorder_weights, reorder_result;
};

Primitive::Primitive(const Description& description, std::unique_ptr<Parts> parts)
    : description_(description), parts_(std::move(parts)) {}
Primitive::~Primitive() = default;

namespace {

/// Memory of one call.
class Scratch {
 public:
  void* take(const LayoutObject* layout) {
    held_.push_back(Storage::allocate(api().memory_desc_get_size(layout)));
    return reinterpret_cast<void*>(held_.back().address());
  }

 private:
  std::vector<Storage> held_;
};

void run_reorder(const Made& reorder, const LayoutObject* from_layout, void* from,
                 const LayoutObject* to_layout, void* to, Scratch& scratch) {
  const LayoutObject* const space = reorder.layout(kQueryScratchpad);
  const Memory source(from_layout, from), destination(to_layout, to), spare(space, scratch.take(space));
  const Argument arguments[] = {
      {kSource, source.get()}, {kDestination, destination.get()}, {kScratchpad, spare.get()}};
  stream().run(reorder.primitive.get(), arguments);
}

}  // namespace

void Primitive::run(const Operands& o) const {
  const Parts& p = *parts_;
  Scratch scratch;
  const LayoutObject *const source = p.made.layout(kQuerySource),
                            *const weights = p.made.layout(kQueryWeights),
                            *const result = p.made.layout(kQueryResult),
                            *const space = p.made.layout(kQueryScratchpad);
  const auto brought = [&](const std::optional<Made>& reorder, const LayoutObject* from,
                           const LayoutObject* to, void* address) {
    if (!reorder) return address;
    void* const there = scratch.take(to);
    run_reorder(*reorder, from, address, to, there, scratch);
    return there;
  };
  // In a list, so that none moves.
  std::list<Memory> all;
  std::vector<Argument> arguments;
  const auto add = [&](int kind, const LayoutObject* layout, void* address) {
    arguments.push_back({kind, all.emplace_back(layout, address).get()});
  };
  void* const made = p.reorder_result ? scratch.take(result) : o.result;
  add(kSource, source, brought(p.reorder_source, p.source.get(), source, o.source));
  add(kWeights, weights, brought(p.reorder_weights, p.weights.get(), weights, o.weights));
  if (p.bias) add(kBias, p.bias.get(), o.bias);
  add(kDestination, result, made);
  add(kScratchpad, space, scratch.take(space));
  for (size_t i = 0; i < p.operands.size(); ++i) {
    if (p.operands[i])
      add(kPostOp * static_cast<int>(i + 1) | kSecondOperand, p.operands[i].get(), o.post_ops[i]);
  }
  stream().run(p.made.primitive.get(), arguments);
  if (p.reorder_result) run_reorder(*p.reorder_result, result, made, p.result.get(), o.result, scratch);
}

std::shared_ptr<const Primitive> Primitive::make(const Description& d, std::string& problem) {
  // As many threads as the caller's loops have; a primitive keeps their number.
  const OpenMpThreads threads;
  const auto attributes = make_attributes(d.post_ops);
  auto parts = std::make_unique<Parts>(onednn::make(d.source), onednn::make(d.weights), onednn::make(d.bias),
                                       onednn::make(d.result));
  for (const PostOp& op : d.post_ops) parts->operands.push_back(onednn::make(op.operand));
  SketchObject* raw = nullptr;
  EngineObject* const engine = library().engine;
  int status = 0;
  if (d.is_convolution) {
    Sizes strides{}, dilations{}, padding{};
    std::copy(d.window.strides.begin(), d.window.strides.end(), strides);
    std::copy(d.window.padding.begin(), d.window.padding.end(), padding);
    // Elements that are left out between two of a window.
    for (size_t i = 0; i < d.window.dilations.size(); ++i) dilations[i] = d.window.dilations[i] - 1;
    // For images and weights in their own order it has the slowest of its kernels.
    const auto source = any_layout(d.source.sizes), weights = any_layout(d.weights.sizes),
               result = any_layout(d.result.sizes);
    status = api().convolution_forward_primitive_desc_create(
        &raw, engine, kForwardInference, kConvolutionDirect, source.get(), weights.get(), parts->bias.get(),
        result.get(), strides, dilations, padding, padding, attributes.get());
  } else {
    status = api().matmul_primitive_desc_create(&raw, engine, parts->source.get(), parts->weights.get(),
                                                parts->bias.get(), parts->result.get(), attributes.get());
  }
  if (status != 0) {
    problem = fmt::format("oneDNN has no implementation of it (status {})", status);
    return nullptr;
  }
  auto sketch = owned(raw, api().primitive_desc_destroy);
  const char* implementation = "";
  check(api().primitive_desc_query(raw, kQueryImplementation, 0, &implementation), "a question");
  if (std::string_view(implementation).find("ref") != std::string_view::npos) {
    problem = fmt::format("oneDNN has nothing but a reference implementation of it ({})", implementation);
    return nullptr;
  }
  parts->made = finish(std::move(sketch));
  parts->reorder_source = reorder(parts->source.get(), parts->made.layout(kQuerySource));
  parts->reorder_weights = reorder(parts->weights.get(), parts->made.layout(kQueryWeights));
  parts->reorder_result = reorder(parts->made.layout(kQueryResult), parts->result.get());
  return std::shared_ptr<const Primitive>(new Primitive(d, std::move(parts)));
}

namespace {

/// Primitives by description, the last one used first.
struct Cache {
  struct Entry {
    std::shared_ptr<const Primitive> primitive;
    Description description;
    std::string problem;
  };
  std::mutex mutex;
  std::list<Entry> entries;
};

Cache& cache() {
  static Cache& all = *new Cache;  // outlives what runs at the end of the process
  return all;
}

}  // namespace

std::shared_ptr<const Primitive> Primitive::find(const Description& d, std::string& problem) {
  const std::lock_guard lock(cache().mutex);
  std::list<Cache::Entry>& entries = cache().entries;
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const Cache::Entry& e) { return e.description == d; });
  if (found != entries.end()) {
    entries.splice(entries.begin(), entries, found);
  } else {
    if (entries.size() == kKept) entries.pop_back();
    entries.push_front({nullptr, d, {}});
    try {
      entries.front().primitive = make(d, entries.front().problem);
    } catch (...) {
      entries.pop_front();
      throw;
    }
  }
  problem = entries.front().problem;
  return entries.front().primitive;
}

}  // namespace tenon::cpu::onednn
