// Single-threaded products of integers of 8 bits, compiled once per instruction set.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/int8_kernels.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backends/cpu/gemm/gemm_simd-inl.h"
#include "backends/cpu/gemm/int8_kernels.h"
#include "hwy/highway.h"
#include "tenon/core/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Sums = hn::ScalableTag<int32_t>;
using Words = hn::Repartition<int16_t, Sums>;
constexpr size_t kLanes = hn::MaxLanes(Sums()), kColumns = kInt8Columns;
static_assert(kColumns % kLanes == 0);

#undef TENON_BYTE_PRODUCTS
#define TENON_BYTE_PRODUCTS (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3)

/// How a panel's sums are kept. Without an instruction for four products of bytes, elements are widened to 16
/// bits and products are added in pairs, so that a column has two sums.
template <bool kBytes>
struct PanelSums {
  static constexpr size_t kParts = (kBytes ? 1 : 2) * kColumns / kLanes;
  /// Of A.
  using Item = std::conditional_t<kBytes, uint8_t, int16_t>;
  using Group = hn::Vec<std::conditional_t<kBytes, Sums, Words>>;

  /// A group of a row of A, for every column.
  static HWY_INLINE Group left(const Item* a) {
    if constexpr (kBytes) {
      int32_t group;
      std::memcpy(&group, a, sizeof(group));
      return hn::Set(Sums(), group);
    } else {
      int64_t group;
      std::memcpy(&group, a, sizeof(group));
      return hn::BitCast(Words(), hn::Set(hn::Repartition<int64_t, Words>(), group));
    }
  }
  /// 1 for every item.
  static HWY_INLINE Group one() {
    const hn::Repartition<Item, Sums> d;
    return hn::BitCast(std::conditional_t<kBytes, Sums, Words>(), hn::Set(d, Item(1)));
  }
  /// A part of a group of a panel.
  static HWY_INLINE Group right(const int8_t* group, size_t part) {
    if constexpr (kBytes) {
      return hn::LoadU(Sums(), reinterpret_cast<const int32_t*>(group) + part * kLanes);
    } else {
      return hn::PromoteTo(Words(), hn::LoadU(hn::Rebind<int8_t, Words>(), group + part * 2 * kLanes));
    }
  }
  static HWY_INLINE hn::Vec<Sums> add(hn::Vec<Sums> sum, Group a, Group b) {
    if constexpr (kBytes) {
      auto raw = sum.raw;
#if HWY_TARGET == HWY_AVX3
      asm("vpdpbusd %2, %1, %0" : "+v"(raw) : "v"(a.raw), "v"(b.raw));
#elif HWY_TARGET == HWY_AVX2
      asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(raw) : "x"(a.raw), "x"(b.raw));
#endif
      return hn::Vec<Sums>{raw};
    } else {
#if HWY_ARCH_X86
      auto unused = hn::Zero(Sums());
      return hn::ReorderWidenMulAccumulate(Sums(), a, b, sum, unused);
#else
      const Sums d;
      const auto odd = [&](Group x) { return hn::ShiftRight<16>(hn::BitCast(d, x)); };
      const auto even = [&](Group x) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(hn::BitCast(d, x))); };
      return hn::Add(sum, hn::Add(hn::Mul(odd(a), odd(b)), hn::Mul(even(a), even(b))));
#endif
    }
  }
  /// One sum for each column.
  static HWY_INLINE void store(const hn::Vec<Sums>* sum, int32_t* to) {
    const Sums d;
#pragma GCC unroll 4
    for (size_t i = 0; i < kColumns / kLanes; ++i) {
      if constexpr (kBytes) {
        hn::Store(sum[i], d, to + i * kLanes);
      } else {
        const auto low = sum[2 * i], high = sum[2 * i + 1];
        hn::Store(hn::Add(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low)), d, to + i * kLanes);
      }
    }
  }
};

