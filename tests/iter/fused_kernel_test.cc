// A region gives the bits of the operators that it was joined of, run one by one: for any shapes, strides and
// dtypes, with outputs that are inputs, on one thread and on two.
#include "tenon/iter/fused_kernel.h"

#include <algorithm>
#include <complex>

#include "tenon/core/parallel.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/expr/function.h"
#include "tenon/expr/join.h"
#include "tenon/expr/typed_text.h"
#include "tenon/iter/lower.h"
#include "tests/expr/random_typed.h"
#include "tests/iter/iter_testing.h"

namespace tenon::testing {
namespace {

std::vector<const PointwiseInfo*> builtin_entries() {
  std::vector<const PointwiseInfo*> list;
  for (const std::string& name : Dispatcher::singleton().operator_names()) {
    const OperatorHandle op = Dispatcher::singleton().find_schema_or_throw_full(name);
    const PointwiseInfo* info = nullptr;
    try {
      info = pointwise_info_of(op.entry());
    } catch (const Error&) {
      continue;  // it has no kernel for the host
    }
    // What a NaN's sign is shows in copysign alone.
    if (info && std::string_view(info->text).find("copysign") == std::string_view::npos &&
        std::find(list.begin(), list.end(), info) == list.end())
      list.push_back(info);
  }
  return list;
}

/// The same elements in another storage.
Tensor copied(const Tensor& t) {
  const Storage& from = t.storage();
  Storage storage = Storage::allocate(from.nbytes());
  if (from.nbytes() > 0)
    std::memcpy(reinterpret_cast<void*>(storage.address()), reinterpret_cast<const void*>(from.address()),
                from.nbytes());
  Tensor whole(
      TensorImpl::make(std::move(storage), t.dtype(), {static_cast<int64_t>(from.nbytes() / t.itemsize())}));
  return make_view(whole, t.sizes(), t.strides(), t.storage_offset());
}

bool same_elements(const Tensor& a, const Tensor& b) {
  bool same = true;
  const DType part = real_dtype(a.dtype());
  const size_t parts = is_complex(a.dtype()) ? 2 : 1;
  for_each_index(a.sizes(), [&](const std::vector<int64_t>& index) {
    const auto at = [&](const Tensor& t) {
      int64_t offset = 0;
      for (size_t d = 0; d < index.size(); ++d) offset += index[d] * t.strides()[d];
      return static_cast<const char*>(t.data_ptr()) + offset * static_cast<int64_t>(t.itemsize());
    };
    for (size_t p = 0; p < parts; ++p)
      same =
          same && expr::testing::same_element(at(a) + p * item_size(part), at(b) + p * item_size(part), part);
  });
  return same;
}

constexpr DType kDTypes[] = {DType::Bool,    DType::UInt8,   DType::Int8,     DType::Int16,    DType::Int32,
                             DType::Int64,   DType::Float16, DType::BFloat16, DType::Float32,  DType::Float64,
                             DType::Float16, DType::Float32, DType::Float32,  DType::Complex64};

// Operators over random values of one shape and of shapes that broadcast to it. Each value is there twice:
// for the operators, and for the region.
class Program {
 public:
  Program(uint64_t seed, IntArrayRef sizes) : rng_(seed), geometry_(static_cast<unsigned>(seed)) {
    sizes_ = sizes.to_dims();
    const size_t kinds = 1 + below(3);
    for (size_t i = 0; i < kinds; ++i) dtypes_.push_back(kDTypes[below(std::size(kDTypes))]);
    for (int i = 0; i < 2; ++i) add_input(sizes_, false);
  }

  void grow(const std::vector<const PointwiseInfo*>& entries, int length) {
    for (int made = 0, tried = 0; made < length && tried < 60 * length; ++tried)
      made += step(*entries[below(entries.size())]);
  }

