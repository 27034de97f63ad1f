// A region over rows gives the bits of the operators that it was joined of, run one by one: reductions, norms
// and softmax among pointwise operators, over rows of any dimensions, strides and dtypes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "tenon/core/parallel.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/expr/join.h"
#include "tenon/expr/typed_text.h"
#include "tenon/iter/fused_kernel.h"
#include "tenon/ops/forms/rows.h"
#include "tests/expr/random_typed.h"
#include "tests/iter/iter_testing.h"

namespace tenon::testing {
namespace {

using expr::Rank;
using Role = RowsInfo::Role;

struct Entries {
  struct Row {
    OperatorHandle op;
    const RowsInfo* info;
  };
  std::vector<Row> rows;
  std::vector<const PointwiseInfo*> flat;

  Entries() {
    for (const std::string& name : Dispatcher::singleton().operator_names()) {
      const OperatorHandle op = Dispatcher::singleton().find_schema_or_throw_full(name);
      try {
        const PointwiseInfo* info = pointwise_info_of(op.entry());
        if (info && info->outputs.empty() &&
            std::string_view(info->text).find("copysign") == std::string_view::npos &&
            std::find(flat.begin(), flat.end(), info) == flat.end())
          flat.push_back(info);
        if (const RowsInfo* of_rows = ops::rows_info_of(op.entry())) rows.push_back({op, of_rows});
      } catch (const Error&) {
      }
    }
  }
};
const Entries& entries() {
  static const Entries& all = *new Entries;
  return all;
}

bool same_elements(const Tensor& a, const Tensor& b) {
  bool same = a.sizes() == b.sizes() && a.dtype() == b.dtype();
  for_each_index(a.sizes(), [&](const std::vector<int64_t>& index) {
    const auto at = [&](const Tensor& t) {
      int64_t offset = 0;
      for (size_t d = 0; d < index.size(); ++d) offset += index[d] * t.strides()[d];
      return static_cast<const char*>(t.data_ptr()) + offset * static_cast<int64_t>(t.itemsize());
    };
    // Any byte but 0 is true.
    const bool truth = a.dtype() == DType::Bool;
    same = same &&
           (truth ? (*at(a) != 0) == (*at(b) != 0) : expr::testing::same_element(at(a), at(b), a.dtype()));
  });
  return same;
}

constexpr DType kDTypes[] = {DType::Bool,    DType::UInt8,   DType::Int8,     DType::Int32,
                             DType::Int64,   DType::Float16, DType::Float16,  DType::Float32,
                             DType::Float32, DType::Float32, DType::BFloat16, DType::Float64};

class Program {
 public:
  Program(uint64_t seed, const Dims& sizes, const Dims& over)
      : rng_(seed), geometry_(static_cast<unsigned>(seed)), sizes_(sizes), over_(over), row_sizes_(sizes) {
    for (size_t d = 0; d < sizes_.size(); ++d) row_sizes_[d] = over_[d] ? 1 : sizes_[d];
    const size_t kinds = 1 + below(2);
    for (size_t i = 0; i < kinds; ++i) dtypes_.push_back(kDTypes[below(std::size(kDTypes))]);
    add_input(sizes_);
  }

  void grow(int length) {
    for (int made = 0, tried = 0; made < length && tried < 100 * length; ++tried)
      made += below(2) == 0 ? row_step(entries().rows[below(entries().rows.size())])
                            : flat_step(*entries().flat[below(entries().flat.size())]);
  }
  size_t num_reductions() const { return reductions_; }

  void expect_equal() {
    std::vector<expr::ValueName> wanted;
    for (uint32_t v = 0; v < values_.size(); ++v) {
      if (values_[v].made && (v + 1 == values_.size() || below(3) == 0)) wanted.push_back(v);
    }
    if (wanted.empty()) return;
    expr::Joined joined = joiner_.finish(wanted);
    const std::string text = text_ + to_string(*joined.expression);
    std::vector<uint64_t> numbers;
    for (const uint32_t n : joined.numbers) numbers.push_back(numbers_[n]);
    const FusedKernel region(std::move(joined.expression), over_);
    std::vector<Tensor> outputs, inputs;
    for (const uint32_t v : joined.outputs)
      outputs.push_back(random_tensor(values_[v].tensor.dtype(), values_[v].tensor.sizes(), false));
    for (const uint32_t v : joined.inputs) inputs.push_back(values_[v].tensor);
    // Nothing but values of rows: what their shape is, outputs alone do not say.
    const bool whole = std::any_of(region.expression().inputs().begin(), region.expression().inputs().end(),
                                   [](const expr::Slot& s) { return varies_along(s.rank); });
    if (!whole) return;
    region.run(outputs, inputs, numbers.data());
    for (size_t i = 0; i < outputs.size(); ++i)
      ASSERT_TRUE(same_elements(values_[wanted[i]].tensor, outputs[i]))
          << "value " << wanted[i] << " of " << name(outputs[i].dtype()) << " "
          << to_string(outputs[i].sizes()) << " over " << to_string(over_) << "\n"
          << text;
  }

