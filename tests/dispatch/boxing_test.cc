#include <cstring>

#include "tests/dispatch/testing.h"

namespace tenon {
namespace {

template <class Sig>
struct RoundTrip;

/// Calls `kernel` once as it is and once through a boxed kernel that calls it boxed: four ways through the
/// boxes.
template <class R, class... A>
struct RoundTrip<R(A...)> {
  static inline const char* inner = nullptr;

  static void forward(const OperatorHandle&, DispatchKeySet, Stack& stack) {
    Dispatcher::singleton().find_schema_or_throw_full(inner).call_boxed(stack);
  }
};

/// "typed call -> boxed kernel -> boxed call -> typed kernel" must give what a plain call gives.
template <class Sig, class Check, class... Args>
void round_trip(const std::string& schema, CppFunction kernel, const Check& check, Args&&... args) {
  static int serial = 0;
  const std::string ns = "boxing" + std::to_string(serial++) + std::string(std::to_string(sizeof...(Args)));
  Library def(Library::Kind::Fragment, ns, "", SourceLocation::here());
  def.def("plain" + schema, kernel);
  def.def("boxed" + schema);
  Library impl(Library::Kind::Impl, ns, "", SourceLocation::here());
  impl.impl("boxed", CppFunction::from_boxed(&RoundTrip<Sig>::forward));
  const std::string inner = ns + "::plain";
  RoundTrip<Sig>::inner = inner.c_str();
  Dispatcher& d = Dispatcher::singleton();
  SCOPED_TRACE(schema);
  for (const char* name : {"::plain", "::boxed"}) {
    check(d.find_schema_or_throw(ns + name).template typed<Sig>(), std::forward<Args>(args)...);
  }
}

template <class T, class Given>
void echo(const char* type, T (*kernel)(const Tensor&, Given), Given value, const T& expected) {
  round_trip<T(const Tensor&, Given)>(
      std::string("(Tensor t, ") + type + " v) -> " + schema::to_string([] {
        schema::Return r;
        std::vector<detail::SignatureTypes::Value> types;
        detail::ReturnTypes<T>::add(types);
        r.type = types[0].type;
        return r;
      }()),
      kernel, [&](const auto& op, const auto& v) { EXPECT_EQ(op.call(one(), v), expected); }, value);
}

TEST(Boxing, PlainValuesComeThrough) {
  echo<int64_t, int64_t>(
      "int", +[](const Tensor&, int64_t v) { return v + 1; }, -5, -4);
  echo<double, double>(
      "float", +[](const Tensor&, double v) { return v * 2; }, 1.25, 2.5);
  echo<bool, bool>(
      "bool", +[](const Tensor&, bool v) { return !v; }, true, false);
  echo<DType, DType>(
      "ScalarType", +[](const Tensor&, DType v) { return v; }, kFloat64, kFloat64);
  echo<Device, Device>(
      "Device", +[](const Tensor&, Device v) { return v; }, Device(kCpuBackend, 3), Device(kCpuBackend, 3));
  echo<int64_t, Layout>(
      "Layout", +[](const Tensor&, Layout v) { return static_cast<int64_t>(v); }, Layout::SparseCsr, 2);
  echo<int64_t, MemoryFormat>(
      "MemoryFormat", +[](const Tensor&, MemoryFormat v) { return static_cast<int64_t>(v); },
      MemoryFormat::ChannelsLast, 2);
  echo<int64_t, std::string_view>(
      "str", +[](const Tensor&, std::string_view v) { return static_cast<int64_t>(v.size()); },
      "a text longer than what fits in place", 37);
}

TEST(Boxing, OptionalsComeThroughEmptyAndFull) {
  const auto kernel = +[](const Tensor&, std::optional<int64_t> v) { return v ? *v : -1; };
  echo<int64_t, std::optional<int64_t>>("int?", kernel, 7, 7);
  echo<int64_t, std::optional<int64_t>>("int?", kernel, std::nullopt, -1);
  const auto real = +[](const Tensor&, std::optional<double> v) { return v ? *v : -1.0; };
  echo<double, std::optional<double>>("float?", real, 0.5, 0.5);
  const auto scalar = +[](const Tensor&, std::optional<Scalar> v) { return v ? v->to_double() : -1.0; };
  echo<double, std::optional<Scalar>>("Scalar?", scalar, Scalar(2.5), 2.5);
  echo<double, std::optional<Scalar>>("Scalar?", scalar, std::nullopt, -1.0);
  const auto type = +[](const Tensor&, std::optional<DType> v) { return v.value_or(kInt8); };
  echo<DType, std::optional<DType>>("ScalarType?", type, std::nullopt, kInt8);
  const auto text = +[](const Tensor&, std::optional<std::string_view> v) {
    return static_cast<int64_t>(v ? v->size() : 9);
  };
  echo<int64_t, std::optional<std::string_view>>("str?", text, std::nullopt, 9);
  echo<int64_t, std::optional<std::string_view>>("str?", text, "ab", 2);
  const auto dims = +[](const Tensor&, std::optional<IntArrayRef> v) { return v ? (*v)[1] : -1; };
  const std::vector<int64_t> values{4, 5};
  echo<int64_t, std::optional<IntArrayRef>>("int[]?", dims, IntArrayRef(values), 5);
  echo<int64_t, std::optional<IntArrayRef>>("int[]?", dims, std::nullopt, -1);
}

TEST(Boxing, ListsComeThrough) {
  const std::vector<int64_t> ints{1, 2, 3};
  echo<int64_t, IntArrayRef>(
      "int[]", +[](const Tensor&, IntArrayRef v) { return v[0] * 100 + v[1] * 10 + v[2]; }, IntArrayRef(ints),
      123);
  const std::vector<double> reals{0.5, 0.25};
  echo<double, std::span<const double>>(
      "float[]", +[](const Tensor&, std::span<const double> v) { return v[0] + v[1]; },
      std::span<const double>(reals), 0.75);
  const bool flags[] = {true, false, true};
  echo<int64_t, std::span<const bool>>(
      "bool[]", +[](const Tensor&, std::span<const bool> v) { return int64_t{v[0]} * 4 + v[1] * 2 + v[2]; },
      std::span<const bool>(flags), 5);
  const std::vector<Scalar> scalars{Scalar(1), Scalar(2.5)};
  echo<double, std::span<const Scalar>>(
      "Scalar[]",
      +[](const Tensor&, std::span<const Scalar> v) { return v[0].to_double() + v[1].to_double(); },
      std::span<const Scalar>(scalars), 3.5);
}

TEST(Boxing, ScalarsKeepTheirKind) {
  using Sig = Scalar(const Tensor&, const Scalar&);
  round_trip<Sig>(
      "(Tensor t, Scalar v) -> Scalar", +[](const Tensor&, const Scalar& v) { return v; },
      [](const auto& op) {
        EXPECT_TRUE(op.call(one(), Scalar(true)).is_bool());
        EXPECT_EQ(op.call(one(), Scalar(int64_t{1} << 62)).to_int(), int64_t{1} << 62);
        EXPECT_EQ(op.call(one(), Scalar(std::complex<double>(1, 2))).to_complex(),
                  std::complex<double>(1, 2));
      });
}

TEST(Boxing, TensorsComeThroughByIdentity) {
  round_trip<Tensor(const Tensor&, const Tensor&)>(
      "(Tensor a, Tensor? b) -> Tensor",
      +[](const Tensor& a, const Tensor& b) { return b.defined() ? b : a; },
      [](const auto& op) {
        const Tensor a = one(), b = one();
        EXPECT_TRUE(op.call(a, b).is_same(b));
        EXPECT_TRUE(op.call(a, Tensor()).is_same(a));
        EXPECT_EQ(a.use_count(), 1u) << "no reference is left in a stack";
      });
}

TEST(Boxing, TensorListsComeThroughBothWays) {
  using Sig = std::vector<Tensor>(TensorList);
  round_trip<Sig>(
      "(Tensor[] list) -> Tensor[]",
      +[](TensorList list) { return std::vector<Tensor>(list.rbegin(), list.rend()); },
      [](const auto& op) {
        const std::vector<Tensor> list{one(1), one(2)};
        const auto out = op.call(list);
        ASSERT_EQ(out.size(), 2u);
        EXPECT_TRUE(out[0].is_same(list[1]));
        EXPECT_EQ(list[0].use_count(), 2u);
      });
}

TEST(Boxing, WrittenArgumentsComeBackAsThemselves) {
  round_trip<Tensor&(Tensor&)>(
      "(Tensor(a!) self) -> Tensor(a!)", +[](Tensor& self) -> Tensor& { return self; },
      [](const auto& op) {
        Tensor t = one();
        EXPECT_EQ(&op.call(t), &t);
        EXPECT_EQ(t._version(), 1u);
        EXPECT_EQ(t.use_count(), 1u);
      });
  using Two = std::tuple<Tensor&, Tensor&>(const Tensor&, Tensor&, Tensor&);
  round_trip<Two>(
      "(Tensor a, *, Tensor(a!) x, Tensor(b!) y) -> (Tensor(a!), Tensor(b!))",
      +[](const Tensor&, Tensor& x, Tensor& y) { return std::tuple<Tensor&, Tensor&>(x, y); },
      [](const auto& op) {
        Tensor x = one(1), y = one(2);
        const auto [rx, ry] = op.call(one(), x, y);
        EXPECT_EQ(&rx, &x);
        EXPECT_EQ(&ry, &y);
        EXPECT_TRUE(x.defined() && y.defined());
      });
}

TEST(Boxing, SeveralAndNoResults) {
  using Sig = std::tuple<Tensor, int64_t, Tensor>(const Tensor&, int64_t);
  round_trip<Sig>(
      "(Tensor a, int n) -> (Tensor, int, Tensor)",
      +[](const Tensor& a, int64_t n) { return std::tuple<Tensor, int64_t, Tensor>(a, n + 1, one(9)); },
      [](const auto& op) {
        const Tensor a = one();
        const auto [first, n, last] = op.call(a, 4);
        EXPECT_TRUE(first.is_same(a));
        EXPECT_EQ(n, 5);
        EXPECT_EQ(value_of(last), 9);
      });
  round_trip<void(const Tensor&)>(
      "(Tensor a) -> ()", +[](const Tensor&) {}, [](const auto& op) { op.call(one()); });
}

TEST(Boxing, GeneratorsComeThrough) {
  round_trip<int64_t(const Tensor&, const Generator&)>(
      "(Tensor a, Generator? g) -> int",
      +[](const Tensor&, const Generator& g) {
        return g.defined() ? static_cast<int64_t>(g.initial_seed()) : -1;
      },
      [](const auto& op) {
        EXPECT_EQ(op.call(one(), Generator(42)), 42);
        EXPECT_EQ(op.call(one(), Generator()), -1);
      });
}

TEST(Boxing, KernelsMayTakeStandardTypes) {
  Library def = declare("boxingstd");
  def.def(
      "op(Tensor? t, int[] sizes, str text, Tensor[] list) -> int",
      +[](const std::optional<Tensor>& t, std::vector<int64_t> sizes, const std::string& text,
          const std::vector<Tensor>& list) {
        return static_cast<int64_t>(t.has_value()) + sizes[0] +
               static_cast<int64_t>(text.size() + list.size());
      });
  const auto op =
      find("boxingstd::op").typed<int64_t(const Tensor&, IntArrayRef, std::string_view, TensorList)>();
  EXPECT_EQ(op.call(Tensor(), {10}, "abc", {}), 13);
  const std::vector<Tensor> list{one()};
  EXPECT_EQ(op.call(one(), {10}, "abc", list), 15);
}

TEST(Boxing, WrongResultsAndArgumentsAreErrors) {
  Library def = declare("boxingbad");
  def.def("op(Tensor a) -> Tensor");
  Library impl = implement("boxingbad", "");
  impl.impl("op",
            CppFunction::from_boxed(+[](const OperatorHandle&, DispatchKeySet, Stack& s) { s.clear(); }));
  EXPECT_EQ(thrown_by([] { find("boxingbad::op").typed<Tensor(const Tensor&)>().call(one()); }).kind,
            ErrorKind::Type);
  Stack none;
  EXPECT_CONTAINS(thrown_by([&] { find("boxingbad::op").call_boxed(none); }).text, "takes 1 arguments");
  Library typed = implement("boxingbad", "");
  typed.impl(
      "op", +[](const Tensor& a) { return a; });
  Stack wrong;
  wrong.push<int64_t>(3);
  const Thrown t = thrown_by([&] { find("boxingbad::op").call_boxed(wrong); });
  EXPECT_EQ(t.kind, ErrorKind::Type);
  EXPECT_CONTAINS(t.text, "is int, expected Tensor");
}

TEST(Stack, WhatACellHoldsIsLaidOutAsTheAbiSays) {
  struct List {
    void* data;
    uint64_t size;
  };
  struct Number {
    uint8_t kind;
    union {
      int64_t i;
      double d;
    };
    double imaginary;
  };
  const Tensor t = one();
  Stack stack;
  stack.push(std::string("text"));
  stack.push(Dims{3, -4});
  stack.push(std::vector<Tensor>{t});
  const bool flags[] = {true, false};
  stack.push(std::span<const bool>(flags));
  stack.push(Scalar(std::complex<double>(1.5, -2)));
  stack.push(true);
  stack.push(Device(kCpuBackend, -1));
  const auto pointer = [&](size_t i) {
    void* p = nullptr;
    std::memcpy(&p, &stack.cells()[i], sizeof p);
    return p;
  };
  const auto list = [&](size_t i) { return *static_cast<List*>(pointer(i)); };
  const auto word = [&](size_t i) {
    uint64_t bits = 0;
    std::memcpy(&bits, &stack.cells()[i], sizeof bits);
    return bits;
  };
  EXPECT_EQ(std::string_view(static_cast<char*>(list(0).data), list(0).size), "text");
  EXPECT_EQ(static_cast<int64_t*>(list(1).data)[1], -4);
  EXPECT_EQ(*static_cast<TensorImpl**>(list(2).data), t.impl());
  EXPECT_EQ(static_cast<uint8_t*>(list(3).data)[0], 1);
  EXPECT_EQ(list(3).size, 2u);
  const auto* number = static_cast<Number*>(pointer(4));
  EXPECT_EQ(number->kind, static_cast<uint8_t>(Scalar::Kind::Complex));
  EXPECT_EQ(number->d, 1.5);
  EXPECT_EQ(number->imaginary, -2);
  EXPECT_EQ(word(5), 1u) << "small values have zeros above";
  EXPECT_EQ(word(6), 0xFF00u);
}

Tensor keep_storage(const Storage& s, std::span<const bool> flags, std::span<const double> d) {
  return Tensor(TensorImpl::make(s, kFloat32, {static_cast<int64_t>(flags.size() + d.size())}));
}

TEST(Boxing, StoragesAndListsOfEveryTypeGoThrough) {
  Library def = declare("boxingmore");
  def.def("keep(Storage s, bool[] flags, float[] d) -> Tensor", &keep_storage);
  const Tensor t = make_empty({4}, kFloat32);
  Stack stack;
  const bool flags[] = {true};
  stack.push(t.storage());
  stack.push(std::span<const bool>(flags));
  stack.push(std::vector<double>{1, 2});
  find("boxingmore::keep").call_boxed(stack);
  const Tensor kept = stack.pop<Tensor>();
  EXPECT_EQ(kept.storage(), t.storage());
  EXPECT_EQ(kept.numel(), 3);
}

Tensor& write_maybe(const Tensor& x, Tensor& running, Tensor& out) {
  if (running.defined()) *running.data_ptr<float>() = value_of(x);
  return out;
}

TEST(Boxing, AWrittenOptionalTensorMayBeNone) {
  Library def = declare("boxingnone");
  def.def("f(Tensor x, Tensor(a!)? running, *, Tensor(b!) out) -> Tensor(b!)");
  Library impl = implement("boxingnone", "CPU");
  impl.impl("f", &write_maybe);
  Tensor out = one(), running = one(1), none;
  const auto f = find("boxingnone::f").typed<Tensor&(const Tensor&, Tensor&, Tensor&)>();
  f.call(one(5), none, out);
  f.call(one(5), running, out);
  EXPECT_EQ(value_of(running), 5);
  EXPECT_EQ(running._version(), 1u);
  EXPECT_EQ(out._version(), 2u);
  Stack stack;
  stack.push(one(6));
  stack.push_none();
  stack.push(out);
  find("boxingnone::f").call_boxed(stack);
  EXPECT_EQ(out._version(), 3u);
}

TEST(Stack, LendsValuesThatItsOwnerKeeps) {
  const Tensor t = one();
  Stack owner;
  owner.push(t);
  owner.push(Scalar(0.5));
  owner.push(std::vector<Tensor>{t, t});
  for (int run = 0; run < 3; ++run) {
    Stack stack;
    stack.lend(owner);
    EXPECT_TRUE(stack.at<Tensor>(0).is_same(t));
    stack.push(t);
    EXPECT_EQ(t.use_count(), 5u);
    stack.erase(0, 3);  // as a kernel does, once its results are above its arguments
    EXPECT_EQ(t.use_count(), 5u);
    EXPECT_TRUE(stack.pop<Tensor>().is_same(t));
    stack.push(t);
    stack.drop(1);
    EXPECT_EQ(t.use_count(), 4u);
  }
  Stack dropped;
  dropped.lend(owner);
  const Stack moved = std::move(dropped);
  EXPECT_EQ(moved.size(), 3u);
  EXPECT_EQ(owner.at<Scalar>(1).to_double(), 0.5);
}

TEST(Stack, OwnsItsValues) {
  const Tensor t = one();
  {
    Stack stack;
    stack.push(t);
    stack.push(std::string("text"));
    stack.push(std::vector<Tensor>{t, t});
    stack.push_copy(stack, 2);
    EXPECT_EQ(t.use_count(), 6u);
    stack.erase(0, 2);
    EXPECT_EQ(t.use_count(), 5u);
    Stack moved(std::move(stack));
    EXPECT_EQ(moved.size(), 2u);
    EXPECT_EQ(moved.pop<std::vector<Tensor>>().size(), 2u);
    EXPECT_EQ(t.use_count(), 3u);
  }
  EXPECT_EQ(t.use_count(), 1u);
}

}  // namespace
}  // namespace tenon
