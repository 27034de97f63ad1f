// Programs as bytes: ports, constants by storage, numbers, and the graph (tenon/graph/text/binary.h).
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "tenon/builder/inference_impl.h"
#include "tenon/core/error.h"
#include "tenon/graph/text/binary.h"
#include "tenon/graph/text/bytes.h"

namespace tenon {
namespace {

constexpr std::string_view kMagic = "TENONPRG";
constexpr uint64_t kVersion = 1;

[[noreturn]] void refuse(const std::string& why) { throw_error(ErrorKind::Value, "load_program: " + why); }

void write(graph::ByteWriter& out, const Inference::Port& port) {
  out.text(name(port.dtype));
  out.number(port.sizes.size());
  for (const int64_t size : port.sizes) out.number(static_cast<uint64_t>(size));
}
/// And how many bytes such a tensor has.
std::pair<Inference::Port, uint64_t> read_port(graph::ByteReader& in) {
  const std::string text = in.text();
  const std::optional<DType> dtype = parse_dtype(text);
  if (!dtype) refuse(fmt::format("there is no dtype '{}'", text));
  Inference::Port port{*dtype, {}};
  uint64_t nbytes = item_size(*dtype);
  for (size_t n = in.count(); n > 0; --n) {
    const uint64_t size = in.number();
    if (__builtin_mul_overflow(nbytes, size, &nbytes) || nbytes > (uint64_t{1} << 56))
      refuse("a tensor is too large");
    port.sizes.push_back(static_cast<int64_t>(size));
  }
  return {std::move(port), nbytes};
}

/// The dtype in which the graph first reads a storage; bytes if it does not read it.
DType dtype_of_use(const graph::Graph& g, graph::StorageId storage) {
  for (const graph::Node& node : g.nodes) {
    for (const graph::Use& u : g.uses(node))
      if (u.value != graph::kNone && g.values[u.value].storage == storage)
        return g.geometry(u.geometry).dtype;
  }
  return kUInt8;
}

}  // namespace

Inference::Parts Inference::parts() const {
  const graph::Signature& signature = impl_->plan->signature();
  Parts out;
  graph::ByteWriter body;
  const auto storage_of = [&](size_t uid) {
    for (const graph::Signature::Tensor& t : signature.tensors)
      if (t.uid == uid) return t.storage;
    return graph::kNone;
  };
  body.number(impl_->inputs.size());
  for (size_t i = 0; i < impl_->inputs.size(); ++i) {
    write(body, impl_->inputs[i]);
    body.id(storage_of(i));
  }
  body.number(impl_->outputs.size());
  for (size_t i = 0; i < impl_->outputs.size(); ++i) {
    write(body, impl_->outputs[i]);
    body.id(storage_of(impl_->inputs.size() + i));
  }
  body.number(signature.constants.size());
  for (const auto& [id, storage] : signature.constants) {
    body.id(id);
    const DType dtype = dtype_of_use(impl_->program, id);
    const auto size = static_cast<int64_t>(storage.nbytes() / item_size(dtype));
    const bool fits = storage.nbytes() % item_size(dtype) == 0;
    out.constants.push_back(Tensor(TensorImpl::make(
        storage, fits ? dtype : kUInt8, Dims{fits ? size : static_cast<int64_t>(storage.nbytes())})));
  }
  body.number(signature.numbers.size());
  for (const Scalar& number : signature.numbers) body.scalar(number);
  const std::vector<std::byte> graph = graph::serialize(impl_->program);
  body.characters({reinterpret_cast<const char*>(graph.data()), graph.size()});
  for (const Tensor& constant : impl_->kept)
    if (constant.defined()) out.constants.push_back(constant.reshape({-1}));
  graph::ByteWriter file;
  file.characters(kMagic);
  file.fixed(kVersion);
  file.append(body);
  out.program = file.take();
  return out;
}

Inference Inference::from_parts(const Parts& parts) {
  graph::ByteReader in(parts.program);
  if (parts.program.size() < kMagic.size() + 8 || in.characters(kMagic.size()) != kMagic)
    refuse("these bytes are no program");
  if (const uint64_t version = in.fixed(); version != kVersion)
    refuse(fmt::format("this is version {} of the form; this build reads version {}", version, kVersion));
  auto impl = std::make_shared<Impl>();
  graph::Signature signature;
  std::vector<std::pair<graph::StorageId, uint64_t>> ports, constants;  // storages and their bytes
  for (size_t n = in.count(), uid = 0; n > 0; --n, ++uid) {
    auto [port, nbytes] = read_port(in);
    ports.emplace_back(in.id(graph::kNone - 2, "storage"), nbytes);
    signature.tensors.push_back({uid, ports.back().first, 0});
    impl->inputs.push_back(std::move(port));
  }
  std::vector<uint64_t> sizes_of_kept;
  for (size_t n = in.count(), uid = ports.size(); n > 0; --n, ++uid) {
    auto [port, nbytes] = read_port(in);
    const graph::StorageId id = in.id(graph::kNone - 2, "storage");
    sizes_of_kept.push_back(id == graph::kNone ? nbytes : 0);
    if (id != graph::kNone) {
      ports.emplace_back(id, nbytes);
      signature.tensors.push_back({uid, id, 0});
    }
    impl->outputs.push_back(std::move(port));
  }
  for (size_t n = in.count(); n > 0; --n) constants.emplace_back(in.id(graph::kNone - 2, "storage"), 0);
  for (size_t n = in.count(); n > 0; --n) signature.numbers.push_back(in.scalar());
  impl->program = graph::deserialize(in.rest());

  // Each storage that is there before a run is an input or a constant, once; each output is computed.
  const graph::Graph& g = impl->program;
  std::vector<bool> is_brought(g.storages.size());
  const auto bring = [&](graph::StorageId id, uint64_t nbytes, bool is_input) {
    if (id >= g.storages.size() || is_brought[id] || g.storages[id].nbytes != nbytes ||
        g.storages[id].is_input != is_input || g.storages[id].is_output == is_input)
      refuse("its inputs, outputs or constants are not those of its graph");
    is_brought[id] = true;
  };
  for (size_t i = 0; i < ports.size(); ++i) bring(ports[i].first, ports[i].second, i < impl->inputs.size());
  size_t next = 0;
  const auto constant = [&]() -> const Tensor& {
    if (next == parts.constants.size() || !parts.constants[next].is_contiguous())
      refuse("a constant is missing");
    return parts.constants[next++];
  };
  for (const auto& [id, unused] : constants) {
    const Tensor& t = constant();
    bring(id, t.nbytes(), true);
    // Memory of its own, where a file has it in a larger block.
    const Tensor own = t.nbytes() == t.storage().nbytes() ? t : t.clone();
    signature.constants.emplace_back(id, own.storage());
  }
  for (size_t i = 0; i < impl->outputs.size(); ++i) {
    const bool is_kept =
        signature.tensors.end() ==
        std::ranges::find(signature.tensors, impl->inputs.size() + i, &graph::Signature::Tensor::uid);
    impl->kept.emplace_back();
    if (!is_kept) continue;
    const Tensor& t = constant();
    if (t.dtype() != impl->outputs[i].dtype || t.nbytes() != sizes_of_kept[i])
      refuse("a constant is another");
    impl->kept.back() = t.reshape(impl->outputs[i].sizes);
  }
  for (graph::StorageId id = 0; id < g.storages.size(); ++id)
    if (g.storages[id].is_input && !is_brought[id]) refuse("an input of its graph is missing");
  if (signature.numbers.size() != g.numbers.size()) refuse("its numbers are not those of its graph");
  for (size_t i = 0; i < g.numbers.size(); ++i)
    if (signature.numbers[i].kind() != g.numbers[i]) refuse("its numbers are not those of its graph");
  impl->make_plan(std::move(signature));
  return Inference(std::move(impl));
}

}  // namespace tenon
