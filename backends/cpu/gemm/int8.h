// Products of integers of 8 bits with sums of 32: C = (A - a_zero) (B - b_zero), for any signs of A and B.
// Used by the operators _int8_product and _int8_pack and by quantized recurrent layers. Knows pointers and
// strides; nothing of tensors.
//
// Every instruction set gives the same bits, since sums of integers are exact; sums beyond 32 bits wrap. B is
// packed first, once for a weight. Packed B is the same on every machine, so that files may keep it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::cpu {

/// Integers that elements count from: one for all, or one for each row of A or column of B.
struct Int8Zeros {
  const int32_t* values = nullptr;  ///< null: all are 0
  int64_t step = 0;                 ///< 0: one for all, 1: one for each

  int32_t at(int64_t i) const { return values ? values[i * step] : 0; }
};

/// A matrix of uint8, or of int8, as the left one. Strides count elements.
struct Int8Matrix {
  const uint8_t* data = nullptr;
  int64_t row = 0, column = 0;
  bool is_signed = false;
  Int8Zeros zeros;
};

/// A matrix as the right one: element [p, j] is data[rows[p] + columns[j]]. So the windows of an image are
/// one.
struct Int8Right {
  const uint8_t* data = nullptr;
  const int64_t *rows = nullptr, *columns = nullptr;
  bool is_signed = false;
  Int8Zeros zeros;
};

/// Columns of a panel of packed B.
inline constexpr int64_t kInt8Columns = 16;
/// k of a group: the elements whose products an instruction adds.
inline constexpr int64_t kInt8Group = 4;
/// Bytes of a group of a panel, and of a panel's header.
inline constexpr int64_t kInt8GroupBytes = kInt8Columns * kInt8Group, kInt8HeaderBytes = 2 * 64;

constexpr int64_t int8_panels(int64_t n) { return (n + kInt8Columns - 1) / kInt8Columns; }
/// Rows of 64 bytes of a panel. A panel has the sums of its columns' differences from their zeros, the zeros,
/// both int32, and groups of B: for each column, the elements of four k. They are int8: those of uint8 less
/// 128, as are their zeros. Elements that B lacks are 0.
constexpr int64_t int8_panel_rows(int64_t k) { return 2 + (k + kInt8Group - 1) / kInt8Group; }
constexpr int64_t int8_panel_bytes(int64_t k) { return int8_panel_rows(k) * kInt8GroupBytes; }

/// B, [k, n], to int8_panels(n) panels. On several threads where that pays.
void int8_pack(const Int8Right& b, int64_t k, int64_t n, std::byte* packed);

struct Int8Product {
  int64_t m = 0, n = 0, k = 0;
  Int8Matrix a;                       ///< [m, k]
  const std::byte* packed = nullptr;  ///< B
  int32_t* c = nullptr;               ///< [m, n], with unit column stride
  int64_t c_row = 0;
};

/// On several threads where that pays.
void int8_product(const Int8Product& args);

/// What real numbers are as uint8: (integer - zero) * scale.
struct Int8Range {
  float scale;
  int32_t zero;
};
/// Real numbers to 255 steps from the least of them, or 0, to the largest, as DynamicQuantizeLinear of ONNX.
Int8Range int8_quantize(const float* x, int64_t n, uint8_t* to);
/// to[i] = sums[i] * (scales[i * step] * scale).
void int8_to_float(const int32_t* sums, int64_t n, const float* scales, int64_t step, float scale, float* to);

}  // namespace tenon::cpu
