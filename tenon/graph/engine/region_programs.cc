#include "tenon/graph/engine/region_programs.h"

#include "tenon/graph/ir/region.h"

namespace tenon::graph {

LoopProgram::LoopProgram(const Graph& g, const Node& node)
    : step_(g, node), outputs_(node.region->body.outputs), inputs_(node.region->body.inputs) {}

void LoopProgram::run(const Arguments& arguments, bool& clobbered_inputs) const {
  SmallVector<char*, 16> addresses;
  for (const uint32_t i : outputs_) addresses.push_back(static_cast<char*>(arguments.defs[i].data_ptr()));
  for (const uint32_t i : inputs_) addresses.push_back(static_cast<char*>(arguments.uses[i].data_ptr()));
  SmallVector<uint64_t, 16> slots(step_.num_numbers());
  step_.put_numbers(arguments.numbers, slots.data());
  clobbered_inputs = true;
  step_.run(addresses.data(), slots.data());
}

CallsApart::CallsApart(const Graph& g, const Node& node) {
  for (const Use& u : g.uses(node)) uses_.push_back(place(g, u.value, u.geometry));
  for (const Def& d : g.defs(node)) defs_.push_back(place(g, d.value, d.geometry));
  for (const Node& member : node.region->members) {
    Call& call = calls_.emplace_back(Call{CallStep(g, member), {}, {}});
    for (const Use& u : g.uses(member)) call.uses.push_back(place(g, u.value, u.geometry));
    for (const Def& d : g.defs(member)) call.defs.push_back(place(g, d.value, d.geometry));
  }
}

void CallsApart::run(const Arguments& arguments, bool& clobbered_inputs) const {
  std::vector<tenon::Storage> memory(nbytes_.size());
  const auto take = [&](const std::vector<Place>& places, std::span<const Tensor> tensors) {
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i].block != kNone && tensors[i].defined()) memory[places[i].block] = tensors[i].storage();
    }
  };
  take(uses_, arguments.uses);
  take(defs_, arguments.defs);
  const auto tensors = [&](const std::vector<Place>& places) {
    std::vector<Tensor> all;
    for (const Place& p : places) {
      if (p.block == kNone) {
        all.emplace_back();
        continue;
      }
      if (!memory[p.block]) memory[p.block] = tenon::Storage::allocate(nbytes_[p.block]);
      const Geometry& at = p.geometry;
      auto impl = TensorImpl::make(memory[p.block], at.dtype, at.sizes, at.strides, at.offset);
      impl->set_wrapped_number(at.wrapped_number);
      all.push_back(Tensor(std::move(impl)));
    }
    return all;
  };
  clobbered_inputs = true;
  for (const Call& call : calls_) call.step.run(tensors(call.uses), tensors(call.defs), arguments.numbers);
}

CallsApart::Place CallsApart::place(const Graph& g, ValueId value, GeometryId geometry) {
  if (value == kNone) return {};
  const StorageId storage = g.values[value].storage;
  const auto [found, is_new] = blocks_.emplace(storage, static_cast<uint32_t>(nbytes_.size()));
  if (is_new) nbytes_.push_back(g.storages[storage].nbytes);
  return {found->second, g.geometry(geometry)};
}

}  // namespace tenon::graph
