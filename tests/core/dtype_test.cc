#include "tenon/core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <limits>
#include <string>

#include "tenon/core/error.h"
#include "tenon/core/half.h"
#include "tenon/core/scalar.h"
#include "tenon/core/tensor.h"

namespace tenon {
namespace {

// What is published of each dtype: NumPy's itemsize and type string, the codes of DLPack's specification (255
// where it has none), the numbers of PyTorch's c10::ScalarType. Written here once more, by hand.
struct Published {
  const char* name;
  size_t bytes;
  char kind;  // NumPy's: b, u, i, f, c; q quantized
  bool is_signed;
  const char* numpy;
  int dlpack, torch;
  const char* compute;
};
constexpr Published kPublished[] = {
    {"bool", 1, 'b', false, "|b1", 6, 11, "int64"},
    {"uint8", 1, 'u', false, "|u1", 1, 0, "int64"},
    {"int8", 1, 'i', true, "|i1", 0, 1, "int64"},
    {"int16", 2, 'i', true, "<i2", 0, 2, "int64"},
    {"int32", 4, 'i', true, "<i4", 0, 3, "int32"},
    {"int64", 8, 'i', true, "<i8", 0, 4, "int64"},
    {"float16", 2, 'f', true, "<f2", 2, 5, "float32"},
    {"bfloat16", 2, 'f', true, nullptr, 4, 15, "float32"},
    {"float32", 4, 'f', true, "<f4", 2, 6, "float32"},
    {"float64", 8, 'f', true, "<f8", 2, 7, "float64"},
    {"complex64", 8, 'c', true, "<c8", 5, 9, "float32"},
    {"complex128", 16, 'c', true, "<c16", 5, 10, "float64"},
    {"qint8", 1, 'q', true, nullptr, 255, 12, nullptr},
    {"quint8", 1, 'q', false, nullptr, 255, 13, nullptr},
    {"float8_e4m3fn", 1, 'f', true, nullptr, 10, 24, nullptr},
    {"float8_e5m2", 1, 'f', true, nullptr, 12, 23, nullptr},
    {"uint16", 2, 'u', false, "<u2", 1, 27, "int64"},
    {"uint32", 4, 'u', false, "<u4", 1, 28, "int64"},
    {"uint64", 8, 'u', false, "<u8", 1, 29, "int64"},
};

TEST(DType, EveryRowIsAsPublished) {
  ASSERT_EQ(std::size(kPublished), size_t{kNumDTypes});
  for (size_t i = 0; i < std::size(kPublished); ++i) {
    const Published& want = kPublished[i];
    const DType t = static_cast<DType>(i);
    const DTypeInfo& info = dtype_info(t);
    EXPECT_EQ(info.code, t) << want.name;
    EXPECT_EQ(kDTypes[i], t) << want.name;
    EXPECT_EQ(name(t), want.name);
    EXPECT_EQ(item_size(t), want.bytes) << want.name;
    EXPECT_EQ(is_complex(t), want.kind == 'c') << want.name;
    EXPECT_EQ(is_floating_point(t), want.kind == 'f') << want.name;
    EXPECT_EQ(is_quantized(t), want.kind == 'q') << want.name;
    EXPECT_EQ(is_integral(t, false), want.kind == 'i' || want.kind == 'u') << want.name;
    EXPECT_EQ(is_integral(t, true), want.kind == 'i' || want.kind == 'u' || want.kind == 'b') << want.name;
    EXPECT_EQ(is_signed(t), want.is_signed) << want.name;
    EXPECT_STREQ(info.numpy, want.numpy) << want.name;
    EXPECT_EQ(static_cast<int>(info.dlpack), want.dlpack) << want.name;
    EXPECT_EQ(info.torch, want.torch) << want.name;
    EXPECT_EQ(has_arithmetic(t), want.compute != nullptr) << want.name;
    if (want.compute) {
      EXPECT_EQ(name(*info.compute), want.compute) << want.name;
    }
    EXPECT_EQ(item_size(real_dtype(t)), want.kind == 'c' ? want.bytes / 2 : want.bytes) << want.name;
    EXPECT_EQ(is_complex(real_dtype(t)), false) << want.name;
  }
  EXPECT_EQ(complex_dtype(kFloat64), kComplex128);
  EXPECT_EQ(complex_dtype(kComplex128), kComplex128);
  EXPECT_EQ(complex_dtype(kBFloat16), kComplex64);
}

// torch.promote_types, as PyTorch prints it for the first twelve dtypes: one letter each, in the order of the
// codes. b bool, u uint8, c int8, s int16, i int32, l int64, h float16, g bfloat16, f float32, d float64, F,
// D complex.
constexpr const char* kLetters = "bucsilhgfdFD";
constexpr const char* kPromoted[] = {
    "bucsilhgfdFD", "uussilhgfdFD", "cscsilhgfdFD", "ssssilhgfdFD", "iiiiilhgfdFD", "llllllhgfdFD",
    "hhhhhhhffdFD", "ggggggfgfdFD", "fffffffffdFD", "ddddddddddDD", "FFFFFFFFFDFD", "DDDDDDDDDDDD",
};

TEST(DType, PromotesAsTheTableOfPyTorch) {
  const std::string letters = kLetters;
  for (int a = 0; a < 12; ++a) {
    for (int b = 0; b < 12; ++b) {
      const DType got = promote_types(static_cast<DType>(a), static_cast<DType>(b));
      EXPECT_EQ(letters[static_cast<size_t>(got)], kPromoted[a][b])
          << name(static_cast<DType>(a)) << " + " << name(static_cast<DType>(b));
    }
  }
}

// The table of the Python array API standard 2024.12, which leaves uint64 with signed integers open.
TEST(DType, WiderUnsignedIntegersPromoteAsTheArrayApiSays) {
  constexpr auto i8 = kInt8, i16 = kInt16, i32 = kInt32, i64 = kInt64;
  constexpr auto u8 = kUInt8, u16 = kUInt16, u32 = kUInt32, u64 = kUInt64;
  constexpr DType kRows[][3] = {
      {u8, u16, u16},  {u8, u32, u32},  {u8, u64, u64},  {u16, u16, u16}, {u16, u32, u32}, {u16, u64, u64},
      {u32, u32, u32}, {u32, u64, u64}, {u64, u64, u64}, {i8, u16, i32},  {i16, u16, i32}, {i32, u16, i32},
      {i64, u16, i64}, {i8, u32, i64},  {i16, u32, i64}, {i32, u32, i64}, {i64, u32, i64},
  };
  for (const auto& [a, b, both] : kRows) {
    EXPECT_EQ(promote_types(a, b), both) << name(a) << ' ' << name(b);
    EXPECT_EQ(promote_types(b, a), both) << name(a) << ' ' << name(b);
  }
  for (const DType s : {i8, i16, i32, i64}) EXPECT_THROW(promote_types(s, u64), Error) << name(s);
  for (const DType u : {u16, u32, u64}) {
    EXPECT_EQ(promote_types(u, kBool), u);
    for (const DType other : {kFloat16, kBFloat16, kFloat32, kFloat64, kComplex64, kComplex128})
      EXPECT_EQ(promote_types(u, other), other);
  }
}

TEST(DType, QuantizedAndEightBitFloatsDoNotPromote) {
  for (const DType alone : {DType::QInt8, DType::QUInt8, DType::Float8E4M3FN, DType::Float8E5M2}) {
    for (const DType other : kDTypes) {
      if (other == alone) {
        EXPECT_EQ(promote_types(alone, other), alone);
      } else {
        EXPECT_THROW(promote_types(alone, other), Error) << name(alone) << ' ' << name(other);
        EXPECT_THROW(promote_types(other, alone), Error) << name(alone) << ' ' << name(other);
      }
    }
  }
}

// torch.can_cast, from the three refusals that PyTorch publishes: complex to anything else, floats (8-bit
// ones too) to integers, and anything to bool. Quantized dtypes are none of these. Rows are `from`.
constexpr const char* kCanCast[] = {
    //   b u c s i l h g f d F D q Q 8 8 s i l
    "1111111111111111111",  // bool
    "0111111111111111111",  // uint8
    "0111111111111111111",  // int8
    "0111111111111111111",  // int16
    "0111111111111111111",  // int32
    "0111111111111111111",  // int64
    "0000001111111111000",  // float16
    "0000001111111111000",  // bfloat16
    "0000001111111111000",  // float32
    "0000001111111111000",  // float64
    "0000000000110000000",  // complex64
    "0000000000110000000",  // complex128
    "0111111111111111111",  // qint8
    "0111111111111111111",  // quint8
    "0000001111111111000",  // float8_e4m3fn
    "0000001111111111000",  // float8_e5m2
    "0111111111111111111",  // uint16
    "0111111111111111111",  // uint32
    "0111111111111111111",  // uint64
};

TEST(DType, CanCastIsThatOfPyTorch) {
  for (size_t from = 0; from < kDTypes.size(); ++from) {
    for (size_t to = 0; to < kDTypes.size(); ++to) {
      EXPECT_EQ(can_cast(kDTypes[from], kDTypes[to]), kCanCast[from][to] == '1')
          << name(kDTypes[from]) << " to " << name(kDTypes[to]);
    }
  }
}

template <class F>
std::string type_error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Type) << e.what();
    return e.what();
  }
  return "nothing thrown";
}

