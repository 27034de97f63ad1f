#include "tenon/graph/engine/trial_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <span>

#include "tenon/core/half.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::graph {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 30;

/// Numbers of both signs, from which no function makes subnormal ones, which are slow.
void fill(tenon::Storage& storage, DType dtype) {
  auto* const bytes = reinterpret_cast<std::byte*>(storage.address());
  const DType part = real_dtype(dtype);
  const size_t item = item_size(part);
  uint64_t state = 0x9e3779b97f4a7c15u;
  const auto put = [&](size_t at, auto value) { std::memcpy(bytes + at, &value, sizeof value); };
  for (size_t at = 0; at + item <= storage.nbytes(); at += item) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double sign = (state >> 62) & 1 ? -1 : 1;
    const double real = sign * (0.125 + 0.875 * static_cast<double>(state >> 40) * 0x1p-24);
    switch (part) {
      case DType::Float32:
        put(at, static_cast<float>(real));
        break;
      case DType::Float64:
        put(at, real);
        break;
      case DType::Float16:
        put(at, Half(static_cast<float>(real)));
        break;
      case DType::BFloat16:
        put(at, BFloat16(static_cast<float>(real)));
        break;
      default:  // 0 and 1 are numbers of every other dtype
        std::memset(bytes + at, 0, item);
        bytes[at] = static_cast<std::byte>((state >> 50) & 1);
    }
  }
}

}  // namespace

Scalar one(Scalar::Kind kind) {
  switch (kind) {
    case Scalar::Kind::Bool:
      return true;
    case Scalar::Kind::Int:
      return int64_t{1};
    case Scalar::Kind::Float:
      return 1.0;
    case Scalar::Kind::Complex:
      break;
  }
  return std::complex<double>(1.0, 0.0);
}

std::vector<double> as_doubles(const Tensor& t) {
  std::vector<double> all(static_cast<size_t>(t.numel()));
  if (all.empty()) return all;
  const Dims sizes = t.sizes().to_dims();
  const tenon::Storage memory = tenon::Storage::from_foreign(
      reinterpret_cast<Address>(all.data()), all.size() * sizeof(double), kCPU, nullptr, nullptr);
  const Tensor wide(TensorImpl::make(memory, DType::Float64, sizes, contiguous_strides(sizes), 0));
  ops::copy_elements(wide, t, "as_doubles");
  return all;
}

namespace {

/// `infinity`: its bits, the largest that are no NaN's, without the sign.
template <class Bits>
void unify_nans(std::span<std::byte> bytes, Bits infinity) {
  constexpr auto kMagnitude = static_cast<Bits>(static_cast<Bits>(-1) >> 1);
  for (size_t at = 0; at + sizeof(Bits) <= bytes.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, &bytes[at], sizeof bits);
    if ((bits & kMagnitude) > infinity) std::memcpy(&bytes[at], &kMagnitude, sizeof bits);
  }
}
void unify_nans(std::span<std::byte> bytes, DType dtype) {
  if (dtype == DType::Float64) unify_nans<uint64_t>(bytes, uint64_t{0x7FF} << 52);
  if (dtype == DType::Float32) unify_nans<uint32_t>(bytes, 0x7F800000);
  if (dtype == DType::Float16) unify_nans<uint16_t>(bytes, 0x7C00);
  if (dtype == DType::BFloat16) unify_nans<uint16_t>(bytes, 0x7F80);
}

}  // namespace

TrialMemory::TrialMemory(const Graph& g, const Node& node) {
  uint64_t nbytes = 0;
  const auto add = [&](StorageId id, GeometryId geometry) {
    if (blocks_.contains(id)) return;
    nbytes += g.storages[id].nbytes;
    if (nbytes > kMostBytes) problem_ = fmt::format("its tensors have {} bytes, more than 1 GiB", nbytes);
    if (!g.storages[id].device.is_cpu()) problem_ = "a tensor is on another device";
    if (!problem_.empty()) return;
    Block& block = blocks_[id];
    block.storage = tenon::Storage::allocate(g.storages[id].nbytes);
    fill(block.storage, g.geometry(geometry).dtype);
    block.dtype = real_dtype(g.geometry(geometry).dtype);
  };
  for (const Use& u : g.uses(node)) {
    if (u.value != kNone) add(g.values[u.value].storage, u.geometry);
  }
  const auto is_read = [&](StorageId id) {
    return std::ranges::any_of(
        g.uses(node), [&](const Use& u) { return u.value != kNone && g.values[u.value].storage == id; });
  };
  for (const Def& d : g.defs(node)) {
    const StorageId id = g.values[d.value].storage;
    add(id, d.geometry);
    if (problem_.empty()) blocks_[id].is_result = true;
  }
  if (!problem_.empty()) return;
  const auto keep = [&](const Node& writer) {
    for (const Def& d : g.defs(writer)) {
      const auto found = blocks_.find(g.values[d.value].storage);
      if (found == blocks_.end()) continue;
      Block& block = found->second;
      const auto* const bytes = reinterpret_cast<const std::byte*>(block.storage.address());
      block.before.assign(bytes, bytes + block.storage.nbytes());
      reads_what_it_writes_ |= is_read(found->first);
    }
  };
  keep(node);
  // Members may write into what the region reads, where nothing reads it after them.
  if (node.region) std::ranges::for_each(node.region->members, keep);
  const auto tensor = [&](StorageId storage, GeometryId id) {
    const Geometry& from = g.geometry(id);
    auto impl =
        TensorImpl::make(blocks_.at(storage).storage, from.dtype, from.sizes, from.strides, from.offset);
    impl->set_wrapped_number(from.wrapped_number);
    return Tensor(std::move(impl));
  };
  for (const Use& u : g.uses(node))
    uses_.push_back(u.value == kNone ? Tensor() : tensor(g.values[u.value].storage, u.geometry));
  for (const Def& d : g.defs(node)) defs_.push_back(tensor(g.values[d.value].storage, d.geometry));
  for (const Scalar::Kind kind : g.numbers) numbers_.push_back(one(kind));
}

void TrialMemory::reset() {
  for (auto& [id, block] : blocks_) {
    if (!block.before.empty())
      std::memcpy(reinterpret_cast<void*>(block.storage.address()), block.before.data(), block.before.size());
  }
}

std::vector<std::byte> TrialMemory::results() const {
  std::vector<std::byte> all;
  for (const auto& [id, block] : blocks_) {
    if (!block.is_result) continue;
    const auto* const bytes = reinterpret_cast<const std::byte*>(block.storage.address());
    const size_t begin = all.size();
    all.insert(all.end(), bytes, bytes + block.storage.nbytes());
    unify_nans(std::span(all).subspan(begin), block.dtype);
  }
  return all;
}

}  // namespace tenon::graph
