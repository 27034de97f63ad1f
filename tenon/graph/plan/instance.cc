#include "tenon/graph/plan/instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tenon/core/error.h"
#include "tenon/core/kernel_report.h"
#include "tenon/core/thread_state.h"
#include "tenon/graph/ir/call_arguments.h"
#include "tenon/graph/ir/region.h"
#include "tenon/iter/host.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::graph {

Instance::Instance(const Plan& plan)
    : plan_(plan),
      g_(plan.graph()),
      keys_(Functionality::Dense, plan.device().backend),
      numbers_(plan.signature().numbers),
      calls_(plan.calls().size()),
      shells_(g_.storages.size()),
      is_used_(g_.storages.size()),
      addresses_(g_.storages.size()),
      made_(g_.storages.size()) {
  numbers_.resize(g_.numbers.size());
  for (const auto& [id, storage] : plan.signature().constants)
    place(id, reinterpret_cast<char*>(storage.address()));
  for (size_t i = 0; i < g_.nodes.size(); ++i) {
    const Plan::Step& planned = plan.steps()[i];
    Step& step = steps_.emplace_back();
    if (planned.loop) {
      step.numbers.resize(planned.loop->num_numbers());
      operands_.resize(std::max(operands_.size(), planned.loop->places().size()));
    } else if (planned.region) {
      for (const Use& u : g_.uses(g_.nodes[i])) step.uses.push_back(tensor(u));
      for (const Def& d : g_.defs(g_.nodes[i])) step.defs.push_back(tensor(d));
    }
  }
}

Tensor Instance::tensor(StorageId storage, GeometryId geometry) {
  tenon::Storage& shell = shells_[storage];
  if (!shell)
    shell = tenon::Storage::from_foreign(reinterpret_cast<Address>(addresses_[storage]),
                                         g_.storages[storage].nbytes, plan_.device(), nullptr, nullptr);
  const Geometry& g = g_.geometry(geometry);
  auto impl = TensorImpl::make(shell, g.dtype, g.sizes, g.strides, g.offset);
  impl->set_wrapped_number(g.wrapped_number);
  return Tensor(std::move(impl));
}

Instance::Call Instance::make_call(const Node& node) {
  const CallArguments arguments(g_, node);
  const std::span<const Def> made = g_.defs(node);
  Call call{.op = node.op, .results = made.first(made.size() - arguments.num_written())};
  const auto has_memory = [&](const Def& d) { return is_used_[storage_of(d.value)] != 0; };
  call.by_out = !made.empty() && made.size() == arguments.num_results() &&
                call.results.size() == made.size() && node.op.entry().out() &&
                std::ranges::all_of(made, has_memory);
  std::vector<Tensor> uses, defs;
  for (const Use& u : g_.uses(node)) uses.push_back(tensor(u));
  for (size_t i = 0; i < made.size(); ++i)
    defs.push_back(i < call.results.size() && !call.by_out ? Tensor() : tensor(made[i]));
  arguments.push(call.arguments, uses, defs, numbers_);
  if (call.by_out) {
    call.op = OperatorHandle(*node.op.entry().out());
    for (const Tensor& t : defs) call.arguments.push(t);
  }
  const std::span<const Argument> all = g_.arguments(node);
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].kind == Argument::Kind::Number) call.numbers.push_back({i, g_.numbers_of(all[i])[0]});
  }
  return call;
}

void Instance::put_number(Call& call, const Call::Number& n) const {
  const Scalar& value = numbers_[n.number];
  const CellTag tag = call.arguments.tag(n.argument);
  if (tag == CellTag::Scalar) call.arguments.at<Scalar>(n.argument) = value;
  if (tag == CellTag::Float) call.arguments.at<double>(n.argument) = value.to_double();
  if (tag == CellTag::Int) call.arguments.at<int64_t>(n.argument) = value.to_int();
}

void Instance::refresh_numbers() {
  is_stale_ = false;
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (!plan_.steps()[i].loop) continue;
    try {
      plan_.steps()[i].loop->put_numbers(numbers_, steps_[i].numbers.data());
      steps_[i].numbers_fit = true;
    } catch (const std::exception&) {
      steps_[i].numbers_fit = false;
    }
  }
  for (std::optional<Call>& call : calls_) {
    if (!call) continue;
    for (const Call::Number& n : call->numbers) put_number(*call, n);
  }
}