TEST(DType, AnUnknownCodeIsAnErrorWhereATensorIsMade) {
  for (const int code : {19, 31, 32, 63, 64, 65, 128, 200, 255}) {
    const auto t = static_cast<DType>(code);
    const std::string want = std::to_string(code) + " is the code of no dtype; those of Tenon are 0 to 18";
    EXPECT_FALSE(is_known(t));
    EXPECT_EQ(name(t), "unknown dtype");
    EXPECT_EQ(item_size(t), 0u);
    EXPECT_EQ(real_dtype(t), t);
    EXPECT_FALSE(is_complex(t) || is_floating_point(t) || is_integral(t, true) || is_quantized(t));
    EXPECT_FALSE(has_arithmetic(t));
    EXPECT_FALSE(can_cast(t, kFloat32) || can_cast(kFloat32, t) || can_cast(t, t));
    EXPECT_EQ(type_error_of([&] { promote_types(t, kFloat32); }), want);
    EXPECT_EQ(type_error_of([&] { promote_types(kFloat32, t); }), want);
    EXPECT_EQ(type_error_of([&] { promote_types(t, t); }), want);
    EXPECT_EQ(type_error_of([&] { set_default_dtype(t); }), want);
    EXPECT_EQ(type_error_of([&] { make_empty({2, 3}, t); }), want);
    EXPECT_EQ(type_error_of([&] { make_empty({}, t); }), want);
    EXPECT_EQ(type_error_of([&] { make_empty_strided({2}, {-1}, t); }), want);
    EXPECT_EQ(
        type_error_of([&] { TensorImpl::make(Storage::allocate(64), t, IntArrayRef{2}, IntArrayRef{1}, 0); }),
        want);
  }
  EXPECT_EQ(default_dtype(), kFloat32);
}