  void expect_equal() {
    // Whatever was written in place, and some of what was made.
    std::vector<expr::ValueName> wanted;
    for (uint32_t v = 0; v < values_.size(); ++v) {
      const Value& value = values_[v];
      if (value.made && !value.overwritten && (value.in_place || below(2) == 0)) wanted.push_back(v);
    }
    if (wanted.empty()) return;
    expr::Joined joined = joiner_.finish(wanted);
    const std::string text = text_ + to_string(*joined.expression);
    std::vector<uint64_t> numbers;
    for (const uint32_t n : joined.numbers) numbers.push_back(numbers_[n]);
    const FusedKernel region(std::move(joined.expression));
    std::vector<Tensor> outputs, inputs;
    for (const uint32_t v : joined.outputs) {
      Value& value = values_[v];
      if (!value.in_place) value.region = random_tensor(value.eager.dtype(), sizes_, false);
      outputs.push_back(value.region);
    }
    for (const uint32_t v : joined.inputs) inputs.push_back(values_[v].region);
    region.run(outputs, inputs, numbers.data());
    for (const uint32_t v : joined.outputs)
      ASSERT_TRUE(same_elements(values_[v].eager, values_[v].region))
          << "value " << v << " of " << name(values_[v].eager.dtype()) << " "
          << to_string(values_[v].eager.sizes()) << " strides " << to_string(values_[v].region.strides())
          << "\n"
          << text;
  }

 private:
  struct Value {
    Tensor eager, region;
    bool writable = false;     // no element is there twice, and all of the shape is
    bool made = false;         // by an operator
    bool in_place = false;     // in the memory of an input
    bool overwritten = false;  // by a later one
  };

  size_t below(size_t n) { return static_cast<size_t>(rng_() % n); }

  Tensor random_tensor(DType dtype, IntArrayRef sizes, bool may_repeat) {
    const Tensor shape = below(3) == 0 ? make_empty(sizes, DType::UInt8)
                                       : testing::random_tensor(geometry_, sizes, DType::UInt8, may_repeat);
    const auto n = static_cast<int64_t>(shape.storage().nbytes());
    Tensor whole = make_empty({n}, dtype);
    const DType part = real_dtype(dtype);
    const auto bytes = expr::testing::random_elements(
        part, static_cast<size_t>(n) * item_size(dtype) / item_size(part), rng_());
    if (n > 0) std::memcpy(whole.data_ptr(), bytes.data(), bytes.size());
    return make_view(whole, shape.sizes(), shape.strides(), shape.storage_offset());
  }

  uint32_t add_input(IntArrayRef sizes, bool may_repeat) {
    Value v;
    v.eager = random_tensor(dtypes_[below(dtypes_.size())], sizes, may_repeat);
    v.region = copied(v.eager);
    v.writable = !may_repeat;
    values_.push_back(v);
    return static_cast<uint32_t>(values_.size() - 1);
  }

  uint32_t operand(bool whole) {
    if (!whole && below(3) == 0) {
      Dims sizes = sizes_;
      if (below(2) == 0) {
        const size_t gone = below(sizes.size() + 1);
        sizes = IntArrayRef(sizes_).subspan(gone).empty()
                    ? Dims{}
                    : Dims(IntArrayRef(sizes_).subspan(gone).data(), sizes_.size() - gone);
      }
      for (int64_t& s : sizes) s = below(3) == 0 ? 1 : s;
      return add_input(sizes, true);
    }
    if (below(5) == 0) return add_input(sizes_, true);
    for (;;) {
      const size_t v = values_.size() - 1 - below(std::min<size_t>(values_.size(), 6));
      const Value& value = values_[v];
      if (!value.overwritten && (!whole || value.eager.sizes() == IntArrayRef(sizes_)))
        return static_cast<uint32_t>(v);
      if (whole) return add_input(sizes_, true);
    }
  }

  Scalar random_number() {
    constexpr double kFloats[] = {0.5, 2, -1, 0, 3.25, 1e-3};
    switch (below(8)) {
      case 0:
        return Scalar(below(2) == 1);
      case 1:
      case 2:
      case 3:
        return Scalar(static_cast<int64_t>(below(7)) - 2);
      case 4:
        return Scalar(std::complex<double>(0.5, -1));
      default:
        return Scalar(kFloats[below(std::size(kFloats))]);
    }
  }