std::exception_ptr Instance::run(RunMemory* memory) {
  const ThreadStateGuard<&ThreadState::included> nothing_more{DispatchKeySet()};
  const ThreadStateGuard<&ThreadState::excluded> below{DispatchKeySet(Functionality::Record) | kAutogradKeys};
  const ThreadStateGuard<&ThreadState::inference_mode> normal{false};
  memory_ = memory;
  if (is_stale_) refresh_numbers();
  for (size_t i = 0; i < steps_.size() && (memory || !first_); ++i) run_step(i);
  if (!failed_.empty() && memory) {
    for (StorageId id = 0; id < made_.size(); ++id) {
      if (!is_used_[id] && failed_[id]) memory->fail(id, failed_[id]);
    }
  }
  for (const StorageId id : used_) {
    if (std::exchange(is_used_[id], uint8_t{0}) && memory) memory->keep(id, std::move(made_[id]));
    made_[id] = {};
  }
  used_.clear();
  failed_.clear();
  return std::exchange(first_, nullptr);
}

void Instance::run_step(size_t index) {
  const Plan::Step& plan = plan_.steps()[index];
  Step& step = steps_[index];
  const bool done = plan.loop ? run_loop(plan, step) : plan.region && run_region(plan, step, g_.nodes[index]);
  if (!done) {
    for (uint32_t i = 0; i < plan.num_calls; ++i) run_call(plan.first_call + i);
  }
  for (const StorageId id : plan.last_uses) {
    release(id);
    memory_->release(id);
  }
}

void Instance::run_call(uint32_t index) {
  const Node& call = *plan_.calls()[index];
  std::exception_ptr error = inherited(call);
  if (!error) {
    try {
      return compute(index);
    } catch (...) {
      error = note(std::current_exception(), call);
    }
  }
  fail(call, error);
}

// False: nothing was written; the calls are to be run one by one; some may fail.
bool Instance::run_loop(const Plan::Step& plan, Step& step) {
  const std::span places = plan.loop->places();
  const std::span takes_over(plan.takes_over);
  if (!step.numbers_fit) return false;
  if (!failed_.empty() && std::ranges::any_of(places, [&](const auto& p) { return has_failed(p.storage); }))
    return false;
  try {
    for (size_t i = 0; i < places.size(); ++i) {
      const auto& place = places[i];
      if (i < takes_over.size()) take_over(place.storage, takes_over[i]);
      operands_[i] = memory(place.storage) + place.offset;
    }
  } catch (const std::exception&) {
    // There is no memory. Calls by themselves read what others of them overwrite.
    for (size_t i = 0; i < takes_over.size(); ++i) {
      const StorageId id = places[i].storage, from = takes_over[i];
      if (from != kNone && made_[id] == made_[from]) release(id);
    }
    return false;
  }
  try {
    plan.loop->run(operands_.data(), step.numbers.data());
  } catch (...) {
    // It may have written some of its results.
    const Node& last = *plan_.calls()[plan.first_call + plan.num_calls - 1];
    const std::exception_ptr error = note(std::current_exception(), last);
    for (uint32_t i = 0; i < plan.num_calls; ++i) fail(*plan_.calls()[plan.first_call + i], error);
    return true;
  }
  if (kernel_reporting()) [[unlikely]]
    report(plan, plan.loop->engine());
  return true;
}

// As run_loop. What fails once something is written that the calls would read fails as a whole.
bool Instance::run_region(const Plan::Step& plan, const Step& step, const Node& node) {
  bool clobbered_inputs = false;
  try {
    const auto find = [&](ValueId value) {
      if (value == kNone) return true;
      if (has_failed(storage_of(value))) return false;
      memory(storage_of(value));
      return true;
    };
    for (const Use& u : g_.uses(node)) {
      if (!find(u.value)) return false;
    }
    for (const Def& d : g_.defs(node)) {
      if (!find(d.value)) return false;
    }
    plan.region->run({step.uses, step.defs, numbers_}, clobbered_inputs);
    if (kernel_reporting()) [[unlikely]]
      report(plan, plan.engine);
  } catch (...) {
    if (!clobbered_inputs) return false;
    const std::exception_ptr error = note(std::current_exception(), node.region->members.back());
    for (const Node& member : node.region->members) fail(member, error);
  }
  return true;
}

void Instance::compute(uint32_t index) {
  const Node& node = *plan_.calls()[index];
  for (const Use& u : g_.uses(node)) {
    if (u.value != kNone) memory(storage_of(u.value));
  }
  if (!calls_[index]) calls_[index] = make_call(node);
  const Call& call = *calls_[index];
  for (const Def& d : g_.defs(node).subspan(call.by_out ? 0 : call.results.size()))
    memory(storage_of(d.value));
  Stack stack;
  call_kernel(call, stack);
  if (call.by_out || call.results.empty()) return;
  size_t next = 0;
  for (size_t i = 0; i < stack.size(); ++i) {
    if (node.op.schema().returns[i].alias || stack.tag(i) != CellTag::Tensor) continue;
    const Tensor& result = stack.at<Tensor>(i);
    if (result.defined() && next < call.results.size()) keep(node, call.results[next++], result);
  }
  TENON_CHECK(next == call.results.size(), Internal,
              fmt::format("{}: it has fewer results than were planned", node.op.name()));
}

