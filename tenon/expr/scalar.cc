#include "tenon/expr/scalar.h"

#include <bit>
#include <cstring>

#include "tenon/core/half.h"

namespace tenon::expr {

namespace {

uint64_t of_f32(float f) { return std::bit_cast<uint32_t>(f); }
float f32_of(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
uint64_t of_i32(int64_t i) { return static_cast<uint32_t>(i); }
int64_t i32_of(uint64_t bits) { return static_cast<int32_t>(static_cast<uint32_t>(bits)); }

int64_t truncated(double d) { return d >= -0x1p63 && d < 0x1p63 ? static_cast<int64_t>(d) : INT64_MIN; }

// Beyond int64 by way of what is left above 2^63.
uint64_t unsigned_of(double d) {
  const uint64_t high = uint64_t{1} << 63;
  return d >= 0x1p63 ? static_cast<uint64_t>(truncated(d - 0x1p63)) ^ high
                     : static_cast<uint64_t>(truncated(d));
}

uint64_t of_integer(int64_t i, Type to) {
  switch (to) {
    case Type::Mask:
      return i != 0;
    case Type::F32:
      return of_f32(static_cast<float>(i));
    case Type::F64:
      return std::bit_cast<uint64_t>(static_cast<double>(i));
    case Type::I32:
      return of_i32(i);
    default:
      return static_cast<uint64_t>(i);
  }
}

uint64_t of_unsigned(uint64_t i, Type to) {
  switch (to) {
    case Type::F32:
      return of_f32(static_cast<float>(i));
    case Type::F64:
      return std::bit_cast<uint64_t>(static_cast<double>(i));
    default:
      return of_integer(static_cast<int64_t>(i), to);
  }
}

uint64_t of_float(double d, Type to) {
  switch (to) {
    case Type::U64:
      return unsigned_of(d);
    case Type::Mask:
      return d != 0;
    case Type::F32:
      return of_f32(static_cast<float>(d));
    case Type::F64:
      return std::bit_cast<uint64_t>(d);
    default:
      return of_integer(truncated(d), to);
  }
}

template <class T>
T read(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
void write(void* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

}  // namespace

uint64_t convert_scalar(uint64_t bits, Type from, Type to) noexcept {
  if (from == to) return bits;
  switch (from) {
    case Type::Mask:
      return of_integer(bits != 0, to);
    case Type::F32:
      return of_float(f32_of(bits), to);
    case Type::F64:
      return of_float(std::bit_cast<double>(bits), to);
    case Type::I32:
      return of_integer(i32_of(bits), to);
    case Type::U64:
      return of_unsigned(bits, to);
    default:
      return of_integer(static_cast<int64_t>(bits), to);
  }
}

uint64_t load_scalar(const void* p, DType d) noexcept {
  switch (d) {
    case DType::Bool:
      return read<uint8_t>(p) != 0;
    case DType::UInt8:
      return read<uint8_t>(p);
    case DType::Int8:
      return static_cast<uint64_t>(int64_t{read<int8_t>(p)});
    case DType::Int16:
      return static_cast<uint64_t>(int64_t{read<int16_t>(p)});
    case DType::UInt16:
      return read<uint16_t>(p);
    case DType::Float16:
      return of_f32(detail::half_to_float(read<uint16_t>(p)));
    case DType::BFloat16:
      return of_f32(detail::bfloat16_to_float(read<uint16_t>(p)));
    default:
      return item_size(real_dtype(d)) == 4 ? read<uint32_t>(p) : read<uint64_t>(p);
  }
}

void store_scalar(void* p, DType d, uint64_t bits) noexcept {
  switch (d) {
    case DType::Bool:
      return write<uint8_t>(p, bits != 0);
    case DType::UInt8:
    case DType::Int8:
      return write(p, static_cast<uint8_t>(bits));
    case DType::Int16:
    case DType::UInt16:
      return write(p, static_cast<uint16_t>(bits));
    case DType::Float16:
      return write(p, detail::float_to_half(f32_of(bits)));
    case DType::BFloat16:
      return write(p, detail::float_to_bfloat16(f32_of(bits)));
    default:
      return item_size(real_dtype(d)) == 4 ? write(p, static_cast<uint32_t>(bits)) : write(p, bits);
  }
}

uint64_t round_scalar(uint64_t bits, DType d) noexcept {
  unsigned char stored[8];
  store_scalar(stored, d, bits);
  return load_scalar(stored, d);
}

}  // namespace tenon::expr
