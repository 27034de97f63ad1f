// ByteWriter and ByteReader: whole numbers, real numbers and strings as bytes, the same on every machine; and
// errors that name the byte. Used by the binary form alone.
#pragma once

#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/graph/ir/graph.h"

namespace tenon::graph {

class ByteWriter {
 public:
  void byte(uint8_t b) { bytes_.push_back(static_cast<std::byte>(b)); }
  /// Seven bits a byte, the lowest first.
  void number(uint64_t n) {
    for (; n >= 128; n >>= 7) byte(static_cast<uint8_t>(n | 128));
    byte(static_cast<uint8_t>(n));
  }
  void signed_number(int64_t n) { number(static_cast<uint64_t>(n) << 1 ^ static_cast<uint64_t>(n >> 63)); }
  /// An id, or kNone.
  void id(uint32_t n) { number(n == kNone ? 0 : uint64_t{n} + 1); }
  /// Eight bytes, the lowest first.
  void fixed(uint64_t n) {
    for (int i = 0; i < 8; ++i) byte(static_cast<uint8_t>(n >> 8 * i));
  }
  void real(double v) { fixed(std::bit_cast<uint64_t>(v)); }
  void characters(std::string_view text) {
    for (const char c : text) byte(static_cast<uint8_t>(c));
  }
  /// A string after its length.
  void text(std::string_view text) {
    number(text.size());
    characters(text);
  }
  void scalar(const Scalar& v) {
    byte(static_cast<uint8_t>(v.kind()));
    if (v.is_complex()) {
      real(v.to_complex().real());
      real(v.to_complex().imag());
    } else if (v.is_floating_point()) {
      real(v.to_double());
    } else {
      signed_number(v.to_int());
    }
  }
  void append(const ByteWriter& other) {
    bytes_.insert(bytes_.end(), other.bytes_.begin(), other.bytes_.end());
  }

  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Without overlong forms and surrogates, as Python's texts are.
bool is_utf8(std::string_view text) noexcept;

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool at_end() const noexcept { return at_ == bytes_.size(); }
  size_t position() const noexcept { return at_; }
  std::span<const std::byte> rest() const noexcept { return bytes_.subspan(at_); }

  uint8_t byte() {
    if (at_end()) fail("the bytes end here, and more are needed");
    return static_cast<uint8_t>(bytes_[at_++]);
  }
  uint64_t number() {
    uint64_t n = 0;
    const size_t start = at_;
    for (int shift = 0;; shift += 7) {
      const uint8_t b = byte();
      if (shift == 63 && b > 1) fail_at(start, "a number has more than 64 bits");
      n |= uint64_t{b & 127u} << shift;
      if (b < 128) return n;
    }
  }
  int64_t signed_number() {
    const uint64_t n = number();
    return static_cast<int64_t>(n >> 1 ^ (0 - (n & 1)));
  }
  /// A whole number below `end`; `what` names it.
  uint32_t below(uint64_t end, std::string_view what) {
    const size_t start = at_;
    const uint64_t n = number();
    if (n >= end || n >= kNone) fail_at(start, "there is no such " + std::string(what));
    return static_cast<uint32_t>(n);
  }
  /// The same, or kNone.
  uint32_t id(uint64_t end, std::string_view what) {
    const uint32_t n = below(end + 1, what);
    return n == 0 ? kNone : n - 1;
  }
  /// How many elements follow; each has a byte at least.
  size_t count() {
    const size_t start = at_;
    const uint64_t n = number();
    if (n > bytes_.size() - at_) fail_at(start, "more elements are announced than bytes follow");
    return static_cast<size_t>(n);
  }
  bool boolean() {
    const uint8_t b = byte();
    if (b > 1) fail_at(at_ - 1, "expected 0 or 1");
    return b == 1;
  }
  uint64_t fixed() {
    uint64_t n = 0;
    for (int i = 0; i < 8; ++i) n |= uint64_t{byte()} << 8 * i;
    return n;
  }
  double real() { return std::bit_cast<double>(fixed()); }
  Scalar scalar() {
    switch (static_cast<Scalar::Kind>(below(4, "kind of number"))) {
      case Scalar::Kind::Bool:
        return signed_number() != 0;
      case Scalar::Kind::Int:
        return signed_number();
      case Scalar::Kind::Float:
        return real();
      case Scalar::Kind::Complex:
        break;
    }
    const double first = real();
    return std::complex<double>(first, real());
  }
  std::string characters(size_t n) {
    if (n > bytes_.size() - at_) fail("the bytes end within a string");
    const auto* const first = reinterpret_cast<const char*>(bytes_.data() + at_);
    at_ += n;
    return {first, n};
  }
  /// A string after its length.
  std::string text() {
    const size_t start = at_, n = count();
    std::string read = characters(n);
    if (!is_utf8(read)) fail_at(start, "a string is no UTF-8");
    return read;
  }

  /// Throws Error{Value} "graph: byte 17: ...".
  [[noreturn]] void fail(const std::string& problem) const { fail_at(at_, problem); }
  [[noreturn]] static void fail_at(size_t position, const std::string& problem);

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

/// "TENONGRF" and what comes before the rest of the form.
inline constexpr std::string_view kMagic = "TENONGRF";
inline constexpr uint64_t kBinaryVersion = 2;
uint64_t checksum(std::span<const std::byte> bytes) noexcept;

}  // namespace tenon::graph