void Instance::call_kernel(const Call& call, Stack& stack) const {
  const Kernel& kernel = detail::find_kernel(call.op.entry(), keys_);
  if (kernel.unboxed && !detail::dispatch_trace_enabled.load(std::memory_order_relaxed)) [[likely]] {
    stack.lend(call.arguments);
    return kernel.boxed(kernel, call.op, keys_, stack);
  }
  for (size_t i = 0; i < call.arguments.size(); ++i) stack.push_copy(call.arguments, i);
  call.op.redispatch_boxed(keys_, stack);
}

// A result becomes the memory of its storage, if that has none yet and the result is laid out as planned.
void Instance::keep(const Node& node, const Def& promised, const Tensor& result) {
  const StorageId id = storage_of(promised.value);
  const Geometry& g = g_.geometry(promised.geometry);
  TENON_CHECK(result.dtype() == g.dtype && std::ranges::equal(result.sizes(), IntArrayRef(g.sizes)), Internal,
              fmt::format("{}: the result is not what was planned", node.op.name()));
  const auto is_shell = [&](ValueId value) {
    return value != kNone && shells_[storage_of(value)] == result.storage();
  };
  const bool same = std::ranges::equal(result.strides(), IntArrayRef(g.strides)) &&
                    result.storage_offset() == g.offset &&
                    result.storage().nbytes() == g_.storages[id].nbytes &&
                    std::ranges::none_of(g_.uses(node), is_shell, &Use::value) &&
                    std::ranges::none_of(g_.defs(node), is_shell, &Def::value);
  if (same && !is_used_[id]) {
    made_[id] = result.storage();
    return put(id, reinterpret_cast<char*>(result.storage()->address_now()));
  }
  // Another tensor over what an earlier result made.
  if (same && made_[id] == result.storage()) return;
  memory(id);
  ops::copy_elements(tensor(promised), result, node.op.name().data());
}

/// Reports each call by its name, with the region that it is part of and what ran that.
void Instance::report(const Plan::Step& plan, std::string_view engine) const {
  const char* const text = lasting_text(fmt::format("{}:{}:{}", plan.name, engine, kHost.target()));
  for (const Node* call : plan_.calls().subspan(plan.first_call, plan.num_calls))
    report_kernel(call->op.schema().name.c_str(), text);
}

std::exception_ptr Instance::note(std::exception_ptr error, const Node& call) {
  const SourceMark line = memory_ ? memory_->line(call.call) : SourceMark();
  if (line) {
    try {
      std::rethrow_exception(error);
    } catch (Error& e) {
      e.append(fmt::format(" (recorded at {})", describe_source(line)));
      error = std::current_exception();
    } catch (...) {
    }
  }
  if (!first_) first_ = error;
  return error;
}

std::exception_ptr Instance::inherited(const Node& call) const {
  if (failed_.empty()) return nullptr;
  for (const Use& u : g_.uses(call)) {
    if (u.value != kNone && failed_[storage_of(u.value)]) return failed_[storage_of(u.value)];
  }
  for (const Def& d : g_.defs(call)) {
    if (failed_[storage_of(d.value)]) return failed_[storage_of(d.value)];
  }
  return nullptr;
}

void Instance::fail(const Node& call, const std::exception_ptr& error) {
  failed_.resize(made_.size());
  const std::span<const Def> defs = g_.defs(call);
  const size_t num_results = defs.size() - CallArguments::num_written(g_, call);
  for (size_t i = 0; i < defs.size(); ++i) {
    const StorageId id = storage_of(defs[i].value);
    failed_[id] = error;
    // A region that could not run may have found memory for it.
    if (i < num_results) release(id);
  }
}

// A result may have the memory that an input leaves.
void Instance::take_over(StorageId id, StorageId from) noexcept {
  if (from == kNone || is_used_[id] || !made_[from]) return;
  made_[id] = made_[from];
  put(id, addresses_[from]);
}

void Instance::find_memory(StorageId id) {
  if (char* const given = memory_ ? memory_->given(id) : nullptr)
    return put(id, given - plan_.signature().offset_shift[id]);
  made_[id] = tenon::Storage::allocate(g_.storages[id].nbytes, plan_.device());
  put(id, reinterpret_cast<char*>(made_[id]->address_now()));
}

void Instance::put(StorageId id, char* bytes) noexcept {
  if (!std::exchange(is_used_[id], uint8_t{1})) used_.push_back(id);
  bind(id, bytes);
}

void Instance::release(StorageId id) noexcept {
  made_[id] = {};
  is_used_[id] = 0;
}

}  // namespace tenon::graph