  // One operator. False: it takes none of this, and nothing has happened.
  bool step(const PointwiseInfo& info) {
    const size_t before = values_.size();
    std::vector<uint32_t> operands;
    std::vector<Scalar> scalars;
    std::vector<std::optional<Scalar::Kind>> kinds;
    std::vector<HeaderRef> refs;
    const Tensor undefined;
    for (size_t i = 0; i < info.tensor_names.size(); ++i) {
      const bool absent = ((info.optional_tensors >> i) & 1u) != 0 && below(2) == 0;
      operands.push_back(absent ? ~0u : operand(i == 0));
    }
    std::vector<const Tensor*> tensors;
    for (const uint32_t v : operands) {
      tensors.push_back(v == ~0u ? &undefined : &values_[v].eager);
      refs.emplace_back(v == ~0u ? HeaderRef() : HeaderRef(values_[v].eager));
    }
    for (size_t i = 0; i < info.scalar_names.size(); ++i) scalars.push_back(random_number());
    std::vector<const Scalar*> pointers;
    for (size_t i = 0; i < scalars.size(); ++i) {
      const bool absent = ((info.optional_scalars >> i) & 1u) != 0 && below(2) == 0;
      kinds.push_back(absent ? std::nullopt : std::optional(scalars[i].kind()));
      pointers.push_back(absent ? nullptr : &scalars[i]);
    }

    // Which operand each result is written to; ~0 for a new one.
    std::vector<uint32_t> written(info.num_outputs(), ~0u);
    const bool in_place = info.outputs.empty() && below(4) == 0;
    if (in_place) written[0] = operands[0];
    for (size_t i = 0; i < info.outputs.size(); ++i) {
      if (info.outputs[i].operand < 0) continue;
      written[i] = operands[static_cast<size_t>(info.outputs[i].operand)];
      if (written[i] == ~0u) return false;  // an operand that is absent is not written
    }
    for (size_t i = 0; i < written.size(); ++i) {
      const uint32_t v = written[i];
      if (v == ~0u) continue;
      const bool again = std::count(written.begin(), written.end(), v) > 1;
      const bool whole = values_[v].writable && values_[v].eager.sizes() == IntArrayRef(sizes_);
      if (again || !whole) return false;
    }
    // What is written in place is the very same view wherever it is read.
    std::vector<Tensor> results(info.num_outputs());
    std::vector<std::optional<DType>> outs(info.num_outputs());
    std::optional<Lowered> lowered;
    std::vector<uint64_t> numbers;
    std::string refused;
    try {
      if (in_place) outs[0] = values_[operands[0]].eager.dtype();
      lowered = lower_pointwise(info, refs, kinds, outs, in_place);
      if (!lowered) return false;
      for (const LoweredNumber& n : lowered->numbers)
        put_number(numbers.emplace_back(), n, scalars[n.scalar],
                   in_place ? (std::string(info.name) + "_").c_str() : info.name);
    } catch (const Error& e) {
      refused = e.what();
    }
    try {
      run(info, tensors, pointers, in_place, results);
    } catch (const Error& e) {
      // Of two reasons either may be told.
      EXPECT_NE(refused, "") << e.what();
      return false;
    }
    EXPECT_EQ(refused, "") << info.name;
    if (!refused.empty()) return false;
    add(info, *lowered, operands, written, results, numbers);
    (void)before;
    return true;
  }

  void run(const PointwiseInfo& info, const std::vector<const Tensor*>& tensors,
           const std::vector<const Scalar*>& scalars, bool in_place, std::vector<Tensor>& results) {
    const detail::PresentOperands present(info, tensors, scalars);
    if (in_place) {
      Tensor out = *tensors[0];
      pointwise_out(present.info(), present.tensors(), present.scalars(), out, true);
    } else if (info.outputs.empty()) {
      results[0] = pointwise(present.info(), present.tensors(), present.scalars());
    } else {
      std::vector<Tensor> made(results.size());
      pointwise_outputs(info, tensors, scalars, made);
      size_t next = 0;
      for (size_t i = 0; i < results.size(); ++i) {
        if (info.outputs[i].operand < 0) results[i] = made[next++];
      }
    }
  }

