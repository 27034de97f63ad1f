#include "backends/cpu/region/operands.h"

#include <algorithm>

#include "backends/cpu/region/blocks.h"

namespace tenon::cpu {

AnchorOperands::AnchorOperands(const graph::Graph& g, const graph::Node& node) {
  const graph::Region& region = *node.region;
  const std::span<const graph::Use> uses = g.uses(node);
  for (const graph::Use& u : g.uses(anchor_node(region))) {
    if (u.geometry == graph::kNone) continue;
    const graph::Geometry& geometry = g.geometry(u.geometry);
    const graph::RegionPart& part = region.prologue[all_.size()];
    Operand& o = all_.emplace_back();
    o.dtype = geometry.dtype;
    o.sizes = geometry.sizes;
    o.strides = geometry.strides;
    o.offset = geometry.offset;
    if (part.empty()) {
      o.use = static_cast<uint32_t>(std::find(uses.begin(), uses.end(), u) - uses.begin());
    } else {
      o.nbytes = g.storages[g.values[u.value].storage].nbytes;
      o.prologue = std::make_unique<const PartLoop>(g, node, part, o.sizes);
    }
  }
}

Tensor AnchorOperands::whole(size_t i, const graph::RegionProgram::Arguments& arguments,
                             const std::vector<uint64_t>& numbers) const {
  const Operand& o = all_[i];
  if (!o.prologue) return arguments.uses[o.use];
  const Tensor made(TensorImpl::make(Storage::allocate(o.nbytes), o.dtype, o.sizes, o.strides, o.offset));
  o.prologue->run({&made, 1}, arguments.uses, {}, numbers, 0, o.sizes.empty() ? 1 : o.sizes[0]);
  return made;
}

}  // namespace tenon::cpu
