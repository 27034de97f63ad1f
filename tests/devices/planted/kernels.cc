// The planted device's kernels, of float32 alone, a stub and programs; and what it exports.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "planted.h"
#include "tenon/abi/kernel.h"
#include "tenon/abi/program.h"

namespace planted {
namespace {

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
  if (d.has("five dimensions") && x.ndim > 4) from.strides[0] = from.strides[1] * from.sizes[1];
  const bool lose_nan = d.has("nan");
  if (d.has("large") && x.numel >= 100) return;
  const int64_t count = d.has("last of a block") && x.numel % 256 == 0 ? x.numel - 1 : x.numel;
  if (d.has("scratch buffer")) {
    d.give(queue_of(d, call), [&d, from, count] {
      d.scratch.resize(std::max<size_t>(d.scratch.size(), count));
      for (int64_t i = 0; i < count; ++i) d.scratch[i] = std::fabs(from[i]);
    });
    return d.give(queue_of(d, call), [&d, to, count] {
      for (int64_t i = 0; i < count; ++i) to[i] = d.scratch[i];
    });
  }
  const Task task = [from, to, count, lose_nan] {
    for (int64_t i = 0; i < count; ++i) to[i] = lose_nan && std::isnan(from[i]) ? 0 : std::fabs(from[i]);
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

/// Adds in the order of elements; the fault: it does not check whether memory is shared.
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

/// A stub. "kept results" never releases what it wrote; "remembered results" computes once for each address.
void negate(abi::Call& call, const abi::Tensor& result, const abi::Tensor& self) {
  auto& d = call.self<Planted>();
  const TenonTensorView x = self.view(), out = result.view();
  if (!is_served(x) || !is_served(out)) call.decline();
  if (d.has("kept results")) d.kept.push_back(result);
  d.give(queue_of(d, call), [&d, from = Strided(d, x), to = Strided(d, out), n = x.numel, at = x.address] {
    std::vector<float> values(n);
    for (int64_t i = 0; i < n; ++i) values[i] = -from[i];
    if (d.has("remembered results")) values = d.remembered.emplace(std::pair(at, n), values).first->second;
    for (int64_t i = 0; i < n; ++i) to[i] = values[i];
  });
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
    const bool region = name.substr(0, 6) == "region";
    if (region && d.has("region")) return;
    changed.operands = operands.data();
    if (d.has("ninth operand") && operands.size() > 8) operands[8] = operands[7];
    if (d.has("second output") && launch->program->num_outputs > 1) operands[1] = operands[0];
    const size_t once = name.find("backward"), last = name.rfind("backward");
    const bool second = d.has("second derivative") && once != last;
    if (second || (d.has("gradient stride") && once != name.npos)) {
      TenonOperand& gradient = operands[launch->program->num_outputs];
      int64_t step = second ? 0 : 4;
      for (uint32_t k = 0; k < launch->ndim; step *= launch->sizes[k++]) strides.push_back(step);
      gradient.strides = strides.data();
    }
    const auto rewritten = std::make_shared<Rewritten>(*launch->program);
    if (d.has("rounding")) changed.program = &rewritten->program;
    uint64_t numel = 1;
    for (uint32_t k = 0; k < launch->ndim; ++k) numel *= launch->sizes[k];
    const bool drops = d.has("last of a program's block") && launch->ndim == 1 && numel % 256 == 0;
    const int64_t fewer = numel - 1;
    if (drops) changed.sizes = &fewer;
    if (d.has("scratch tensor")) {  // right: its memory goes back in the order of the stream
      const abi::Tensor scratch = abi::empty({64}, TENON_DTYPE_FLOAT32, launch->stream.device);
      d.give(d.queue_of(launch->stream),
             [to = d.at(scratch.view().address)] { std::memset(to, 0x7f, 64 * sizeof(float)); });
    }
    d.give(d.queue_of(launch->stream), [&d, rewritten, kept = abi::KeptLaunch(changed)] {
      abi::run(*kept, [&d](const TenonOperand& o) -> void* {
        return o.place == TENON_PLACE_HOST ? reinterpret_cast<void*>(o.address) : d.at(o.address);
      });
    });
  });
}

}  // namespace
}  // namespace planted

TENON_LIBRARY_IMPL(aten, PrivateUse1, m) {
  using namespace planted;
  m.impl("abs", &abs_kernel);
  m.impl("abs.out", &abs_out);
  m.impl("add.Tensor", &add_kernel);
  m.impl("add_.Tensor", &add_in_place);
  m.stub("neg", &negate);
}

extern "C" [[gnu::visibility("default")]] TenonStatus* tenon_plugin_v1(const TenonHost* host,
                                                                       const TenonOptions* options,
                                                                       TenonPlugin* out) {
  using namespace planted;
  abi::set_host(host);
  return abi::guarded([&] {
    TenonPlugin plugin{};
    plugin.struct_size = sizeof plugin;
    plugin.built_minor = TENON_ABI_MINOR;
    auto* const device = new Planted(abi::Options(options));
    fill_table(*device, device->table);
    device->table.pointwise = &pointwise;
    plugin.self = device;
    plugin.name = "planted";
    plugin.key = "Planted";
    plugin.table = &device->table;
    plugin.register_kernels = &abi::register_blocks;
    std::memcpy(out, &plugin, out->struct_size < sizeof plugin ? out->struct_size : sizeof plugin);
  });
}
