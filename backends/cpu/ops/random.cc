// Random numbers on the CPU. Element i takes words by its number alone, so threads and vectors change
// nothing: float32 and half types word i of the stream, float64 and integers words 2i and 2i + 1. Normal
// numbers come in pairs, r cos(t) and r sin(t), from the words of both (Box and Muller, 1958). A permutation
// is the order of words of 64 bits.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>

#include "backends/cpu/copy/convert.h"
#include "backends/cpu/ops/block_expr.h"
#include "backends/cpu/ops/philox_kernels.h"
#include "backends/cpu/ops/stub_functions.h"
#include "backends/cpu/report.h"
#include "backends/cpu/sort/row_sorter.h"
#include "tenon/core/dispatch_dtype.h"
#include "tenon/core/error.h"
#include "tenon/core/half.h"
#include "tenon/core/parallel.h"
#include "tenon/core/philox.h"

namespace tenon::cpu {
namespace {

using namespace tenon::random;

constexpr int64_t kGrainBlocks = 4096, kTileBlocks = 256;

/// Word i of a stream's words of 32 bits, two in one of 64.
uint32_t word32(const uint64_t* words, int64_t i) {
  return static_cast<uint32_t>(words[i / 2] >> (i % 2 * 32));
}

/// Calls f(i, word) for elements [0, n) of `kPerBlock` to a block, on several threads.
template <int kPerBlock, class F>
void for_each_word(PhiloxState state, int64_t n, F&& f) {
  const PhiloxKernels& kernels = philox_kernels();
  parallel_for(0, (n + kPerBlock - 1) / kPerBlock, kGrainBlocks, [&](int64_t begin, int64_t end) {
    alignas(64) uint64_t words[2 * kTileBlocks];
    for (int64_t b = begin; b < end; b += kTileBlocks) {
      const int64_t blocks = std::min(kTileBlocks, end - b), first = b * kPerBlock;
      kernels.blocks(state.seed, state.offset + static_cast<uint64_t>(b), static_cast<size_t>(blocks), words);
      const int64_t count = std::min(n - first, blocks * kPerBlock);
      for (int64_t i = 0; i < count; ++i) {
        if constexpr (kPerBlock == 4)
          f(first + i, word32(words, i));
        else
          f(first + i, words[i]);
      }
    }
  });
}

/// As many bits as the type holds exactly, so that a result below 1 stays below 1.
template <class T>
float uniform_narrow(uint32_t word) {
  if constexpr (std::is_same_v<T, Half>)
    return static_cast<float>(word >> 21) * 0x1p-11f;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return static_cast<float>(word >> 24) * 0x1p-8f;
  else
    return uniform_float(word);
}

/// A block of pairs: r cos(t) to even places of `out`, r sin(t) to odd ones.
template <class T>
void normal_pairs(T* radius_from, T* turn, size_t pairs, double mean, double std, T* out) {
  // Never freed: threads may draw while the process ends.
  static const BlockExpr& radius = *new BlockExpr("sqrt(-2 * log(u))", {"u"});
  static const BlockExpr& cosine =
      *new BlockExpr("r * cos(6.283185307179586 * v) * std + mean", {"r", "v"}, {"mean", "std"});
  static const BlockExpr& sine =
      *new BlockExpr("r * sin(6.283185307179586 * v) * std + mean", {"r", "v"}, {"mean", "std"});
  const T scalars[] = {static_cast<T>(mean), static_cast<T>(std)};
  T even[512], odd[512];
  radius.run<T>(radius_from, pairs, nullptr, radius_from);
  cosine.run<T>(even, pairs, scalars, radius_from, turn);
  sine.run<T>(odd, pairs, scalars, radius_from, turn);
  for (size_t i = 0; i < pairs; ++i) {
    out[2 * i] = even[i];
    out[2 * i + 1] = odd[i];
  }
}

/// n normal numbers in T, a piece at a time: store(first element, numbers, count).
template <class T, class F>
void normal_numbers(PhiloxState state, int64_t n, double mean, double std, F&& store) {
  constexpr int64_t kPairs = 512;
  constexpr int64_t kPairsPerBlock = std::is_same_v<T, float> ? 2 : 1;
  const PhiloxKernels& kernels = philox_kernels();
  const int64_t pairs = (n + 1) / 2;
  parallel_for(0, (pairs + kPairs - 1) / kPairs, 8, [&](int64_t begin, int64_t end) {
    alignas(64) uint64_t words[2 * kPairs / kPairsPerBlock];
    T u[kPairs], v[kPairs], numbers[2 * kPairs];
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t first = piece * kPairs, count = std::min(kPairs, pairs - first);
      kernels.blocks(state.seed, state.offset + static_cast<uint64_t>(first / kPairsPerBlock),
                     static_cast<size_t>((count + kPairsPerBlock - 1) / kPairsPerBlock), words);
      for (int64_t i = 0; i < count; ++i) {
        if constexpr (kPairsPerBlock == 2) {
          u[i] = positive_float(word32(words, 2 * i));
          v[i] = uniform_float(word32(words, 2 * i + 1));
        } else {
          u[i] = positive_double(words[2 * i]);
          v[i] = uniform_double(words[2 * i + 1]);
        }
      }
      normal_pairs(u, v, static_cast<size_t>(count), mean, std, numbers);
      store(2 * first, numbers, std::min(2 * count, n - 2 * first));
    }
  });
}

}  // namespace

