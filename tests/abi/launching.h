// Launches of expressions over elements in memory of any arrangement, and random expressions to launch: for
// tests of what runs programs.
#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/pointwise/interpreter.h"
#include "tenon/expr/evaluator.h"
#include "tenon/expr/program.h"
#include "tenon/expr/typed_text.h"
#include "tests/expr/special_cases.h"

namespace tenon::expr::testing {

/// A loop of two dimensions, and how an operand's elements lie in it; or of one, in which they are dense.
enum class Arrangement : uint8_t { Dense, Transposed, Reversed, Spread };
inline constexpr int64_t kInner = 7, kOuter = 6;
inline constexpr size_t kCount = kInner * kOuter;

/// An operand: elements somewhere in memory of its own.
class Elements {
 public:
  Elements(DType dtype, Arrangement arrangement, const Bytes& values)
      : item_(static_cast<int64_t>(item_size(dtype))), dtype_(dtype), memory_(4 * values.size(), 0xA5) {
    switch (arrangement) {
      case Arrangement::Dense:
        strides_[0] = item_, strides_[1] = item_ * kInner;
        break;
      case Arrangement::Transposed:
        strides_[0] = item_ * kOuter, strides_[1] = item_;
        break;
      case Arrangement::Reversed:
        strides_[0] = -item_, strides_[1] = -item_ * kInner;
        start_ = static_cast<size_t>(item_) * (kCount - 1);
        break;
      case Arrangement::Spread:
        strides_[0] = 3 * item_, strides_[1] = 4 * item_ * kInner;
        start_ = static_cast<size_t>(2 * item_);
        break;
    }
    const auto item = static_cast<size_t>(item_);
    for (size_t i = 0; i < values.size() / item; ++i) std::memcpy(at(i), &values[i * item], item);
  }

  DType dtype() const noexcept { return dtype_; }
  Bytes& memory() noexcept { return memory_; }
  size_t start() const noexcept { return start_; }
  /// Element i of the loop.
  unsigned char* at(size_t i) {
    const auto inner = static_cast<int64_t>(i) % kInner, outer = static_cast<int64_t>(i) / kInner;
    return memory_.data() + static_cast<int64_t>(start_) + inner * strides_[0] + outer * strides_[1];
  }
  TenonOperand operand() {
    return {.address = reinterpret_cast<TenonAddress>(memory_.data()) + start_,
            .strides = strides_,
            .dtype = static_cast<TenonDType>(dtype_),
            .place = TENON_PLACE_DEVICE,
            .reserved = {}};
  }

 private:
  int64_t item_;
  DType dtype_;
  Bytes memory_;
  size_t start_ = 0;
  int64_t strides_[2];
};

/// A launch, its operands, and what the interpreter makes of the same call.
class Launched {
 public:
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  const TenonLaunch& launch() const noexcept { return launch_; }
  std::vector<Elements>& elements() noexcept { return elements_; }
  const std::string& text() const noexcept { return text_; }

  /// Forgets what was written.
  void clear() {
    for (size_t k = 0; k < want_.size(); ++k)
      std::fill(elements_[k].memory().begin(), elements_[k].memory().end(), 0xA5);
  }
  /// How many elements differ from the interpreter's, all NaNs being one.
  int differing() {
    int count = 0;
    for (size_t k = 0; k < want_.size(); ++k) {
      const DType d = elements_[k].dtype();
      for (size_t at = 0; at < want_[k].size(); at += item_size(d))
        count += !same_element(elements_[k].at(at / item_size(d)), &want_[k][at], d);
    }
    return count;
  }

 protected:
  Launched() = default;

  /// Launches what was made of `program_of`, which with these operands is what `reference` says: a typed
  /// expression over the operands as they are stored. `arrangement()` says how each of them lies.
  template <class F>
  void make(const Expression& program_of, const Expression& reference, std::vector<Bytes> inputs,
            std::vector<uint64_t> numbers, std::vector<TenonDType> results, F&& arrangement, bool flat) {
    program_ = std::make_unique<DeviceProgram>(program_of);
    text_ = to_string(reference);
    numbers_ = std::move(numbers);
    results_ = std::move(results);
    const auto stored = [](const Slot& s) { return real_dtype(s.dtype); };
    const size_t count = inputs[0].size() / item_size(stored(reference.inputs()[0]));
    std::vector<void*> ptrs;
    for (const Slot& s : reference.outputs()) want_.emplace_back(count * item_size(stored(s)));
    for (Bytes& bytes : want_) ptrs.push_back(bytes.data());
    for (Bytes& bytes : inputs) ptrs.push_back(bytes.data());
    if (is_definitions_own(reference))
      evaluate_each(reference, ptrs, count);
    else
      cpu::Program(reference).run(ptrs.data(), count, numbers_.data());

    for (const Slot& s : reference.outputs())
      elements_.emplace_back(stored(s), arrangement(), Bytes(count * item_size(stored(s)), 0xA5));
    for (size_t i = 0; i < inputs.size(); ++i)
      elements_.emplace_back(stored(reference.inputs()[i]), arrangement(), inputs[i]);
    for (Elements& e : elements_) operands_.push_back(e.operand());
    sizes_[0] = flat ? static_cast<int64_t>(count) : kInner;
    launch_ = {.struct_size = sizeof(TenonLaunch),
               .ndim = flat ? 1u : 2u,
               .name = "test",
               .program = &program_->get(),
               .sizes = sizes_,
               .operands = operands_.data(),
               .results = results_.data(),
               .scalars = numbers_.data(),
               .slot = &slot_};
    set_variant(launch_);
  }

