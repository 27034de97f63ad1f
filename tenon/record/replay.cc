#include "tenon/record/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <complex>
#include <optional>
#include <utility>

#include "tenon/core/stream.h"
#include "tenon/record/recorder.h"
#include "tenon/record/report.h"

namespace tenon::record {

void RecordedSegment::refuse(std::string why, SourceMark line) {
  if (is_refused()) return;
  reason_ = std::move(why);
  line_ = line_of_program(line);
}

void RecordedSegment::take(const Segment& segment, const std::vector<bool>& wanted,
                           std::shared_ptr<const graph::Plan> plan, bool is_long) {
  taken_ = true;
  is_long_ = is_long;
  calls_ = segment.calls;
  numbers_ = segment.numbers;
  plan_ = std::move(plan);
  for (size_t i = 0; i < segment.slots.size(); ++i) {
    const SlotState& slot = segment.slots[i];
    slots_.push_back({.storage = slot.is_input || wanted[i] ? slot.storage : Storage(),
                      .is_input = slot.is_input,
                      .is_written = slot.is_written,
                      .is_wanted = wanted[i],
                      .begin = slot.begin});
  }
}

bool RecordedSegment::stays_within(uint32_t slot, int64_t begin, int64_t end) const {
  if (reads_offsets_) return false;
  const auto first = static_cast<int64_t>(slots_[slot].begin);
  for (const RecordedCall& call : calls_) {
    for (const Operand& o : call.node->operands) {
      if (o.storage != slot) continue;
      const Geometry& g = o.geometry;
      const auto size = static_cast<int64_t>(item_size(g.dtype));
      const Extent reach = extent(g.sizes, g.strides, "compile");
      if (reach.low == reach.high) continue;
      if (first + (g.offset + reach.low) * size < begin || first + (g.offset + reach.high) * size > end)
        return false;
    }
  }
  return true;
}

namespace {

// To let others run meanwhile takes a part of this.
constexpr std::chrono::microseconds kShort{20};

// The place of an argument among the numbers of a call; -1 where it is none of them.
int number_of_argument(const TrieNode& node, int argument) {
  int number = 0;
  for (int i = 0; i < argument; ++i)
    number += node.arguments[static_cast<size_t>(i)].kind == ArgumentSource::Kind::Number;
  return argument >= 0 && node.arguments[static_cast<size_t>(argument)].kind == ArgumentSource::Kind::Number
             ? number
             : -1;
}

std::string text_of(const Scalar& s) {
  if (s.is_bool()) return s.to_bool() ? "True" : "False";
  if (s.is_integral()) return fmt::format("{}", s.to_int());
  const std::complex<double> c = s.to_complex();
  return s.is_complex() ? fmt::format("({}{:+}j)", c.real(), c.imag()) : fmt::format("{:#}", c.real());
}

}  // namespace

// Steps run on what the caller brings; those of a segment run on SegmentMemory (flush.cc).
class Replay::Memory final : public graph::RunMemory {
 public:
  Memory(Replay& replay, std::span<Storage> storages) : replay_(replay), storages_(storages) {}

  char* given(uint32_t slot) override {
    const Slot& s = replay_.slots_[slot];
    const Storage& there = s.kind == Slot::Kind::Input ? storages_[slot] : s.kept;
    return there ? reinterpret_cast<char*>(there->address_now()) + s.begin : nullptr;
  }
  void keep(uint32_t slot, Storage made) override {
    if (replay_.slots_[slot].kind == Slot::Kind::Result) storages_[slot] = std::move(made);
  }
  SourceMark line(uint32_t call) const override { return replay_.calls_[call].line; }