 private:
  struct Value {
    Tensor tensor;
    bool of_row = false;
    bool made = false;
  };

  size_t below(size_t n) { return static_cast<size_t>(rng_() % n); }

  Tensor random_tensor(DType dtype, IntArrayRef sizes, bool may_repeat) {
    const Tensor shape = below(3) == 0 ? make_empty(sizes, DType::UInt8)
                                       : testing::random_tensor(geometry_, sizes, DType::UInt8, may_repeat);
    const auto n = static_cast<int64_t>(shape.storage().nbytes());
    Tensor whole = make_empty({n}, dtype);
    const auto bytes = expr::testing::random_elements(dtype, static_cast<size_t>(n), rng_());
    if (n > 0) std::memcpy(whole.data_ptr(), bytes.data(), bytes.size());
    return make_view(whole, shape.sizes(), shape.strides(), shape.storage_offset());
  }
  uint32_t add(Tensor t, bool made) {
    const bool of_row = t.sizes() != IntArrayRef(sizes_);
    values_.push_back({std::move(t), of_row, made});
    return static_cast<uint32_t>(values_.size() - 1);
  }
  uint32_t add_input(IntArrayRef sizes) {
    return add(random_tensor(dtypes_[below(dtypes_.size())], sizes, true), false);
  }
  // A value of elements or, sometimes, of rows.
  uint32_t operand(bool whole) {
    if (below(6) == 0) return add_input(whole || below(2) == 0 ? sizes_ : row_sizes_);
    for (int tries = 0; tries < 8; ++tries) {
      const size_t v = values_.size() - 1 - below(std::min<size_t>(values_.size(), 5));
      if (!whole || !values_[v].of_row) return static_cast<uint32_t>(v);
    }
    return add_input(sizes_);
  }

  static double random_double(size_t i) {
    constexpr double kFloats[] = {0.5, 2, -1, 0, 3.25, 1e-3};
    return kFloats[i % std::size(kFloats)];
  }
  uint32_t add_number(uint64_t bits) {
    numbers_.push_back(bits);
    return static_cast<uint32_t>(numbers_.size() - 1);
  }