TEST(DType, TheDefaultIsARealFloatingTypeThatIsComputedWith) {
  for (const DType t : kDTypes) {
    if (t == kFloat16 || t == kBFloat16 || t == kFloat32 || t == kFloat64) {
      set_default_dtype(t);
      EXPECT_EQ(default_dtype(), t);
    } else {
      EXPECT_THROW(set_default_dtype(t), Error) << name(t);
    }
  }
  set_default_dtype(kFloat32);
}

TEST(DType, NamesRoundTrip) {
  for (const DType t : kDTypes) EXPECT_EQ(parse_dtype(name(t)), t);
  EXPECT_FALSE(parse_dtype("unknown dtype"));
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

TEST(Scalar, HoldsIntegersOfUint64) {
  const uint64_t all = ~uint64_t{0}, half = uint64_t{1} << 63;
  EXPECT_EQ(Scalar(all).to_uint(), all);
  EXPECT_EQ(Scalar(all).to_int(), INT64_MAX);
  EXPECT_EQ(Scalar(half).to_double(), 0x1p63);
  EXPECT_TRUE(Scalar(half).is_beyond_int64() && Scalar(half).to_bool() && Scalar(half).is_integral());
  EXPECT_FALSE(Scalar(half - 1).is_beyond_int64() || Scalar(0x1p63).is_beyond_int64());
  EXPECT_EQ(Scalar(half - 1).to_int(), INT64_MAX);
  EXPECT_EQ(Scalar(0x1.8p63).to_uint(), half + half / 2);
  EXPECT_EQ(Scalar(-1).to_uint(), all);
  check_fits(Scalar(all), kUInt64, "fill");
  EXPECT_THROW(check_fits(Scalar(half), kInt64, "fill"), Error);
  EXPECT_THROW(check_fits(Scalar(half), kUInt32, "fill"), Error);
  EXPECT_THROW(check_fits(Scalar(0x1p64), kUInt64, "fill"), Error);
}

}  // namespace
}  // namespace tenon