  void add(const PointwiseInfo& info, const Lowered& lowered, const std::vector<uint32_t>& operands,
           const std::vector<uint32_t>& written, const std::vector<Tensor>& results,
           const std::vector<uint64_t>& numbers) {
    const expr::Expression& e = *lowered.expression;
    text_ += std::string(info.name) + ": " + to_string(e) + "\n";
    std::vector<expr::JoinInput> names;
    std::vector<uint32_t> region_numbers;
    std::vector<expr::ValueName> stored, of_result;
    for (const expr::Slot& s : e.inputs()) names.push_back({operands[s.operand]});
    for (const uint64_t bits : numbers) {
      region_numbers.push_back(static_cast<uint32_t>(numbers_.size()));
      numbers_.push_back(bits);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      Value v;
      v.made = v.writable = true;
      if (written[i] != ~0u) {
        Value& old = values_[written[i]];
        v.eager = old.eager;
        v.region = old.region;
        // What an operator made is in the region's memory only where the region stores it.
        v.in_place = !old.made || old.in_place;
        old.overwritten = true;
      } else {
        v.eager = results[i];
        EXPECT_EQ(v.eager.dtype(), lowered.results[i]);
      }
      of_result.push_back(static_cast<uint32_t>(values_.size()));
      values_.push_back(v);
    }
    for (const expr::Slot& s : e.outputs()) stored.push_back(of_result[s.operand]);
    joiner_.add(e, names, region_numbers, stored);
  }

  std::mt19937_64 rng_;
  std::mt19937 geometry_;
  Dims sizes_;
  std::vector<DType> dtypes_;
  std::vector<Value> values_;
  std::vector<uint64_t> numbers_;
  expr::Joiner joiner_;
  std::string text_;
};

class Threads {
 public:
  explicit Threads(int n) : before_(num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before_); }

 private:
  int before_;
};

TEST(FusedKernel, GivesTheBitsOfItsOperators) {
  const auto entries = builtin_entries();
  ASSERT_GT(entries.size(), 100u);
  std::mt19937_64 rng(1);
  for (uint64_t seed = 1; seed <= 800; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Dims sizes;
    const size_t ndim = rng() % 5;
    for (size_t d = 0; d < ndim; ++d) sizes.push_back(1 + static_cast<int64_t>(rng() % 7));
    if (ndim > 0 && rng() % 4 == 0) sizes[rng() % ndim] = 300;
    if (ndim > 0 && rng() % 16 == 0) sizes[rng() % ndim] = 0;
    Program program(seed, sizes);
    program.grow(entries, 1 + static_cast<int>(seed % 7));
    ASSERT_NO_FATAL_FAILURE(program.expect_equal());
  }
}

TEST(FusedKernel, LargeOnesRunOnTwoThreads) {
  const auto entries = builtin_entries();
  for (const int threads : {1, 2}) {
    const Threads use(threads);
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << ", " << threads << " threads");
      Program program(seed, seed % 2 != 0 ? Dims{70, 3, 401} : Dims{41000, 3});
      program.grow(entries, 4);
      ASSERT_NO_FATAL_FAILURE(program.expect_equal());
    }
  }
}

// So large that its result goes past the caches, where a single one may.
TEST(FusedKernel, ResultsThatDoNotFitTheCaches) {
  const Threads use(2);
  const auto n = static_cast<int64_t>(kHost.streams_from() / 8 + 12345);
  const Tensor a = make_empty({n}, DType::Float32), b = make_empty({n}, DType::Float32),
               out = make_empty({n}, DType::Float32);
  for (int64_t i = 0; i < n; ++i) {
    a.data_ptr<float>()[i] = static_cast<float>(i % 1000);
    b.data_ptr<float>()[i] = static_cast<float>(i % 77);
  }
  const FusedKernel region(expr::parse_typed("in x: float32, y: float32; out float32: sub(mul(x, y), x);"));
  const Tensor inputs[] = {a, b}, outputs[] = {out};
  region.run(outputs, inputs, nullptr);
  const auto wrong = [&](const Tensor& t) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
      const auto x = static_cast<float>(i % 1000), y = static_cast<float>(i % 77);
      count += t.data_ptr<float>()[i] != x * y - x;
    }
    return count;
  };
  EXPECT_EQ(wrong(out), 0);
  const Tensor in_place[] = {a};
  region.run(in_place, inputs, nullptr);
  EXPECT_EQ(wrong(a), 0);
}