  // Adds what was lowered: `operands` and `results` by place.
  void join(const Lowered& lowered, const std::vector<uint32_t>& operands, const std::vector<Tensor>& results,
            const std::vector<Scalar>& scalars, const char* name, bool flat) {
    const expr::Expression& e = *lowered.expression;
    text_ += std::string(name) + ": " + to_string(e) + "\n";
    std::vector<expr::JoinInput> inputs;
    std::vector<uint32_t> numbers;
    std::vector<expr::ValueName> made, stored;
    for (const expr::Slot& s : e.inputs()) {
      const Value& v = values_[operands[s.operand]];
      inputs.push_back(
          {operands[s.operand], v.of_row || (!flat && s.rank == Rank::Row) ? Rank::Row : s.rank});
    }
    for (const LoweredNumber& n : lowered.numbers) {
      uint64_t bits = 0;
      put_number(bits, n, scalars[n.scalar], name);
      numbers.push_back(add_number(bits));
    }
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].dtype(), lowered.results[i]) << name;
      made.push_back(add(results[i], true));
    }
    for (const expr::Slot& s : e.outputs()) stored.push_back(made[s.operand]);
    joiner_.add(e, inputs, numbers, stored);
  }

  bool flat_step(const PointwiseInfo& info) {
    std::vector<uint32_t> operands;
    std::vector<const Tensor*> tensors;
    std::vector<HeaderRef> refs;
    if (info.optional_tensors != 0 || info.optional_scalars != 0) return false;
    for (size_t i = 0; i < info.tensor_names.size(); ++i) operands.push_back(operand(false));
    for (const uint32_t v : operands) {
      tensors.push_back(&values_[v].tensor);
      refs.emplace_back(values_[v].tensor);
    }
    std::vector<Scalar> scalars;
    std::vector<const Scalar*> pointers;
    std::vector<std::optional<Scalar::Kind>> kinds;
    for (size_t i = 0; i < info.scalar_names.size(); ++i)
      scalars.push_back(below(2) == 0 ? Scalar(random_double(below(6)))
                                      : Scalar(static_cast<int64_t>(below(5))));
    for (const Scalar& s : scalars) {
      pointers.push_back(&s);
      kinds.emplace_back(s.kind());
    }
    try {
      const Tensor result = pointwise(info, tensors, pointers);
      if (is_complex(result.dtype())) return false;
      const std::optional<Lowered> lowered = lower_pointwise(info, refs, kinds, {});
      if (!lowered) return false;
      join(*lowered, operands, {result}, scalars, info.name, true);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  // Pushes an argument's value. False: this operator does not run over such rows.
  bool push_setting(Stack& stack, const RowsInfo& info, Role role, const schema::Argument& a,
                    ops::RowsArguments& arguments) {
    const auto count = static_cast<size_t>(std::count(over_.begin(), over_.end(), 1));
    switch (role) {
      case Role::Dims: {
        dims_.clear();
        const bool last = info.over == RowsInfo::Over::Last, leading = info.over == RowsInfo::Over::Leading;
        for (size_t d = 0; d < over_.size(); ++d) {
          if (last || leading) {
            if ((over_[d] != 0) != leading) dims_.push_back(sizes_[d]);
          } else if (over_[d]) {
            dims_.push_back(static_cast<int64_t>(d));
          }
        }
        if (a.type.list) {
          stack.push(IntArrayRef(dims_));
        } else {
          if (count != 1) return false;
          stack.push(dims_[0]);
        }
        arguments.dims = IntArrayRef(dims_);
        return true;
      }
      case Role::KeepDim:
        stack.push(true);
        arguments.keepdim = true;
        return true;
      case Role::DType:
      case Role::Float32When:
      case Role::Other:
        if (a.type.optional) {
          stack.push_none();
          return true;
        }
        if (role != Role::Float32When) return false;
        stack.push(false);
        return true;
      default:
        return false;
    }
  }

  bool row_step(const Entries::Row& row) {
    const RowsInfo& info = *row.info;
    const schema::FunctionSchema& schema = row.op.schema();
    if (info.roles.size() != schema.arguments.size()) return false;
    Stack stack;
    ops::RowsArguments arguments;
    std::vector<uint32_t> operands;
    std::vector<HeaderRef> refs;
    std::vector<Scalar> scalars;
    std::vector<std::optional<Scalar>> numbers;
    std::vector<std::optional<Scalar::Kind>> kinds;
    for (size_t i = 0; i < info.roles.size(); ++i) {
      const schema::Argument& a = schema.arguments[i];
      if (info.roles[i] == Role::Tensor) {
        const size_t t = operands.size();
        const bool of_row = !varies_along(info.written->inputs()[t].rank);
        if (a.type.optional && below(2) == 0) {
          operands.push_back(~0u);
          refs.emplace_back();
          stack.push_none();
          continue;
        }
        const DType wanted = refs.empty() ? DType::Float32 : refs[0].dtype();
        operands.push_back(refs.empty() ? operand(true)
                           : of_row     ? add(random_tensor(wanted, row_sizes_, true), false)
                                        : operand(true));
        refs.emplace_back(values_[operands.back()].tensor);
        stack.push(values_[operands.back()].tensor);
      } else if (info.roles[i] == Role::Number) {
        const bool absent = a.type.optional && below(2) == 0;
        const bool whole = a.type.base == schema::BaseType::Int;
        scalars.push_back(whole ? Scalar(int64_t{1}) : Scalar(random_double(below(6))));
        numbers.push_back(absent ? std::nullopt : std::optional(scalars.back()));
        kinds.push_back(absent ? std::nullopt : std::optional(scalars.back().kind()));
        if (absent)
          stack.push_none();
        else if (a.type.base == schema::BaseType::Scalar)
          stack.push(scalars.back());
        else if (whole)
          stack.push(scalars.back().to_int());
        else
          stack.push(scalars.back().to_double());
      } else if (!push_setting(stack, info, info.roles[i], a, arguments)) {
        return false;
      }
    }
    arguments.tensors = refs;
    arguments.numbers = numbers;
    std::optional<ops::LoweredRows> lowered;
    try {
      row.op.call_boxed(stack);
      lowered = ops::lower_rows(info, arguments, kinds);
    } catch (const Error&) {
      return false;
    }
    if (!lowered || lowered->over != over_ || lowered->sizes != sizes_) return false;
    std::vector<Tensor> results;
    for (size_t i = 0; i < stack.size(); ++i) {
      Tensor t = stack.at<Tensor>(i);
      if (is_complex(t.dtype())) return false;
      // Without the rows' dimensions: with them, of size 1.
      if (t.sizes() != IntArrayRef(sizes_) && t.sizes() != IntArrayRef(row_sizes_)) {
        Dims strides(sizes_.size());
        for (size_t d = 0, next = 0; d < sizes_.size(); ++d) strides[d] = over_[d] ? 1 : t.strides()[next++];
        t = make_view(t, row_sizes_, strides, t.storage_offset());
      }
      results.push_back(t);
    }
    try {
      join(*lowered, operands, results, scalars, info.name, false);
    } catch (const Error& e) {
      // A row without elements that differ: nothing to reduce.
      EXPECT_NE(std::string(e.what()).find("rule L10"), std::string::npos) << e.what();
      return false;
    }
    ++reductions_;
    return true;
  }

  std::mt19937_64 rng_;
  std::mt19937 geometry_;
  Dims sizes_, over_, row_sizes_, dims_;
  std::vector<DType> dtypes_;
  std::vector<Value> values_;
  std::vector<uint64_t> numbers_;
  expr::Joiner joiner_;
  std::string text_;
  size_t reductions_ = 0;
};

TEST(RowsRegion, GivesTheBitsOfItsOperators) {
  ASSERT_GT(entries().rows.size(), 20u);
  std::mt19937_64 rng(1);
  size_t reductions = 0;
  for (uint64_t seed = 1; seed <= 800; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Dims sizes, over;
    const size_t ndim = 1 + rng() % 3;
    for (size_t d = 0; d < ndim; ++d) sizes.push_back(2 + static_cast<int64_t>(rng() % 7));
    for (size_t d = 0; d < ndim; ++d) over.push_back(static_cast<int64_t>(rng() % 2));
    if (rng() % 2 == 0) {
      std::fill(over.begin(), over.end(), 0);
      over.back() = 1;
    }
    over[rng() % ndim] = 1;
    if (rng() % 4 == 0) sizes[rng() % ndim] = 1500;
    Program program(seed, sizes, over);
    program.grow(1 + static_cast<int>(seed % 6));
    ASSERT_NO_FATAL_FAILURE(program.expect_equal());
    reductions += program.num_reductions();
  }
  EXPECT_GT(reductions, 500u);
}

// softmax along the last dimension as four operators, of which the result of each is a name.
expr::Joined softmax_written_out() {
  expr::Joiner joiner;
  const auto add = [&](const char* text, std::vector<expr::JoinInput> inputs, expr::ValueName out) {
    joiner.add(*expr::parse_typed(text), inputs, {}, {&out, 1});
  };
  add("in x: float32; out float32: max[row](x);", {{0}}, 1);
  add("in x: float32, m: float32; out float32: sub(x, m);", {{0}, {1}}, 2);
  add("in x: float32; out float32: exp(x);", {{2}}, 3);
  add("in x: float32; out float32: sum[row](x);", {{3}}, 4);
  add("in x: float32, s: float32; out float32: div(x, s);", {{3}, {4}}, 5);
  const expr::ValueName wanted[] = {5};
  return joiner.finish(wanted);
}

TEST(RowsRegion, SoftmaxWrittenOutIsSoftmax) {
  const OperatorHandle op = Dispatcher::singleton().find_schema_or_throw("aten::_softmax");
  const RowsInfo* info = ops::rows_info_of(op.entry());
  ASSERT_TRUE(info);
  std::mt19937 rng(1);
  const Tensor x = make_empty({37, 200}, DType::Float32);
  for (int64_t i = 0; i < x.numel(); ++i)
    x.data_ptr<float>()[i] = static_cast<float>(rng() % 1000) / 100.0f - 5.0f;
  const HeaderRef tensors[] = {x};
  const int64_t dim = -1;
  const auto lowered = ops::lower_rows(*info, {.tensors = tensors, .dims = IntArrayRef(dim)}, {});
  ASSERT_TRUE(lowered);
  expr::Joined joined = softmax_written_out();
  EXPECT_EQ(joined.expression->key, lowered->expression->key) << to_string(*joined.expression) << "\n"
                                                              << to_string(*lowered->expression);

  Stack stack;
  stack.push(x);
  stack.push(dim);
  stack.push(false);
  op.call_boxed(stack);
  const Tensor want = stack.at<Tensor>(0), out = make_empty({37, 200}, DType::Float32);
  const FusedKernel region(std::move(joined.expression), Dims{0, 1});
  region.run({&out, 1}, {&x, 1}, nullptr);
  EXPECT_TRUE(same_elements(out, want));
  // Also where it lay.
  region.run({&x, 1}, {&x, 1}, nullptr);
  EXPECT_TRUE(same_elements(x, want));
}

// What is kept from one run to the next belongs to no run: not its addresses, its numbers, its thread.
TEST(RowsRegion, LoopsRunAgainAtOtherAddresses) {
  const FusedKernel region(
      expr::parse_typed("in x: float32; number a: f32; out float32: mul(x, mul(sum[row](x), a));"),
      Dims{0, 1});
  constexpr int64_t kRows = 3, kLength = 21;
  const Dims sizes{kRows, kLength}, strides{kLength, 1};
  const FusedOperand operand{DType::Float32, sizes, strides};
  const FusedLoop loop(region, {&operand, 1}, {&operand, 1});
  // Whole numbers: sums are exact in any order.
  const auto run = [&](int seed, size_t shift) {
    std::vector<std::byte> memory[2];
    for (auto& bytes : memory) bytes.resize(sizeof(float) * kRows * kLength + shift);
    std::byte *const out = memory[0].data() + shift, *const in = memory[1].data() + shift;
    const auto value = [&](int64_t i) { return static_cast<float>((i * 7 + seed) % 11 - 5); };
    for (int64_t i = 0; i < kRows * kLength; ++i) {
      const float v = value(i);
      std::memcpy(in + i * sizeof v, &v, sizeof v);
    }
    const auto factor = static_cast<float>(seed % 5 + 1);
    uint64_t number = 0;
    std::memcpy(&number, &factor, sizeof factor);
    char* const addresses[] = {reinterpret_cast<char*>(out), reinterpret_cast<char*>(in)};
    loop.run(addresses, &number);
    size_t wrong = 0;
    for (int64_t row = 0; row < kRows; ++row) {
      float sum = 0, got;
      for (int64_t i = 0; i < kLength; ++i) sum += value(row * kLength + i);
      for (int64_t i = row * kLength; i < (row + 1) * kLength; ++i) {
        std::memcpy(&got, out + i * sizeof got, sizeof got);
        wrong += got != value(i) * sum * factor;
      }
    }
    return wrong;
  };
  for (int seed = 0; seed < 4; ++seed) EXPECT_EQ(run(seed, 0), 0u) << seed;
  EXPECT_EQ(run(5, 1), 0u) << "elements that are not aligned";
  EXPECT_EQ(run(6, 0), 0u);
  std::atomic<size_t> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) wrong += run(t * 1000 + i, 0);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
}

TEST(RowsRegion, RefusesWhatDoesNotFit) {
  const FusedKernel region(expr::parse_typed("in x: float32; out float32: sum[row](x);"), Dims{0, 1});
  const Tensor x = make_empty({4, 3}, DType::Float32), kept = make_empty({4, 1}, DType::Float32),
               without = make_empty({4}, DType::Float32), wrong = make_empty({3}, DType::Float32);
  std::fill_n(x.data_ptr<float>(), 12, 2.0f);
  const auto run = [&](const Tensor& out, const Tensor& in) { region.run({&out, 1}, {&in, 1}, nullptr); };
  run(kept, x);
  run(without, x);
  EXPECT_EQ(values(kept), std::vector<double>(4, 6.0));
  EXPECT_EQ(values(without), std::vector<double>(4, 6.0));
  EXPECT_NE(
      error_of(ErrorKind::Shape, [&] { run(wrong, x); }).find("operand 0 of shape [3] is no value of rows"),
      std::string::npos);
  EXPECT_THROW(run(kept, kept), Error);
  EXPECT_THROW(FusedKernel(expr::parse_typed("in x: float32; out float32: sum[row](x);")), Error);
}

}  // namespace
}  // namespace tenon::testing
