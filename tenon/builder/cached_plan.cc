#include "tenon/builder/cached_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "tenon/core/error.h"
#include "tenon/core/thread_state.h"
#include "tenon/dispatch/writes.h"
#include "tenon/generated/functions.h"

namespace tenon::builder {
namespace {

using Kind = PlanArgument::Kind;
/// The words of a key, in place for most.
using Words = SmallVector<uint64_t, 64>;

std::string_view described(Kind kind) {
  switch (kind) {
    case Kind::Absent:
      return "absent";
    case Kind::Tensor:
      return "a tensor";
    case Kind::Number:
      return "a floating-point number";
    case Kind::Int:
      return "an int";
    case Kind::Bool:
      return "a bool";
    case Kind::Text:
      return "a text";
    case Kind::Ints:
      return "a list of ints";
    case Kind::Type:
      return "a dtype";
  }
  return "";
}

void add_tensor(Words& key, const tenon::Tensor& t) {
  const IntArrayRef sizes = t.sizes(), strides = t.strides();
  const Device device = t.device();
  key.push_back(static_cast<uint64_t>(Kind::Tensor) | static_cast<uint64_t>(t.dtype()) << 8 |
                static_cast<uint64_t>(static_cast<uint8_t>(device.backend)) << 16 |
                static_cast<uint64_t>(static_cast<uint8_t>(device.index)) << 24 |
                static_cast<uint64_t>(t.layout()) << 32 | static_cast<uint64_t>(sizes.size()) << 40);
  for (const int64_t size : sizes) key.push_back(static_cast<uint64_t>(size));
  for (const int64_t stride : strides) key.push_back(static_cast<uint64_t>(stride));
}

/// All that a plan depends on: no addresses, and no values of numbers.
void add_words(Words& key, const PlanArgument& argument) {
  const auto tag = [&](size_t count) {
    key.push_back(static_cast<uint64_t>(argument.kind()) | static_cast<uint64_t>(count) << 32);
  };
  switch (argument.kind()) {
    case Kind::Tensor:
      return add_tensor(key, argument.tensor());
    case Kind::Absent:
    case Kind::Number:
      return tag(0);
    case Kind::Int:
    case Kind::Bool:
    case Kind::Type:
      tag(0);
      key.push_back(static_cast<uint64_t>(argument.integer()));
      return;
    case Kind::Ints:
      tag(argument.ints().size());
      for (const int64_t value : argument.ints()) key.push_back(static_cast<uint64_t>(value));
      return;
    case Kind::Text: {
      const std::string_view text = argument.text();
      tag(text.size());
      for (size_t at = 0; at < text.size(); at += 8) {
        uint64_t word = 0;
        std::memcpy(&word, text.data() + at, std::min<size_t>(8, text.size() - at));
        key.push_back(word);
      }
    }
  }
}

bool records_history(const tenon::Tensor& t) {
  return thread_state.grad_enabled && t.key_set().has(Functionality::Autograd) &&
         !thread_state.excluded.has(Functionality::Autograd);
}

[[noreturn]] void refuse_history(const std::string& name, size_t argument, bool writes_out) {
  if (writes_out)
    throw_error(ErrorKind::Runtime,
                fmt::format("{}(): functions with out=... arguments don't support automatic differentiation, "
                            "but one of the arguments requires grad.",
                            name));
  throw_error(ErrorKind::Runtime,
              fmt::format("{}: argument {} requires grad, and a plan has no derivative: register an operator "
                          "whose kernel it is, with register_autograd, or call it under no_grad",
                          name, argument));
}

}  // namespace

const PlanArgument& PlanInputs::at(size_t i) const {
  TENON_CHECK(i < arguments_.size(), Index,
              fmt::format("argument {} of {} is asked for", i, arguments_.size()));
  return arguments_[i];
}
const PlanArgument& PlanInputs::of(size_t i, Kind kind) const {
  const PlanArgument& argument = at(i);
  TENON_CHECK(argument.kind() == kind, Type,
              fmt::format("argument {} is {}, not {}", i, described(argument.kind()), described(kind)));
  return argument;
}
TensorAttributes& PlanInputs::tensor(size_t i) const {
  TENON_CHECK(
      i < tensors_.size() && tensors_[i], Type,
      fmt::format("argument {} is {}, not a tensor or a floating-point number", i, described(at(i).kind())));
  return *tensors_[i];
}

// One plan

tenon::Tensor PlanBinding::make(const Result& result) const {
  return result.contiguous ? make_empty(result.sizes, result.dtype, device_)
                           : make_empty_strided(result.sizes, result.strides, result.dtype, device_);
}

/// Whether the plan may write to it directly.
bool PlanBinding::fits(const Result& result, const tenon::Tensor& out,
                       std::span<const PlanArgument> arguments) const {
  const auto refuse = [&](ErrorKind kind, const std::string& what) {
    throw_error(kind, fmt::format("{}: `out` {}", name_, what));
  };
  if (out.device() != device_)
    refuse(ErrorKind::Device,
           fmt::format("is on {}, the result is on {}", to_string(out.device()), to_string(device_)));
  if (out.dtype() != result.dtype)
    refuse(ErrorKind::Type, fmt::format("is {}, the result is {}", name(out.dtype()), name(result.dtype)));
  if (out.sizes() != IntArrayRef(result.sizes))
    refuse(ErrorKind::Shape, fmt::format("has sizes {}, the result has {}", tenon::to_string(out.sizes()),
                                         tenon::to_string(result.sizes)));
  if (tenon::detail::is_read_only(out)) refuse(ErrorKind::Runtime, "is read-only");
  const auto shares = [&](const PlanArgument& a) {
    return a.kind() == Kind::Tensor && a.tensor().storage() == out.storage();
  };
  return std::ranges::equal(out.strides(), IntArrayRef(result.strides)) &&
         std::ranges::none_of(arguments, shares);
}

inline void PlanBinding::make_results(std::span<tenon::Tensor> results) const {
  for (size_t i = 0; i < results_.size(); ++i) {
    if (results[i].defined())
      results[i].storage()->bump_version();
    else
      results[i] = make(results_[i]);
  }
}

inline void PlanBinding::collect(std::span<const PlanArgument> arguments,
                                 std::span<const tenon::Tensor> results, Addresses& addresses) const {
  for (const Place place : places_) {
    if (place >= arguments.size()) {
      addresses.push_back(reinterpret_cast<Address>(results[place - arguments.size()].data_ptr()));
      continue;
    }
    const PlanArgument& argument = arguments[place];
    addresses.push_back(argument.kind() == Kind::Tensor
                            ? reinterpret_cast<Address>(argument.tensor().data_ptr())
                            : reinterpret_cast<Address>(&argument.number()));
  }
}

void PlanBinding::prepare(std::span<const PlanArgument> arguments, std::span<tenon::Tensor> results,
                          bool only_results) const {
  make_results(results);
  Addresses addresses;
  if (!only_results) collect(arguments, results, addresses);
}

void PlanBinding::run(std::span<const PlanArgument> arguments, std::span<tenon::Tensor> results) const {
  SmallVector<tenon::Tensor*, 8> copied;  // their results, which lie elsewhere, follow `results` in `made`
  std::vector<tenon::Tensor> made;
  for (size_t i = 0; i < results_.size(); ++i) {
    if (results[i].defined() && !fits(results_[i], results[i], arguments)) copied.push_back(&results[i]);
  }
  if (!copied.empty()) {
    made.resize(results_.size());
    for (size_t i = 0; i < results_.size(); ++i) {
      const bool elsewhere = std::ranges::find(copied, &results[i]) != copied.end();
      if (!elsewhere) made[i] = results[i];
    }
    run(arguments, made);
    for (size_t i = 0; i < results_.size(); ++i) {
      if (std::ranges::find(copied, &results[i]) != copied.end())
        results[i].copy_(made[i]);
      else
        results[i] = made[i];
    }
    return;
  }
  make_results(results);
  if (!plan_) return;
  Addresses addresses;
  collect(arguments, results, addresses);
  // The size is known, the bytes are this call's own: another call may run meanwhile, on another thread.
  const Storage workspace = workspace_size_ > 0 ? Storage::allocate(workspace_size_, device_) : Storage();
  std::span<std::byte> bytes;
  if (workspace) bytes = {reinterpret_cast<std::byte*>(workspace.address()), workspace_size_};
  plan_->execute({addresses.data(), addresses.size()}, bytes, current_stream(device_));
}

// All plans

CachedPlan::CachedPlan(std::string name, Build build, size_t capacity, GraphOptions options)
    : name_(std::move(name)), build_(std::move(build)), options_(std::move(options)) {
  TENON_CHECK(capacity > 0, Value, fmt::format("cached_plan {}: at least one plan has to be kept", name_));
  counts_.capacity = capacity;
  options_.name = name_;
}

size_t CachedPlan::Hash::operator()(std::span<const uint64_t> key) const noexcept {
  uint64_t hash = key.size();
  for (const uint64_t word : key) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  }
  return hash;
}
bool CachedPlan::Equal::operator()(std::span<const uint64_t> a, std::span<const uint64_t> b) const noexcept {
  return std::ranges::equal(a, b);
}