/// Where fewer rows or panels exist than the tile has, the last ones take the place of others.
template <bool kBytes, size_t kRows, size_t kPanels, class P = PanelSums<kBytes>>
void tile(const Int8Tile& t, int32_t* totals) {
  using Item = typename P::Item;
  const Item* left[kRows];
  const int8_t* right[kPanels];
  left[0] = static_cast<const Item*>(t.a);
  right[0] = reinterpret_cast<const int8_t*>(t.panel) + kInt8HeaderBytes;
  for (size_t r = 1; r < kRows; ++r) left[r] = left[r - 1] + (r < t.rows ? t.a_row : 0);
  for (size_t p = 1; p < kPanels; ++p) right[p] = right[p - 1] + (p < t.panels ? t.panel_bytes : 0);
  hn::Vec<Sums> sum[kRows][kPanels][P::kParts];
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (size_t p = 0; p < kPanels; ++p) {
#pragma GCC unroll 8
      for (size_t i = 0; i < P::kParts; ++i) sum[r][p][i] = hn::Zero(Sums());
    }
  }
  const int64_t groups = t.groups;
  for (int64_t g = 0; g < groups; ++g) {
    typename P::Group row[kRows];
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r) row[r] = P::left(left[r] + g * kInt8Group);
#pragma GCC unroll 8
    for (size_t p = 0; p < kPanels; ++p) {
#pragma GCC unroll 8
      for (size_t i = 0; i < P::kParts; ++i) {
        const auto column = P::right(right[p] + g * kInt8GroupBytes, i);
#pragma GCC unroll 8
        for (size_t r = 0; r < kRows; ++r) sum[r][p][i] = P::add(sum[r][p][i], row[r], column);
      }
    }
  }
#pragma GCC unroll 8
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (size_t p = 0; p < kPanels; ++p) P::store(sum[r][p], totals + (r * kPanels + p) * kColumns);
  }
}

template <bool kBytes, class P = PanelSums<kBytes>>
int32_t row_sum(const void* row, int64_t count) {
  using Item = typename P::Item;
  const hn::Repartition<Item, Sums> d;
  constexpr auto kStep = static_cast<int64_t>(hn::MaxLanes(d));
  const std::conditional_t<kBytes, Sums, Words> dg;
  const auto* items = static_cast<const Item*>(row);
  auto sums = hn::Zero(Sums());
  int64_t p = 0;
  for (; p + kStep <= count; p += kStep)
    sums = P::add(sums, hn::BitCast(dg, hn::LoadU(d, items + p)), P::one());
  auto sum = static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(Sums(), sums)));
  for (; p < count; ++p) sum += static_cast<uint32_t>(items[p]);
  return static_cast<int32_t>(sum);
}

void finish(const Int8Tile& t, const int32_t* totals, size_t totals_row, const Int8Output& out) {
  const Sums d;
  for (size_t j = 0; j < out.columns; j += kLanes) {
    const size_t within = j % kColumns, count = out.columns - j;
    const auto* header =
        reinterpret_cast<const int32_t*>(t.panel + static_cast<ptrdiff_t>(j / kColumns) * t.panel_bytes) +
        within;
    const auto sums = hn::LoadU(d, header), zeros = hn::LoadU(d, header + kColumns);
    const int32_t* total = totals + j;
    int32_t* c = out.c + j;
    for (size_t r = 0; r < t.rows; ++r, total += totals_row, c += out.c_row) {
      auto x = hn::Sub(hn::Load(d, total), hn::Mul(hn::Set(d, out.zeros[r]), sums));
      if (out.row_sums) x = hn::Sub(x, hn::Mul(hn::Set(d, out.row_sums[r]), zeros));
      if (count >= kLanes)
        hn::StoreU(x, d, c);
      else
        store_first(x, d, c, count);
    }
  }
}

template <bool kBytes, class P = PanelSums<kBytes>>
void column_sums(const int8_t* groups, int64_t count, int32_t* sums) {
  hn::Vec<Sums> sum[P::kParts];
  for (auto& part : sum) part = hn::Zero(Sums());
  for (int64_t g = 0; g < count; ++g) {
#pragma GCC unroll 8
    for (size_t i = 0; i < P::kParts; ++i)
      sum[i] = P::add(sum[i], P::one(), P::right(groups + g * kInt8GroupBytes, i));
  }
  P::store(sum, sums);
}

