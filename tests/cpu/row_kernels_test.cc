// The kernels of copies and conversions against C++'s conversions, element by element, for every instruction
// set that this machine has, at every length and distance from a vector's end.
#include "backends/cpu/copy/row_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "tenon/core/half.h"

namespace tenon::cpu {
namespace {

std::mt19937_64& row_kernels_generator() {
  static std::mt19937_64 g(20251122);
  return g;
}

std::vector<char> random_bytes(size_t n) {
  std::vector<char> bytes(n);
  for (char& b : bytes) b = static_cast<char>(row_kernels_generator()());
  return bytes;
}

// Bits of any kind, and numbers near the limits of the narrower types: both are met seldom by the other.
template <class T>
T random_element() {
  const uint64_t bits = row_kernels_generator()();
  T any;
  std::memcpy(static_cast<void*>(&any), &bits, sizeof any);
  if constexpr (std::is_floating_point_v<T>) {
    static constexpr T kSpecial[] = {T(0),
                                     T(-0.0),
                                     T(0.5),
                                     T(-0.5),
                                     T(65504),
                                     T(65519.9),
                                     T(65520),
                                     T(6e-8),
                                     T(2.9e-8),
                                     T(3e-8),
                                     T(6.1e-5),
                                     T(0x1p31),
                                     T(-0x1p31),
                                     T(0x1p63),
                                     T(-0x1p63),
                                     T(3e9),
                                     T(-3e9),
                                     T(1e19),
                                     T(1e300),
                                     T(2147483647.0),
                                     T(4294967297.0),
                                     std::numeric_limits<T>::infinity(),
                                     -std::numeric_limits<T>::infinity(),
                                     std::numeric_limits<T>::quiet_NaN()};
    switch (row_kernels_generator()() % 4) {
      case 0:
        return any;
      case 1:
        return kSpecial[row_kernels_generator()() % std::size(kSpecial)];
      case 2:
        return static_cast<T>(static_cast<int32_t>(row_kernels_generator()())) / 7;
      default:
        return std::ldexp(static_cast<T>(static_cast<int32_t>(row_kernels_generator()())),
                          static_cast<int>(row_kernels_generator()() % 80) - 50);
    }
  }
  return any;
}

// A bool in memory: any byte but 0 is true.
struct Truth {
  uint8_t byte;
  operator int32_t() const { return byte != 0; }
};

template <class T>
constexpr bool kIsFloat =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// What a conversion is by definition: C++'s own where that is defined.
template <class To, class From>
To converted(From v) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return converted<To>(static_cast<float>(v));
  } else if constexpr (std::is_same_v<To, Truth>) {
    return {static_cast<uint8_t>(v != From(0))};
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    const bool fits = v >= From(-0x1p63) && v < From(0x1p63);
    return static_cast<To>(fits ? static_cast<int64_t>(v) : std::numeric_limits<int64_t>::min());
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(v));
  } else {
    return static_cast<To>(v);
  }
}

template <class To, class From>
void expect_conversion(DType from_dtype, DType to_dtype) {
  for (const CpuTarget target : supported_cpu_targets()) {
    const auto kernel = row_kernels(target).convert[real_index(from_dtype)][real_index(to_dtype)];
    ASSERT_EQ(kernel != nullptr, converts_directly(from_dtype, to_dtype));
    for (size_t n = 0; kernel && n < 200; n += n < 40 ? 1 : 31) {
      std::vector<From> from(n);
      for (From& v : from) v = random_element<From>();
      // A guard behind the last.
      std::vector<char> out((n + 1) * sizeof(To), 77);
      kernel(out.data(), from.data(), n);
      for (size_t i = 0; i < n; ++i) {
        To got;
        std::memcpy(&got, out.data() + i * sizeof(To), sizeof got);
        const To want = converted<To>(from[i]);
        if constexpr (kIsFloat<To>) {
          if (std::isnan(static_cast<double>(want))) {
            EXPECT_TRUE(std::isnan(static_cast<double>(got)))
                << name(target) << " " << name(from_dtype) << " to " << name(to_dtype);
            continue;
          }
        }
        EXPECT_EQ(std::memcmp(&got, &want, sizeof got), 0)
            << name(target) << " " << name(from_dtype) << " to " << name(to_dtype) << " at " << i << " of "
            << n;
      }
      for (size_t i = n * sizeof(To); i < out.size(); ++i) EXPECT_EQ(out[i], 77);
    }
  }
}

