#include "tenon/graph/plan/aliases.h"

#include <fmt/format.h>

#include <algorithm>

#include "tenon/core/dims.h"
#include "tenon/core/error.h"
#include "tenon/graph/plan/plan.h"
#include "tenon/iter/overlap.h"

namespace tenon::graph {
namespace {

/// Calls f(geometry) for each place in which nodes read (or write) elements of a storage.
template <class F>
void each_read(const Graph& g, const Node& node, StorageId storage, F&& f) {
  for (const Use& use : g.uses(node)) {
    if (use.value != kNone && g.values[use.value].storage == storage) f(g.geometry(use.geometry));
  }
}
template <class F>
void each_write(const Graph& g, const Node& node, StorageId storage, F&& f) {
  for (const Def& def : g.defs(node)) {
    if (g.values[def.value].storage == storage) f(g.geometry(def.geometry));
  }
}

int64_t bytes(const Geometry& g, int64_t elements) {
  return elements * static_cast<int64_t>(item_size(g.dtype));
}

/// Whether both have the same elements at the same indices, if their tensors have one address.
bool same_elements(const Geometry& a, int64_t address_a, const Geometry& b, int64_t address_b) {
  if (item_size(a.dtype) != item_size(b.dtype) || a.sizes != b.sizes) return false;
  if (bytes(a, a.offset) - address_a != bytes(b, b.offset) - address_b) return false;
  for (size_t d = 0; d < a.sizes.size(); ++d) {
    if (a.sizes[d] > 1 && a.strides[d] != b.strides[d]) return false;
  }
  return true;
}

/// Whether a run gives the same results when `output` is written over `input` at the same address.
bool may_be_in_place(const Graph& g, const Signature::Tensor& output, const Signature::Tensor& input,
                     const std::vector<bool>& elementwise) {
  bool written = false, right = true;
  for (size_t i = 0; i < g.nodes.size() && right; ++i) {
    const Node& node = g.nodes[i];
    const Geometry* result = nullptr;
    each_write(g, node, output.storage, [&](const Geometry& geometry) { result = &geometry; });
    each_read(g, node, input.storage, [&](const Geometry& read) {
      right = right && !written &&
              (!result || (elementwise[i] && same_elements(*result, output.offset, read, input.offset)));
    });
    written = written || result != nullptr;
  }
  return right;
}

}  // namespace

Aliases::Aliases(const Graph& graph, const Signature& signature, std::span<const uint32_t> places,
                 const std::vector<bool>& elementwise) {
  std::vector<const Signature::Tensor*> tensors;
  for (const bool outputs : {true, false}) {
    for (size_t i = 0; i < signature.tensors.size(); ++i) {
      const Signature::Tensor& t = signature.tensors[i];
      const Storage& storage = graph.storages[t.storage];
      if (storage.nbytes == 0 || storage.is_output != outputs) continue;
      tensors.push_back(&t);
      rows_.push_back(
          {t.uid, places[i], t.storage, -t.offset, static_cast<int64_t>(storage.nbytes) - t.offset});
    }
    if (outputs) outputs_ = rows_.size();
  }
  for (size_t o = 0; o < outputs_; ++o) {
    for (size_t i = outputs_; i < rows_.size(); ++i)
      in_place_.push_back(may_be_in_place(graph, *tensors[o], *tensors[i], elementwise));
  }
}

void Aliases::check(const Graph& graph, std::span<const Address> sorted,
                    std::span<const std::byte> workspace) const {
  SmallVector<int64_t, 32> begin, end;
  for (const Row& r : rows_) {
    begin.push_back(static_cast<int64_t>(sorted[r.place]) + r.first);
    end.push_back(static_cast<int64_t>(sorted[r.place]) + r.last);
  }
  // Whether bytes from `first` to `last` meet those of a row from `from` on; without a branch for each row.
  const auto meets = [&](int64_t first, int64_t last, size_t from) {
    bool any = false;
    for (size_t k = from; k < rows_.size(); ++k)
      any |= static_cast<int>(first < end[k]) & static_cast<int>(begin[k] < last);
    return any;
  };
  for (size_t o = 0; o < outputs_; ++o) {
    if (!meets(begin[o], end[o], o + 1)) [[likely]]
      continue;
    for (size_t k = o + 1; k < rows_.size(); ++k) {
      if (begin[o] < end[k] && begin[k] < end[o]) check_pair(graph, sorted, o, k);
    }
  }
  if (workspace.empty()) return;
  const auto first = reinterpret_cast<int64_t>(workspace.data());
  const int64_t last = first + static_cast<int64_t>(workspace.size());
  if (!meets(first, last, 0)) [[likely]]
    return;
  for (size_t k = 0; k < rows_.size(); ++k) {
    TENON_CHECK(last <= begin[k] || end[k] <= first, Value,
                fmt::format("execute: the workspace overlaps the tensor of UID {}", rows_[k].uid));
  }
}

void Aliases::check_pair(const Graph& graph, std::span<const Address> sorted, size_t output,
                         size_t other) const {
  const Row &out = rows_[output], &with = rows_[other];
  const bool is_input = other >= outputs_;
  if (is_input && sorted[out.place] == sorted[with.place] &&
      in_place_[output * (rows_.size() - outputs_) + other - outputs_])
    return;
  const auto placed = [&](const Row& r, const Geometry& g) {
    return Placement{static_cast<int64_t>(sorted[r.place]) + r.first + bytes(g, g.offset),
                     static_cast<int64_t>(item_size(g.dtype)), g.sizes, g.strides};
  };
  bool shared = false;
  for (const Node& writer : graph.nodes) {
    each_write(graph, writer, out.storage, [&](const Geometry& result) {
      const auto compare = [&](const Geometry& g) {
        shared = shared || share_bytes(placed(out, result), placed(with, g));
      };
      for (const Node& node : graph.nodes) {
        if (is_input)
          each_read(graph, node, with.storage, compare);
        else
          each_write(graph, node, with.storage, compare);
      }
    });
  }
  if (!shared) return;
  if (!is_input)
    throw_error(ErrorKind::Value,
                fmt::format("execute: the outputs of UIDs {} and {} share memory; each needs its own",
                            std::min(out.uid, with.uid), std::max(out.uid, with.uid)));
  throw_error(
      ErrorKind::Value,
      fmt::format("execute: the output of UID {} shares memory with the tensor of UID {}, which the plan "
                  "reads after it has written the output; give the output memory of its own",
                  out.uid, with.uid));
}

}  // namespace tenon::graph