 private:
  Replay& replay_;
  std::span<Storage> storages_;
};

// What regions make for each other is small enough to stay. Calls bring the memory of their results.
void Replay::keep_memory() {
  constexpr size_t kKeptBytes = 4096, kKeptAll = size_t{64} << 10;
  size_t kept = 0;
  const graph::Graph& g = plan_->graph();
  for (const graph::Node& node : g.nodes) {
    if (!node.region) continue;
    for (const graph::Def& d : g.defs(node)) {
      const graph::StorageId id = g.values[d.value].storage;
      const size_t nbytes = g.storages[id].nbytes;
      Slot& slot = slots_[id];
      if (slot.kind != Slot::Kind::Inner || slot.kept || nbytes > kKeptBytes || kept + nbytes > kKeptAll)
        continue;
      slot.kept = Storage::allocate(nbytes);
      kept += nbytes;
    }
  }
}

bool Replay::drops_nothing(const RecordedCall& call) const {
  const int chance = number_of_argument(*call.node, call.node->info->op.traits().stream.unless_zero);
  return chance >= 0 && number(call.first_number + static_cast<uint32_t>(chance)).to_double() == 0;
}

Replay::Replay(RecordedSegment& capture, const std::vector<bool>& results, PhiloxState before,
               PhiloxState after)
    : calls_(std::move(capture.calls_)),
      numbers_(std::move(capture.numbers_)),
      plan_(std::move(capture.plan_)),
      instance_(*plan_),
      is_long_(capture.is_long_),
      num_blocks_(after.offset - before.offset) {
  using enum Slot::Kind;
  for (uint32_t i = 0; i < results.size(); ++i) {
    const RecordedSegment::Slot& slot = capture.slots_[i];
    wanted_.push_back(slot.is_wanted);
    slots_.push_back({slot.is_input ? Input : results[i] ? Result : Inner, slot.begin, {}});
    if (results[i] && !slot.is_input) results_.push_back({i, slot.storage.version()});
  }
  keep_memory();
  for (const RecordedCall& call : calls_) {
    const StreamTrait& stream = call.node->info->op.traits().stream;
    const int seed = number_of_argument(*call.node, stream.seed),
              offset = number_of_argument(*call.node, stream.offset);
    if (seed < 0 || offset < 0 || drops_nothing(call)) continue;
    RandomNumber random{call.first_number + static_cast<uint32_t>(seed),
                        call.first_number + static_cast<uint32_t>(offset), 0};
    random.position = static_cast<uint64_t>(number(random.offset).to_int()) - before.offset;
    const bool ours =
        static_cast<uint64_t>(number(random.seed).to_int()) == before.seed && random.position < num_blocks_;
    if (!ours) capture.refuse("it draws random numbers from a generator of its own", call.line);
    random_.push_back(random);
  }
}

std::optional<uint32_t> Replay::number_of(std::string_view op, uint32_t slot,
                                          std::string_view argument) const {
  std::optional<uint32_t> found;
  for (const RecordedCall& call : calls_) {
    const bool writes = std::ranges::any_of(call.node->operands,
                                            [&](const Operand& o) { return o.written && o.storage == slot; });
    if (!writes || call.node->info->schema->name != op) continue;
    const auto place = call.node->info->schema->argument_index(argument);
    const int number = place ? number_of_argument(*call.node, static_cast<int>(*place)) : -1;
    if (found || number < 0) return {};
    found = call.first_number + static_cast<uint32_t>(number);
  }
  return found;
}

std::optional<Replay::Difference> Replay::difference(const Replay& now,
                                                     std::span<const uint32_t> live) const {
  const std::vector<RecordedCall>&then = calls_, &calls = now.calls_;
  const auto name = [](const RecordedCall& call) { return call.node->info->op.full_name(); };
  for (size_t i = 0; i < calls.size() && i < then.size(); ++i) {
    const TrieNode &a = *then[i].node, &b = *calls[i].node;
    if (&a != &b) {
      const std::string why = a.info == b.info ? record::difference(b, a) : "its replay has " + name(then[i]);
      return Difference{fmt::format("it records {}: {}", name(calls[i]), why), calls[i].line};
    }
    uint32_t number = calls[i].first_number;
    for (size_t k = 0; k < b.arguments.size(); ++k) {
      if (b.arguments[k].kind != ArgumentSource::Kind::Number) continue;
      const Scalar &was = numbers_[number], &is = now.numbers_[number];
      const bool is_random = std::ranges::any_of(
          random_, [&](const RandomNumber& r) { return number == r.seed || number == r.offset; });
      if (!graph::same_bits(was, is) && !is_random && std::ranges::find(live, number) == live.end())
        return Difference{fmt::format("it records {} with {} for `{}`, and its replay has {}", name(calls[i]),
                                      text_of(is), b.info->schema->arguments[k].name, text_of(was)),
                          calls[i].line};
      ++number;
    }
  }
  if (calls.size() > then.size())
    return Difference{fmt::format("it records {} as well", name(calls[then.size()])),
                      calls[then.size()].line};
  if (calls.size() < then.size())
    return Difference{fmt::format("it does not record {}", name(then[calls.size()])), calls.back().line};
  if (random_ != now.random_ || num_blocks_ != now.num_blocks_)
    return Difference{"it draws other random numbers", calls.front().line};
  return {};
}

std::optional<Replay::Difference> Replay::difference_in_results(const Replay& now) const {
  for (uint32_t i = 0; i < wanted_.size(); ++i) {
    if (wanted_[i] != now.wanted_[i])
      return Difference{wanted_[i] ? "it no longer keeps a tensor that it computes"
                                   : "it keeps a tensor that it computes and does not return",
                        now.line_of(i)};
  }
  if (results_ != now.results_)
    return Difference{"it writes a result another number of times", now.calls_.front().line};
  return {};
}

SourceMark Replay::line_of(uint32_t slot) const {
  for (const RecordedCall& call : calls_) {
    const auto is_slot = [&](const auto& tensor) { return tensor.storage == slot; };
    if (std::ranges::any_of(call.node->operands, is_slot) || std::ranges::any_of(call.node->outputs, is_slot))
      return call.line;
  }
  return {};
}

std::exception_ptr Replay::compute(std::span<Storage> storages) {
  Memory memory(*this, storages);
  instance_.put_numbers(numbers_);
  return instance_.run(&memory);
}

void Replay::run(std::span<Storage> storages) {
  if (num_blocks_ > 0) {
    const PhiloxState taken = default_generator()->take(num_blocks_);
    for (const RandomNumber& random : random_) {
      set_number(random.seed, Scalar(static_cast<int64_t>(taken.seed)));
      set_number(random.offset, Scalar(static_cast<int64_t>(taken.offset + random.position)));
    }
  }
  std::exception_ptr error;
  if (is_long_) {
    const WaitScope others_run;
    const auto begin = std::chrono::steady_clock::now();
    error = compute(storages);
    is_long_ = std::chrono::steady_clock::now() - begin > kShort;
  } else {
    error = compute(storages);
  }
  if (error) std::rethrow_exception(error);
  for (const Result& result : results_) {
    StorageImpl& storage = *storages[result.slot];
    storage.forget_versions();
    for (uint64_t v = 0; v < result.version; ++v) storage.bump_version();
  }
}

}  // namespace tenon::record
