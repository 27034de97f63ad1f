#include "backends/cpu/copy/copy.h"

#include <cmath>
#include <limits>

#include "backends/cpu/copy/convert.h"
#include "tenon/core/copy_report.h"
#include "tests/iter/iter_testing.h"

namespace tenon::testing {
namespace {

using cpu::copy_strided;

// Conversion as docs/differences.md defines it, through long double.
double converted(double v, DType to) {
  if (to == DType::Bool) return v != 0;
  if (is_integral(to, false)) {
    const bool fits = v >= -0x1p63 && v < 0x1p63;
    const int64_t whole = fits ? static_cast<int64_t>(v) : std::numeric_limits<int64_t>::min();
    switch (to) {
      case DType::UInt8:
        return static_cast<uint8_t>(whole);
      case DType::Int8:
        return static_cast<int8_t>(whole);
      case DType::Int16:
        return static_cast<int16_t>(whole);
      case DType::Int32:
        return static_cast<int32_t>(whole);
      default:
        return static_cast<double>(whole);
    }
  }
  switch (to) {
    case DType::Float16:
      return Half(static_cast<float>(v));
    case DType::BFloat16:
      return BFloat16(static_cast<float>(v));
    case DType::Float32:
      return static_cast<float>(v);
    default:
      return v;
  }
}

constexpr DType kReal[] = {DType::Bool,  DType::UInt8,   DType::Int8,     DType::Int16,   DType::Int32,
                           DType::Int64, DType::Float16, DType::BFloat16, DType::Float32, DType::Float64};

TEST(Copy, ConvertsEveryPairOfDtypes) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> interesting = {0,     -0.0, 1,    -1,  0.5,  -0.5, 1.5,   2.5,   -2.5,
                                           127,   128,  255,  256, 300,  -129, 32768, 65504, 65519,
                                           65520, 1e5,  -1e5, 3e9, -3e9, 1e19, -1e19, 1e-8,  6e-8,
                                           3e-8,  2e-5, 1e39, inf, -inf, nan,  3.14,  1e300};
  for (const DType from : kReal) {
    // Only values that the source can hold, so that the reference starts from the same number.
    std::vector<double> held;
    for (const double v : interesting) {
      if (is_floating_point(from))
        held.push_back(converted(v, from));
      else
        held.push_back(std::isfinite(v) && std::abs(v) < 9e18 ? converted(v, from) : 0);
    }
    const Tensor src = vector_of(held, from);
    for (const DType to : kReal) {
      Tensor dst = make_empty(src.sizes(), to);
      copy_strided(dst, src);
      for (int64_t i = 0; i < src.numel(); ++i) {
        const double want = converted(held[static_cast<size_t>(i)], to), got = get(dst, {i});
        if (std::isnan(want))
          EXPECT_TRUE(std::isnan(got));
        else
          EXPECT_EQ(got, want) << name(from) << " to " << name(to) << ' ' << held[static_cast<size_t>(i)];
        EXPECT_EQ(std::signbit(got) && got == 0, std::signbit(want) && want == 0 && is_floating_point(from));
      }
    }
  }
}

TEST(Copy, HalfBlocksMatchSingleConversions) {
  Tensor all = make_empty({65536}, DType::Float16), wide = make_empty({65536}, DType::Float32),
         back = make_empty({65536}, DType::Float16);
  auto* bits = static_cast<uint16_t*>(all.data_ptr());
  for (int i = 0; i < 65536; ++i) bits[i] = static_cast<uint16_t>(i);
  copy_strided(wide, all);
  copy_strided(back, wide);
  const auto* floats = static_cast<const float*>(wide.data_ptr());
  const auto* again = static_cast<const uint16_t*>(back.data_ptr());
  for (int i = 0; i < 65536; ++i) {
    const auto h = static_cast<uint16_t>(i);
    const float one = detail::half_to_float(h);
    if (std::isnan(one)) {
      ASSERT_TRUE(std::isnan(floats[i]));
      continue;
    }
    ASSERT_EQ(std::bit_cast<uint32_t>(floats[i]), std::bit_cast<uint32_t>(one));
    ASSERT_EQ(again[i], h);
  }
  // Between halves: ties and neighbours of ties.
  for (uint32_t start = 0x33000000; start < 0x47900000; start += 0x1FFD) {
    Tensor f = make_empty({16}, DType::Float32), h = make_empty({16}, DType::Float16);
    for (uint32_t k = 0; k < 16; ++k) static_cast<uint32_t*>(f.data_ptr())[k] = start + k * 0x800;
    copy_strided(h, f);
    for (int k = 0; k < 16; ++k) {
      ASSERT_EQ(static_cast<uint16_t*>(h.data_ptr())[k],
                detail::float_to_half(static_cast<float*>(f.data_ptr())[k]));
    }
  }
}

TEST(Copy, AnyStridesToAnyStrides) {
  std::mt19937 rng(3);
  const auto pick = [&](int n) { return static_cast<int64_t>(rng() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 200; ++round) {
    Dims shape(static_cast<size_t>(pick(5)));
    for (int64_t& s : shape) s = pick(15) == 0 ? 0 : 1 + pick(round % 8 == 0 ? 70 : 6);
    if (shape.size() == 4) shape[0] = std::min<int64_t>(shape[0], 3);
    const DType from = kReal[pick(10)], to = pick(2) ? from : kReal[pick(10)];
    const Tensor src = random_tensor(rng, shape, from), dst = random_tensor(rng, shape, to, false);
    copy_strided(dst, src);
    for_each_index(shape, [&](const std::vector<int64_t>& index) {
      ASSERT_EQ(get(dst, index), converted(get(src, index), to));
    });
  }
}

TEST(Copy, ContiguousOfATranspose) {
  std::mt19937 rng(4);
  const Tensor x = random_tensor(rng, {100, 130}, DType::Float32, false);
  const Tensor y = transposed(x), copy = make_empty(y.sizes(), DType::Float32);
  copy_strided(copy, y);
  EXPECT_NE(copy.data_ptr(), y.data_ptr());
  EXPECT_EQ(copy.strides(), IntArrayRef({100, 1}));
  EXPECT_EQ(values(copy), values(y));
}

TEST(Copy, BroadcastsTheSourceOnly) {
  const Tensor dst = tensor_of(std::vector<double>(6, 0), {2, 3});
  copy_strided(dst, vector_of({1, 2, 3}));
  EXPECT_EQ(values(dst), (std::vector<double>{1, 2, 3, 1, 2, 3}));
  EXPECT_THROW(copy_strided(vector_of({0, 0, 0}), dst), Error);
}

TEST(Copy, RefusesOverlap) {
  const Tensor base = vector_of({1, 2, 3, 4});
  const std::string text = error_of(
      ErrorKind::Runtime, [&] { copy_strided(make_view(base, {3}, {1}, 1), make_view(base, {3}, {1}, 0)); });
  EXPECT_EQ(
      text,
      "copy_: `self` and `src` overlap in memory, but not element for element; clone() one of them first");
  EXPECT_EQ(values(base), (std::vector<double>{1, 2, 3, 4}));
}

TEST(Copy, ComplexCopiesBitsAndRefusesReal) {
  const Tensor z = make_empty({2}, DType::Complex128), w = make_empty({2}, DType::Complex128);
  auto* p = static_cast<double*>(z.data_ptr());
  for (int i = 0; i < 4; ++i) p[i] = i + 0.5;
  copy_strided(flipped(w, 0), z);
  const auto* q = static_cast<const double*>(w.data_ptr());
  EXPECT_EQ(q[0], 2.5);
  EXPECT_EQ(q[3], 1.5);
  const Tensor real = vector_of({1, 2});
  copy_strided(real, z);
  EXPECT_EQ(values(real), (std::vector<double>{0.5, 2.5}));
  copy_strided(w, real);
  EXPECT_EQ(q[0], 0.5);
  EXPECT_EQ(q[1], 0);
  EXPECT_EQ(error_of(ErrorKind::NotImplemented, [&] { copy_strided(real, make_empty({2}, DType::QInt8)); }),
            "copy_: no conversion from qint8 to float32");
}

TEST(HiddenCopies, AreCountedAndShownOnDemand) {
  static std::string shown;
  const int64_t before = hidden_copies();
  set_copy_sink([](const CopyReport& c) { shown = std::string(c.op) + " " + c.argument + ": " + c.reason; });
  report_copy("mm", "self", "quiet", 8);
  EXPECT_EQ(shown, "");
  set_show_copies(true);
  report_copy("mm", "self", "its last dimension has stride 3", 8);
  set_show_copies(false);
  set_copy_sink(nullptr);
  EXPECT_EQ(shown, "mm self: its last dimension has stride 3");
  EXPECT_EQ(hidden_copies(), before + 2);
}

}  // namespace
}  // namespace tenon::testing