Int8Range quantize(const float* x, int64_t n, uint8_t* to) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<uint8_t, decltype(d)> db;
  constexpr auto kStep = static_cast<int64_t>(hn::MaxLanes(d));
  auto least = hn::Zero(d), most = hn::Zero(d);
  for (int64_t i = 0; i < n; i += kStep) {
    const auto v = i + kStep <= n ? hn::LoadU(d, x + i) : load_first(d, x + i, static_cast<size_t>(n - i));
    least = hn::Min(least, v);
    most = hn::Max(most, v);
  }
  const float low = hn::GetLane(hn::MinOfLanes(d, least)), high = hn::GetLane(hn::MaxOfLanes(d, most));
  const float range = (high - low) / 255.0f, scale = range == 0 ? 1.0f : range;
  const auto end = hn::Set(d, 255.0f);
  const auto places = [&](hn::Vec<decltype(d)> v, hn::Vec<decltype(d)> from) {
    return hn::Min(hn::Max(hn::Add(hn::Round(hn::Div(v, hn::Set(d, scale))), from), hn::Zero(d)), end);
  };
  const auto zero = places(hn::Set(d, -low), hn::Zero(d));
  for (int64_t i = 0; i < n; i += kStep) {
    const bool whole = i + kStep <= n;
    const auto v = whole ? hn::LoadU(d, x + i) : load_first(d, x + i, static_cast<size_t>(n - i));
    const auto out = hn::DemoteTo(db, hn::ConvertTo(Sums(), places(v, zero)));
    if (whole)
      hn::StoreU(out, db, to + i);
    else
      store_first(out, db, to + i, static_cast<size_t>(n - i));
  }
  return {scale, static_cast<int32_t>(hn::GetLane(zero))};
}

void to_float(const int32_t* sums, int64_t n, const float* scales, int64_t step, float scale, float* to) {
  const hn::ScalableTag<float> d;
  constexpr auto kStep = static_cast<int64_t>(hn::MaxLanes(d));
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    const auto scaled =
        hn::Mul(step == 0 ? hn::Set(d, *scales) : hn::LoadU(d, scales + i), hn::Set(d, scale));
    hn::StoreU(hn::Mul(hn::ConvertTo(d, hn::LoadU(Sums(), sums + i)), scaled), d, to + i);
  }
  for (; i < n; ++i) to[i] = static_cast<float>(sums[i]) * (scales[i * step] * scale);
}

/// Tiles as the registers hold their sums.
template <bool kBytes>
Int8Kernels kernels_with() {
  constexpr size_t kVectors = PanelSums<kBytes>::kParts;
  constexpr size_t kMany = HWY_TARGET == HWY_AVX3 ? 6 : kVectors > 4 ? 1 : 3, kFew = kMany < 3 ? kMany : 3;
  constexpr size_t kPanels = kVectors <= 2 ? 2 : 1, kRowPanels = kVectors < 8 ? 8 / kVectors : 1;
  return {{&tile<kBytes, 1, kRowPanels>, 1, kRowPanels},
          {&tile<kBytes, kFew, kPanels>, kFew, kPanels},
          {&tile<kBytes, kMany, kPanels>, kMany, kPanels},
          sizeof(typename PanelSums<kBytes>::Item),
          &row_sum<kBytes>,
          &finish,
          &column_sums<kBytes>,
          &quantize,
          &to_float};
}

#if HWY_TARGET == HWY_STATIC_TARGET
// Packing uses vectors of 16 bytes everywhere.

using Bytes = hn::Full128<uint8_t>;

/// Sixteen columns of B, 1 or 2 apart (kStep), or anywhere (0). Columns after the last one are what `flip`
/// makes 0.
template <int kStep>
struct Sixteen {
  const int64_t* at;
  int64_t count;
  uint8_t flip;

  HWY_INLINE hn::Vec<Bytes> row(const uint8_t* from) const {
    const Bytes d;
    return hn::Xor(load(from), hn::Set(d, flip));
  }
  HWY_INLINE hn::Vec<Bytes> load(const uint8_t* from) const {
    const Bytes d;
    if constexpr (kStep == 1) {
      return hn::LoadU(d, from + at[0]);
    } else if constexpr (kStep == 2) {
      // Of 31 bytes, the even ones of the first half, and the odd ones of what begins a byte before the
      // second.
      const hn::Full128<int16_t> dw;
      const auto first = hn::And(hn::BitCast(dw, hn::LoadU(d, from + at[0])), hn::Set(dw, 255));
      const auto second =
          hn::ShiftRight<8>(hn::BitCast(hn::Full128<uint16_t>(), hn::LoadU(d, from + at[0] + 15)));
      const hn::Half<Bytes> dh;
      return hn::Combine(d, hn::DemoteTo(dh, hn::BitCast(dw, second)), hn::DemoteTo(dh, first));
    } else {
      HWY_ALIGN uint8_t bytes[kInt8Columns];
      std::memset(bytes, flip, sizeof(bytes));
      for (int64_t j = 0; j < count; ++j) bytes[j] = from[at[j]];
      return hn::Load(d, bytes);
    }
  }
};