std::shared_ptr<const PlanBinding> CachedPlan::find(std::span<const PlanArgument> arguments,
                                                    bool writes_out) {
  Words key;
  const tenon::Tensor* first = nullptr;
  for (size_t i = 0; i < arguments.size(); ++i) {
    add_words(key, arguments[i]);
    if (arguments[i].kind() != Kind::Tensor) continue;
    const tenon::Tensor& t = arguments[i].tensor();
    if (!first) first = &t;
    if (records_history(t)) [[unlikely]]
      refuse_history(name_, i, writes_out);
    TENON_CHECK(t.device() == first->device(), Device,
                fmt::format("{}: argument {} is on {}, and others are on {}", name_, i, to_string(t.device()),
                            to_string(first->device())));
  }
  const std::span<const uint64_t> words{key.data(), key.size()};
  {
    const std::lock_guard lock(mutex_);
    if (!latest_ || !Equal()(latest_->first, words)) {
      const auto found = plans_.find(words);
      latest_ = found == plans_.end() ? nullptr : &*found;
    }
    if (latest_) [[likely]] {
      latest_->second.used = ++counts_.hits + counts_.misses;
      return latest_->second.plan;
    }
  }
  std::shared_ptr<const PlanBinding> made = make(arguments, first ? first->device() : kCPU);
  const std::lock_guard lock(mutex_);
  ++counts_.misses;
  latest_ = nullptr;
  if (plans_.size() >= counts_.capacity && !plans_.contains(words))
    plans_.erase(std::ranges::min_element(plans_, {}, [](const auto& kept) { return kept.second.used; }));
  Entry& entry = plans_.try_emplace(Key(words.begin(), words.end())).first->second;
  if (!entry.plan) entry.plan = std::move(made);
  entry.used = counts_.hits + counts_.misses;
  return entry.plan;
}