template <class From, class... To>
void expect_conversions(size_t from, std::tuple<To...>) {
  size_t to = 0;
  (expect_conversion<To, From>(kRealDTypes[from], kRealDTypes[to++]), ...);
}
template <class... From>
void expect_all_conversions(std::tuple<From...> all) {
  size_t from = 0;
  (expect_conversions<From>(from++, all), ...);
}

TEST(RowKernels, EveryConversionIsThatOfCpp) {
  expect_all_conversions(
      std::tuple<Truth, uint8_t, int8_t, int16_t, int32_t, int64_t, Half, BFloat16, float, double>());
}

TEST(RowKernels, HalvesConvertBitForBit) {
  std::vector<uint16_t> halves(1 << 16);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  std::vector<float> floats(halves.size());
  for (const CpuTarget target : supported_cpu_targets()) {
    const auto step = [&](DType from, DType to) {
      return row_kernels(target).convert[real_index(from)][real_index(to)];
    };
    step(DType::Float16, DType::Float32)(floats.data(), halves.data(), halves.size());
    for (size_t i = 0; i < halves.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(floats[i]),
                std::bit_cast<uint32_t>(detail::half_to_float(halves[i])));
    step(DType::BFloat16, DType::Float32)(floats.data(), halves.data(), halves.size());
    for (size_t i = 0; i < halves.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(floats[i]), uint32_t{halves[i]} << 16);
    std::vector<uint16_t> out(halves.size());
    for (int round = 0; round < 8; ++round) {
      for (float& f : floats) f = random_element<float>();
      step(DType::Float32, DType::Float16)(out.data(), floats.data(), out.size());
      for (size_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(out[i], detail::float_to_half(floats[i])) << floats[i];
      step(DType::Float32, DType::BFloat16)(out.data(), floats.data(), out.size());
      for (size_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(out[i], std::bit_cast<uint16_t>(BFloat16(floats[i]))) << floats[i];
    }
  }
}

TEST(RowKernels, StridedElementsAreGatheredAndSpread) {
  for (const CpuTarget target : supported_cpu_targets()) {
    const RowKernels& kernels = row_kernels(target);
    for (const int64_t size : {1, 2, 4, 8, 16}) {
      const size_t index = element_size_index(size);
      for (const int64_t stride : {-3 * size, -2 * size, -size, int64_t{0}, size, 2 * size, 3 * size,
                                   4 * size, 5 * size, 2 * size + 1, 64 * size}) {
        for (size_t n = 1; n < 150; n += n < 70 ? 1 : 23) {
          const auto steps = static_cast<int64_t>(n - 1);
          const size_t span = static_cast<size_t>(std::abs(stride) * steps + size);
          const int64_t first = stride < 0 ? -stride * steps : 0;
          // Exactly as long as it must be: AddressSanitizer sees what is read beyond.
          const std::vector<char> from = random_bytes(span);
          std::vector<char> packed(n * static_cast<size_t>(size));
          kernels.pack[index](packed.data(), from.data() + first, stride, n);
          for (size_t i = 0; i < n; ++i)
            ASSERT_EQ(std::memcmp(packed.data() + i * static_cast<size_t>(size),
                                  from.data() + first + static_cast<int64_t>(i) * stride,
                                  static_cast<size_t>(size)),
                      0)
                << name(target) << ' ' << size << ' ' << stride << ' ' << n;
          if (std::abs(stride) < size) continue;
          std::vector<char> spread = from, want = from;
          const std::vector<char> elements = random_bytes(packed.size());
          kernels.unpack[index](spread.data() + first, elements.data(), stride, n);
          for (size_t i = 0; i < n; ++i)
            std::memcpy(want.data() + first + static_cast<int64_t>(i) * stride,
                        elements.data() + i * static_cast<size_t>(size), static_cast<size_t>(size));
          ASSERT_EQ(spread, want) << name(target) << ' ' << size << ' ' << stride << ' ' << n;
        }
      }
    }
  }
}

TEST(RowKernels, FillsWithAnElementOfAnySize) {
  for (const CpuTarget target : supported_cpu_targets()) {
    for (const size_t size : {1, 2, 4, 8, 16}) {
      for (size_t n = 0; n < 150; n += n < 70 ? 1 : 23) {
        const std::vector<char> value = random_bytes(size);
        std::vector<char> out(n * size + 1, 77);
        row_kernels(target).fill[element_size_index(static_cast<int64_t>(size))](out.data(), value.data(), n);
        for (size_t i = 0; i < n * size; ++i) ASSERT_EQ(out[i], value[i % size]);
        ASSERT_EQ(out.back(), 77);
      }
    }
  }
}

TEST(RowKernels, SpreadsElementsOverRows) {
  for (const CpuTarget target : supported_cpu_targets()) {
    for (const size_t size : {1, 2, 4, 8, 16}) {
      for (const size_t rows : {0, 1, 2, 5, 40}) {
        for (size_t n = 0; n < 150; n += n < 70 ? 1 : 23) {
          const size_t stride = size * (1 + n % 3);
          const std::vector<char> elements = random_bytes(stride * (rows + 1));
          std::vector<char> out(n * rows * size + 1, 77);
          row_kernels(target).spread[element_size_index(static_cast<int64_t>(size))](
              out.data(), elements.data(), static_cast<int64_t>(stride), n, rows);
          for (size_t i = 0; i < n * rows * size; ++i)
            ASSERT_EQ(out[i], elements[i / (n * size) * stride + i % size])
                << size << ' ' << n << ' ' << rows;
          ASSERT_EQ(out.back(), 77);
        }
      }
    }
  }
}

TEST(RowKernels, TransposesMatricesOfAnyShape) {
  const size_t lengths[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65, 100, 257};
  for (const CpuTarget target : supported_cpu_targets()) {
    for (const size_t size : {1, 2, 4, 8, 16}) {
      for (int round = 0; round < 60; ++round) {
        const size_t rows = lengths[row_kernels_generator()() % std::size(lengths)],
                     columns = lengths[row_kernels_generator()() % std::size(lengths)];
        // Rows may be further apart than they are long, and run backwards.
        const size_t src_row = columns * size + row_kernels_generator()() % 40,
                     dst_row = rows * size + row_kernels_generator()() % 40;
        const bool backwards = row_kernels_generator()() % 2;
        const std::vector<char> from = random_bytes(src_row * (rows - 1) + columns * size);
        std::vector<char> got(dst_row * (columns - 1) + rows * size, 77), want = got;
        const int64_t src_stride = backwards ? -static_cast<int64_t>(src_row) : static_cast<int64_t>(src_row);
        const char* first = from.data() + (backwards ? src_row * (rows - 1) : 0);
        for (size_t r = 0; r < rows; ++r) {
          for (size_t c = 0; c < columns; ++c)
            std::memcpy(want.data() + c * dst_row + r * size,
                        first + static_cast<int64_t>(r) * src_stride + c * size, size);
        }
        row_kernels(target).transpose[element_size_index(static_cast<int64_t>(size))](
            got.data(), static_cast<int64_t>(dst_row), first, src_stride, rows, columns);
        ASSERT_EQ(got, want) << name(target) << ' ' << size << ' ' << rows << 'x' << columns;
      }
    }
  }
}

template <class T>
void pairs_part_and_meet(const RowKernels& kernels, size_t size) {
  for (size_t n = 0; n < 80; ++n) {
    std::vector<T> pairs(2 * n + 1), first(n + 1, T(7)), second(n + 1, T(7)), joined(2 * n + 2, T(7));
    for (size_t i = 0; i < 2 * n; ++i) pairs[i] = static_cast<T>(row_kernels_generator()());
    kernels.split_pairs[size](first.data(), second.data(), pairs.data(), n);
    kernels.join_pairs[size](joined.data(), first.data(), second.data(), n);
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(first[i], pairs[2 * i]);
      ASSERT_EQ(second[i], pairs[2 * i + 1]);
      ASSERT_EQ(joined[2 * i], pairs[2 * i]);
      ASSERT_EQ(joined[2 * i + 1], pairs[2 * i + 1]);
    }
    ASSERT_TRUE(first[n] == 7 && second[n] == 7 && joined[2 * n] == 7 && joined[2 * n + 1] == 7) << n;
  }
}

TEST(RowKernels, PairsPartAndMeet) {
  for (const CpuTarget target : supported_cpu_targets()) {
    pairs_part_and_meet<uint32_t>(row_kernels(target), 0);
    pairs_part_and_meet<uint64_t>(row_kernels(target), 1);
  }
}

}  // namespace
}  // namespace tenon::cpu