/// Four rows, side by side for each column.
HWY_INLINE void store_group(const hn::Vec<Bytes>* row, int8_t* to) {
  const Bytes d;
  const hn::Full128<uint16_t> dw;
  const auto low01 = hn::BitCast(dw, hn::InterleaveLower(d, row[0], row[1]));
  const auto low23 = hn::BitCast(dw, hn::InterleaveLower(d, row[2], row[3]));
  const auto high01 = hn::BitCast(dw, hn::InterleaveUpper(d, row[0], row[1]));
  const auto high23 = hn::BitCast(dw, hn::InterleaveUpper(d, row[2], row[3]));
  auto* out = reinterpret_cast<uint16_t*>(to);
  hn::StoreU(hn::InterleaveLower(dw, low01, low23), dw, out);
  hn::StoreU(hn::InterleaveUpper(dw, low01, low23), dw, out + 8);
  hn::StoreU(hn::InterleaveLower(dw, high01, high23), dw, out + 16);
  hn::StoreU(hn::InterleaveUpper(dw, high01, high23), dw, out + 24);
}

/// The groups of a panel; rows after the last one are 0.
template <int kStep>
void pack_groups(const Int8Right& b, int64_t k, Sixteen<kStep> columns, int8_t* to) {
  hn::Vec<Bytes> row[kInt8Group];
  int64_t p = 0;
  for (; p + kInt8Group <= k; p += kInt8Group, to += kInt8GroupBytes) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < kInt8Group; ++i) row[i] = columns.row(b.data + b.rows[p + i]);
    store_group(row, to);
  }
  if (p == k) return;
  for (auto& r : row) {
    r = p < k ? columns.row(b.data + b.rows[p]) : hn::Zero(Bytes());
    ++p;
  }
  store_group(row, to);
}

#endif

}  // namespace

Int8Kernels int8_with([[maybe_unused]] bool byte_products) {
#if HWY_TARGET == HWY_AVX3 && (TENON_CPU_TARGETS & 2)
  return kernels_with<true>();  // AVX2's are taken without byte products
#elif TENON_BYTE_PRODUCTS
  if (byte_products) return kernels_with<true>();
  return kernels_with<false>();
#else
  return kernels_with<false>();
#endif
}

#if HWY_TARGET == HWY_STATIC_TARGET
void pack_any(const Int8Right& b, int64_t k, int64_t column, int64_t columns, int8_t* to) {
  const int64_t* at = b.columns + column;
  const uint8_t flip = b.is_signed ? 0 : 128;
  int64_t step = columns == kInt8Columns ? at[1] - at[0] : 0;
  for (int64_t j = 1; j < columns; ++j) step = at[j] - at[j - 1] == step ? step : 0;
  if (step == 1)
    pack_groups<1>(b, k, {at, columns, flip}, to);
  else if (step == 2)
    pack_groups<2>(b, k, {at, columns, flip}, to);
  else
    pack_groups<0>(b, k, {at, columns, flip}, to);
}
#endif

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

bool has_byte_products(CpuTarget target) noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (target == CpuTarget::Avx3) return __builtin_cpu_supports("avx512vnni");
  if (target == CpuTarget::Avx2) return __builtin_cpu_supports("avxvnni");
#endif
  return false;
}

Int8Kernels int8_kernels(CpuTarget target, bool byte_products) {
#if defined(__x86_64__) && (TENON_CPU_TARGETS & 2)
  if (target == CpuTarget::Avx3 && !byte_products) target = CpuTarget::Avx2;
#endif
  const Int8Kernels kernels[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(int8_with(byte_products));
  return kernels[static_cast<size_t>(target)];
}

void int8_pack_groups(const Int8Right& b, int64_t k, int64_t column, int64_t columns, int8_t* to) {
  HWY_NAMESPACE::pack_any(b, k, column, columns, to);
}

}  // namespace tenon::cpu
#endif