 private:
  // Whether it has what the interpreter has inside functions alone.
  static bool is_definitions_own(const Expression& e) {
    return std::any_of(e.nodes().begin(), e.nodes().end(), [](const Node& n) {
      const TypeRule rule = info(n.op).rule;
      return rule == TypeRule::ToBits || rule == TypeRule::FromBits || rule == TypeRule::BitShift;
    });
  }
  // By the definition of expressions; outputs come first, inputs behind them.
  void evaluate_each(const Expression& e, const std::vector<void*>& ptrs, size_t count) const {
    for (size_t i = 0; i < count; ++i) {
      const auto at = [&](const Slot& s, size_t k) {
        return static_cast<unsigned char*>(ptrs[k]) + i * item_size(real_dtype(s.dtype));
      };
      std::vector<void*> outputs;
      std::vector<const void*> inputs;
      for (const Slot& s : e.outputs()) outputs.push_back(at(s, outputs.size()));
      for (const Slot& s : e.inputs()) inputs.push_back(at(s, outputs.size() + inputs.size()));
      evaluate(e, inputs.data(), numbers_.data(), outputs.data());
    }
  }

  std::unique_ptr<DeviceProgram> program_;
  std::string text_;
  std::vector<Bytes> want_;
  std::vector<Elements> elements_;
  std::vector<uint64_t> numbers_;
  std::vector<TenonOperand> operands_;
  std::vector<TenonDType> results_;
  int64_t sizes_[2] = {0, kOuter};
  void* slot_ = nullptr;
  TenonLaunch launch_;
};

/// Any typed expression, over dense operands of its slots' dtypes.
class DenseLaunch : public Launched {
 public:
  DenseLaunch(const Expression& e, std::vector<Bytes> inputs, uint64_t seed) {
    std::vector<uint64_t> numbers;
    for (const Slot& s : e.numbers())
      numbers.push_back(load_scalar(random_elements(s.dtype, 1, seed + 50 + numbers.size()).data(), s.dtype));
    std::vector<TenonDType> results;
    for (const Slot& s : e.outputs()) results.push_back(static_cast<TenonDType>(real_dtype(s.dtype)));
    make(
        e, e, std::move(inputs), std::move(numbers), std::move(results), [] { return Arrangement::Dense; },
        true);
  }
  /// On `count` random elements.
  DenseLaunch(const Expression& e, size_t count, uint64_t seed)
      : DenseLaunch(e, random_inputs(e, count, seed), seed) {}

 private:
  static std::vector<Bytes> random_inputs(const Expression& e, size_t count, uint64_t seed) {
    std::vector<Bytes> inputs;
    for (const Slot& s : e.inputs())
      inputs.push_back(random_elements(real_dtype(s.dtype), count, seed + inputs.size()));
    return inputs;
  }
};

/// A random expression of two outputs in one compute type, over operands of random dtypes. Every other one
/// has strides.
class RandomLaunch : public Launched {
 public:
  RandomLaunch(uint64_t seed, Type type, int size) {
    std::mt19937_64 rng(seed * 4 + static_cast<uint64_t>(type));
    const auto any = [&rng] { return kStored[rng() % std::size(kStored)]; };
    Builder g;
    const ExpressionPtr written = g.finish(random_outputs(g, seed, type, size));
    // Now and then the operands are as they are computed with, as they mostly are in calls.
    const bool plain = rng() % 4 == 0, dense = seed % 2 == 0;
    const DType own = expr::dtype(type);
    const DType inputs[] = {plain ? own : any(), plain ? own : any(), DType::Bool};
    const DType results[] = {plain ? own : any(), rng() % 2 == 0 ? DType::Bool : own};
    const DType outs[] = {plain || rng() % 2 == 0 ? results[0] : any(), results[1]};
    std::vector<Bytes> values;
    for (const DType d : inputs) values.push_back(random_elements(d, kCount, seed + values.size()));
    make(
        *instantiate(*written, {.compute = type}),
        *instantiate(*written, {.compute = type, .inputs = inputs, .results = results, .outs = outs}),
        std::move(values), {load_scalar(random_elements(own, 1, seed + 9).data(), own)},
        {static_cast<TenonDType>(results[0]), static_cast<TenonDType>(results[1])},
        [&] { return dense ? Arrangement::Dense : static_cast<Arrangement>(rng() % 4); }, dense);
  }
};

/// Every operation on its special values.
inline std::vector<std::unique_ptr<Launched>> special_launches() {
  std::vector<std::unique_ptr<Launched>> all;
  for (const auto& cases : {special_cases(), special_cases_of_definitions()}) {
    for (const SpecialCase& c : cases) all.push_back(std::make_unique<DenseLaunch>(*c.e, c.inputs, 0));
  }
  return all;
}

}  // namespace tenon::expr::testing