std::shared_ptr<const PlanBinding> CachedPlan::make(std::span<const PlanArgument> arguments,
                                                    Device device) const {
  auto bound = std::make_shared<PlanBinding>();
  bound->name_ = name_;
  bound->device_ = device;
  const Handle handle{.device = device};
  bound->graph_ = std::make_shared<Graph>(options_, &handle);
  Graph& g = *bound->graph_;
  std::vector<TensorAttributes*> inputs(arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    TensorDescription description{.name = fmt::format("argument {}", i), .uid = i + 1};
    if (arguments[i].kind() == Kind::Tensor) {
      const tenon::Tensor& t = arguments[i].tensor();
      TENON_CHECK(t.layout() == Layout::Strided, NotImplemented,
                  fmt::format("{}: argument {} is not strided", name_, i));
      description.dim = t.sizes().to_dims();
      description.stride = t.strides().to_dims();
      description.data_type = t.dtype();
    } else if (arguments[i].kind() == Kind::Number) {
      description.data_type = DType::Float64;
      description.is_pass_by_value = true;
    } else {
      continue;
    }
    inputs[i] = &g.tensor(std::move(description));
  }
  const PlanResults results = build_(g, PlanInputs(bound->graph_, arguments, inputs));
  TENON_CHECK(!results.empty(), Value, fmt::format("{}: the graph has no results", name_));
  for (size_t i = 0; i < results.size(); ++i) {
    TENON_CHECK(results[i] && &results[i]->graph() == &g, Value,
                fmt::format("{}: result {} is no tensor of the graph", name_, i));
    TENON_CHECK(std::ranges::count(results, results[i]) == 1, Value,
                fmt::format("{}: result {} is returned twice", name_, i));
    TENON_CHECK(std::ranges::find(inputs, results[i]) == inputs.end(), Value,
                fmt::format("{}: result {} is an argument; a node has to make it (identity)", name_, i));
    results[i]->set_output().set_uid(arguments.size() + 1 + i);
  }
  if (device.is_meta()) {
    g.validate();
  } else {
    g.build();
    bound->plan_ = g.plan();
    bound->workspace_size_ = bound->plan_->workspace_size();
    for (const uint64_t uid : bound->plan_->uids_sorted()) {
      const TensorAttributes* const t = g.find_tensor(uid);
      const auto input = std::ranges::find(inputs, t);
      const auto place = input != inputs.end() ? input - inputs.begin()
                                               : std::ranges::find(results, t) - results.begin() +
                                                     static_cast<std::ptrdiff_t>(arguments.size());
      TENON_CHECK(place < static_cast<std::ptrdiff_t>(arguments.size() + results.size()), Value,
                  fmt::format("{}: tensor '{}' is neither an argument nor a result", name_, t->name()));
      bound->places_.push_back(static_cast<PlanBinding::Place>(place));
    }
  }
  for (const TensorAttributes* t : results)
    bound->results_.push_back(
        {t->dim(), t->stride(), *t->data_type(), t->stride() == contiguous_strides(t->dim())});
  return bound;
}

std::vector<tenon::Tensor> CachedPlan::operator()(std::initializer_list<PlanArgument> arguments) {
  const std::shared_ptr<const PlanBinding> plan = find({arguments.begin(), arguments.size()});
  std::vector<tenon::Tensor> results(plan->num_results());
  plan->run({arguments.begin(), arguments.size()}, results);
  return results;
}

CachedPlan::Counts CachedPlan::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.size = plans_.size();
  return counts;
}
void CachedPlan::clear() {
  const std::lock_guard lock(mutex_);
  plans_.clear();
  latest_ = nullptr;
  counts_.hits = counts_.misses = 0;
}

}  // namespace tenon::builder