TEST(FusedKernel, UpToSixtyFourSlots) {
  std::string text = "in ", sum;
  for (int i = 0; i < 40; ++i) text += "x" + std::to_string(i) + (i < 39 ? ": float32, " : ": float32; ");
  for (int i = 0; i < 20; ++i)
    text += "out float32: sub(x" + std::to_string(i) + ", x" + std::to_string(39 - i) + "); ";
  const FusedKernel region(expr::parse_typed(text));
  std::mt19937 rng(3);
  std::vector<Tensor> inputs, outputs;
  for (int i = 0; i < 40; ++i) inputs.push_back(random_tensor(rng, {5, 70}, DType::Float32));
  for (int i = 0; i < 20; ++i) outputs.push_back(random_tensor(rng, {5, 70}, DType::Float32, false));
  region.run(outputs, inputs, nullptr);
  for (size_t i = 0; i < 20; ++i) {
    const auto a = values(inputs[i]), b = values(inputs[39 - i]), got = values(outputs[i]);
    for (size_t k = 0; k < got.size(); ++k) ASSERT_EQ(got[k], a[k] - b[k]) << i;
  }
}

TEST(FusedKernel, RefusesWhatDoesNotFit) {
  const FusedKernel region(expr::parse_typed("in x: float32, y: float32; out float32: sub(x, y);"));
  const Tensor a = make_empty({2, 3}, DType::Float32), b = make_empty({2}, DType::Float32),
               c = make_empty({2, 3}, DType::Float64);
  const auto run = [&](const Tensor& out, const Tensor& x, const Tensor& y) {
    const Tensor inputs[] = {x, y}, outputs[] = {out};
    region.run(outputs, inputs, nullptr);
  };
  EXPECT_NE(error_of(ErrorKind::Shape, [&] { run(a, a, b); }).find("operand 2 of shape [2]"),
            std::string::npos);
  EXPECT_NE(error_of(ErrorKind::Type, [&] { run(a, c, a); }).find("is float64, expected float32"),
            std::string::npos);
}

// Copies and fills as expressions, beside what copies and fills are (convert.h, Scalar).
TEST(FusedKernel, CopiesConvertAsCopiesDo) {
  std::mt19937 rng(5);
  for (const DType from : kDTypes) {
    for (const DType to : kDTypes) {
      const std::optional<Lowered> lowered = lower_copy(from, to);
      ASSERT_TRUE(lowered);
      const size_t n = 100;
      const Tensor src = make_empty({static_cast<int64_t>(n)}, from),
                   out = make_empty({static_cast<int64_t>(n)}, to),
                   want = make_empty({static_cast<int64_t>(n)}, to);
      const auto bytes =
          expr::testing::random_elements(real_dtype(from), n * (is_complex(from) ? 2 : 1), rng());
      std::memcpy(src.data_ptr(), bytes.data(), bytes.size());
      kHost.convert(from, to)(want.data_ptr(), {static_cast<int64_t>(item_size(to)), 0}, src.data_ptr(),
                              {static_cast<int64_t>(item_size(from)), 0}, n, 1);
      const FusedKernel region(expr::make_expression(expr::parts_of(*lowered->expression)));
      region.run({&out, 1}, {&src, 1}, nullptr);
      // A copy of bools keeps bytes other than 1; they mean the same.
      if (from == DType::Bool && to == DType::Bool) continue;
      EXPECT_TRUE(same_elements(out, want)) << name(from) << " to " << name(to);
    }
  }
}

TEST(FusedKernel, FillsStoreWhatFillStores) {
  const Scalar values[] = {
      true, 0, 3, -1, 200, (int64_t{1} << 53) + 1, 0.1, 2.9, -2.9, std::complex<double>(1.5, -2)};
  for (const DType d : kDTypes) {
    const std::optional<Lowered> lowered = lower_fill(d);
    ASSERT_TRUE(lowered);
    const FusedKernel region(expr::make_expression(expr::parts_of(*lowered->expression)));
    for (const Scalar& value : values) {
      Tensor want = make_empty({3, 5}, d);
      const Tensor out = make_empty({3, 5}, d);
      std::string refused;
      try {
        want.fill_(value);
      } catch (const Error& e) {
        refused = e.what();
      }
      std::vector<uint64_t> numbers(lowered->numbers.size());
      const auto put = [&] {
        for (size_t i = 0; i < numbers.size(); ++i)
          put_number(numbers[i], lowered->numbers[i], value, "fill_");
      };
      if (!refused.empty()) {
        EXPECT_THROW(put(), Error) << refused;
        continue;
      }
      put();
      region.run({&out, 1}, {}, numbers.data());
      EXPECT_TRUE(same_elements(out, want)) << name(d) << " of " << value.to_double();
    }
  }
}

}  // namespace
}  // namespace tenon::testing