void uniform(const Tensor& dst, double from, double to, PhiloxState state) {
  report_kernel("uniform_", TENON_KERNEL_NAMES("philox"));
  switch_floating_dtype(dst.dtype(), "uniform_", [&]<class T>() {
    T* out = static_cast<T*>(dst.data_ptr());
    const auto scaled = [=](double u) {
      const T r = static_cast<T>(
          static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(from + u * (to - from)));
      return static_cast<double>(r) < to || from == to ? r : static_cast<T>(static_cast<float>(from));
    };
    if constexpr (std::is_same_v<T, double>) {
      for_each_word<2>(state, dst.numel(),
                       [&](int64_t i, uint64_t w) { out[i] = scaled(uniform_double(w)); });
    } else {
      for_each_word<4>(state, dst.numel(),
                       [&](int64_t i, uint32_t w) { out[i] = scaled(uniform_narrow<T>(w)); });
    }
  });
}

void normal(const Tensor& dst, double mean, double std, PhiloxState state) {
  report_kernel("normal_", TENON_KERNEL_NAMES("philox"));
  if (dst.dtype() == DType::Float64) {
    auto* out = static_cast<double*>(dst.data_ptr());
    normal_numbers<double>(state, dst.numel(), mean, std, [&](int64_t first, const double* p, int64_t n) {
      std::copy(p, p + n, out + first);
    });
    return;
  }
  const ConvertFn convert = convert_fn(DType::Float32, dst.dtype());
  const auto item = static_cast<int64_t>(dst.itemsize());
  auto* out = static_cast<char*>(dst.data_ptr());
  normal_numbers<float>(state, dst.numel(), mean, std, [&](int64_t first, const float* p, int64_t n) {
    convert(out + first * item, {item, 0}, p, {sizeof(float), 0}, n, 1);
  });
}

void randint(const Tensor& dst, int64_t low, uint64_t range, PhiloxState state) {
  switch_dtype(dst.dtype(), "randint", [&]<class T>() {
    T* out = static_cast<T*>(dst.data_ptr());
    for_each_word<2>(state, dst.numel(), [&](int64_t i, uint64_t w) {
      const auto value = static_cast<int64_t>(static_cast<uint64_t>(low) + uniform_below(w, range));
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
        out[i] = T(static_cast<float>(value));
      else
        out[i] = static_cast<T>(value);
    });
  });
}

void bernoulli(const Tensor& dst, const Tensor& p, PhiloxState state) {
  const auto* chance = static_cast<const double*>(p.data_ptr());
  // A NaN is no probability either. Nothing has been written yet.
  if (!std::all_of(chance, chance + p.numel(), [](double c) { return c >= 0 && c <= 1; })) {
    double low = chance[0], high = chance[0];
    for (const double c : std::span(chance, static_cast<size_t>(p.numel()))) {
      low = std::isnan(c) ? c : std::min(c, low);
      high = std::isnan(c) ? c : std::max(c, high);
    }
    throw_error(ErrorKind::Value,
                fmt::format("bernoulli: expects all probabilities to be in [0, 1], but they are in "
                            "[{}, {}]",
                            low, high));
  }
  switch_dtype(dst.dtype(), "bernoulli", [&]<class T>() {
    T* out = static_cast<T*>(dst.data_ptr());
    const T drawn[] = {T(0.0f), T(1.0f)};  // by index: what is drawn is nothing that a branch could predict
    if (p.numel() != 1) {
      return for_each_word<2>(state, dst.numel(),
                              [&](int64_t i, uint64_t w) { out[i] = drawn[uniform_double(w) < chance[i]]; });
    }
    // uniform_double(w) is below the chance where its 53 bits are below this integer.
    const auto below = static_cast<uint64_t>(std::ceil(*chance * 0x1p53));
    for_each_word<2>(state, dst.numel(), [&](int64_t i, uint64_t w) { out[i] = drawn[w >> 11 < below]; });
  });
}

void randperm(const Tensor& dst, PhiloxState state) {
  // The order of one word for each number; of equal words the first number comes first. Upper halves are
  // sorted, as signed integers of the same order; few are equal.
  const int64_t n = dst.numel();
  const Tensor uppers = make_empty({n}, DType::Int32), sorted = make_empty({n}, DType::Int32),
               lowers = make_empty({n}, DType::Int32), order = make_empty({n}, DType::Int64);
  auto *upper = static_cast<int32_t*>(uppers.data_ptr()), *value = static_cast<int32_t*>(sorted.data_ptr());
  auto* const lower = static_cast<uint32_t*>(lowers.data_ptr());
  auto* const place = static_cast<int64_t*>(order.data_ptr());
  for_each_word<2>(state, n, [&](int64_t i, uint64_t w) {
    upper[i] = static_cast<int32_t>(static_cast<uint32_t>(w >> 32) ^ 1U << 31);
    lower[i] = static_cast<uint32_t>(w);
  });
  RowSorter(DType::Int32, n, n, false).sort(upper, value, place);
  for (int64_t i = 0, end = 0; i < n; i = end) {
    for (end = i + 1; end < n && value[end] == value[i];) ++end;
    if (end - i > 1)
      std::stable_sort(place + i, place + end, [&](int64_t a, int64_t b) { return lower[a] < lower[b]; });
  }
  convert_fn(DType::Int64, dst.dtype())(dst.data_ptr(), {static_cast<int64_t>(dst.itemsize()), 0},
                                        order.data_ptr(), {8, 0}, n, 1);
}

}  // namespace tenon::cpu
