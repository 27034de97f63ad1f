#include "tenon/core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tenon/core/error.h"
#include "tenon/core/half.h"
#include "tenon/core/scalar.h"

namespace tenon {
namespace {

// torch.promote_types, as PyTorch 2.15 prints it for the first twelve dtypes: one letter each, in DType's
// order. b bool, u uint8, c int8, s int16, i int32, l int64, h float16, g bfloat16, f float32, d float64, F,
// D complex.
constexpr const char* kLetters = "bucsilhgfdFD";
constexpr const char* kPromoted[] = {
    "bucsilhgfdFD", "uussilhgfdFD", "cscsilhgfdFD", "ssssilhgfdFD", "iiiiilhgfdFD",
    "llllllhgfdFD", "hhhhhhhffdFD", "ggggggfgfdFD", "fffffffffdFD",
};

TEST(DType, PromotesAsTheTableOfPyTorch) {
  const std::string letters = kLetters;
  for (int a = 0; a < 9; ++a) {
    for (int b = 0; b < 12; ++b) {
      const DType got = promote_types(static_cast<DType>(a), static_cast<DType>(b));
      EXPECT_EQ(letters[static_cast<int>(got)], kPromoted[a][b])
          << name(static_cast<DType>(a)) << " + " << name(static_cast<DType>(b));
      EXPECT_EQ(got, promote_types(static_cast<DType>(b), static_cast<DType>(a)));
    }
  }
  EXPECT_EQ(promote_types(kFloat64, kComplex64), kComplex128);
}

TEST(DType, QuantizedAndEightBitFloatsDoNotPromote) {
  EXPECT_THROW(promote_types(DType::QInt8, kFloat32), Error);
  EXPECT_THROW(promote_types(DType::Float8E5M2, kFloat32), Error);
  EXPECT_EQ(promote_types(DType::QInt8, DType::QInt8), DType::QInt8);
}

TEST(DType, CanCastKeepsTheCategory) {
  EXPECT_TRUE(can_cast(kInt64, kFloat16));
  EXPECT_TRUE(can_cast(kFloat64, kFloat32));
  EXPECT_FALSE(can_cast(kFloat32, kInt64));
  EXPECT_FALSE(can_cast(kInt8, kBool));
  EXPECT_FALSE(can_cast(kComplex64, kFloat64));
}

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto t = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(name(t)), t);
  }
  EXPECT_EQ(parse_dtype("long"), kInt64);
  EXPECT_FALSE(parse_dtype("float12"));
}

// IEEE 754 by definition: the value of the bits, computed in double.
double half_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 31) {
    magnitude = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(Half, EveryBitPatternHasItsValueAndRoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    Half h;
    h.bits = static_cast<uint16_t>(bits);
    const double want = half_value(h.bits);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(h)));
      EXPECT_TRUE(std::isnan(static_cast<float>(Half(static_cast<float>(h)))));
    } else {
      ASSERT_EQ(static_cast<float>(h), want) << bits;
      ASSERT_EQ(Half(static_cast<float>(h)).bits, h.bits) << bits;
    }
  }
}

TEST(Half, RoundsToNearestTiesToEven) {
  // Between two neighbours: just below the middle, the middle, just above.
  for (uint32_t bits = 0; bits + 1 < 0x7C00; bits += 7) {
    const double low = half_value(static_cast<uint16_t>(bits)),
                 high = half_value(static_cast<uint16_t>(bits + 1));
    const auto middle = static_cast<float>((low + high) / 2);
    EXPECT_EQ(Half(middle).bits, bits % 2 ? bits + 1 : bits);
    EXPECT_EQ(Half(std::nextafter(middle, 0.0f)).bits, bits);
    EXPECT_EQ(Half(std::nextafter(middle, 1e9f)).bits, bits + 1);
  }
  EXPECT_EQ(Half(65519.0f).bits, 0x7BFF);
  EXPECT_EQ(Half(65520.0f).bits, 0x7C00);
}

TEST(BFloat16, RoundsToNearestTiesToEven) {
  EXPECT_EQ(BFloat16(1.0f).bits, 0x3F80);
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0x3F808000u)).bits, 0x3F80);
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0x3F818000u)).bits, 0x3F82);
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0x3F808001u)).bits, 0x3F81);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7F80);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0x7F800001u)))));
}

TEST(Scalar, RemembersItsCategory) {
  EXPECT_TRUE(Scalar(true).is_bool());
  EXPECT_EQ(Scalar(3).dtype(), kInt64);
  EXPECT_EQ(Scalar(3.5).dtype(), kFloat32);
  EXPECT_EQ(Scalar(std::complex<double>(1, 2)).dtype(), kComplex64);
  EXPECT_EQ(Scalar(-2.9).to_int(), -2);
  EXPECT_EQ(Scalar(1e300).to_int(), INT64_MIN);
  EXPECT_EQ(Scalar(INT64_MAX).to_int(), INT64_MAX);
}

}  // namespace
}  // namespace tenon
