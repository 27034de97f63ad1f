// Seeded random typed expressions: every compute type, casts between all, rounding, masks, shared nodes,
// several outputs, any storage dtypes. For tests that compare what runs them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <span>

#include "tenon/core/error.h"
#include "tenon/expr/builder.h"
#include "tenon/expr/primitives.h"
#include "tenon/expr/scalar.h"
#include "tenon/expr/spec.h"
#include "tests/expr/random_expression.h"

namespace tenon::expr::testing {

inline constexpr DType kStored[] = {DType::Bool,    DType::UInt8,  DType::Int8,    DType::Int16,
                                    DType::Int32,   DType::Int64,  DType::Float16, DType::BFloat16,
                                    DType::Float32, DType::Float64};

class RandomTyped {
 public:
  /// Of operands of these dtypes, and values of these types.
  explicit RandomTyped(uint64_t seed, std::span<const DType> stored = kStored,
                       std::span<const Type> types = kComputeTypes)
      : rng_(seed), stored_(stored), types_(types) {}

  ExpressionPtr make(int size) {
    const size_t num_inputs = 1 + below(4), num_numbers = below(3), num_outputs = 1 + below(3);
    for (size_t i = 0; i < num_inputs; ++i) {
      const DType d = stored_[below(stored_.size())];
      parts_.inputs.push_back({.dtype = d, .operand = static_cast<uint16_t>(i)});
      add({.op = Op::Load, .type = carrier(d), .flags = static_cast<uint8_t>(Rank::Element), .bits = i});
    }
    for (size_t i = 0; i < num_numbers; ++i) {
      const Type t = types_[below(types_.size())];
      parts_.numbers.push_back(
          {.dtype = dtype(t), .rank = Rank::Number, .operand = static_cast<uint16_t>(i)});
      add({.op = Op::Number, .type = t, .bits = i});
    }
    for (const Type t : types_) add({.op = Op::Literal, .type = t, .bits = literal(t)});
    for (int i = 0; i < size; ++i) operation();
    for (size_t i = 0; i < num_outputs; ++i) output(i);
    return g_.finish(std::move(parts_));
  }

 private:
  static const std::vector<Primitive>& operations() {
    static const std::vector<Primitive> list = [] {
      std::vector<Primitive> chosen;
      for (const Primitive& p : primitives()) {
        if (p.op != Op::Call) chosen.push_back(p);
      }
      return chosen;
    }();
    return list;
  }

  size_t below(size_t n) { return static_cast<size_t>(rng_() % n); }
  NodeId add(const Node& n) {
    pool_.push_back(g_.add(n));
    return pool_.back();
  }

  uint64_t literal(Type t) {
    if (t == Type::F32) return as_number(random_values<float>(1, rng_())[0]);
    if (t == Type::F64) return as_number(random_values<double>(1, rng_())[0]);
    return t == Type::I32 ? as_number(random_values<int32_t>(1, rng_())[0]) : rng_() % 100;
  }

  // A recent value, cast to `t` where it is of another type.
  NodeId operand(Type t) {
    const NodeId id = pool_[pool_.size() - 1 - below(std::min<size_t>(pool_.size(), 8))];
    return cast(id, t);
  }
  NodeId cast(NodeId id, Type t) {
    if (g_[id].type == t) return id;
    return g_.add({.op = Op::Cast, .type = t, .arity = 1, .args = {id, kNoNode, kNoNode}});
  }

  void operation() {
    if (stored_.size() == std::size(kStored) && below(5) == 0) return round();
    // Functions are many, and each hides what its operands are: every other time it is an operation.
    const auto& choices = below(2) == 0 ? operations() : primitives();
    const Primitive p = choices[below(choices.size())];
    if (std::find(types_.begin(), types_.end(), p.type) == types_.end()) return;
    // What a NaN's sign is shows in copysign alone.
    if (p.op == Op::Call && functions()[p.function].name == "copysign") return;
    const bool compare = p.op != Op::Call && info(p.op).rule == TypeRule::Compare;
    Node n{.op = p.op, .type = p.type};
    n.arity = p.op == Op::Call ? functions()[p.function].arity : info(p.op).arity;
    if (p.op == Op::Call) n.bits = p.function;
    if (compare || p.on_masks || (p.op == Op::Call && functions()[p.function].mask)) n.type = Type::Mask;
    for (int i = 0; i < n.arity; ++i) {
      const bool mask = p.on_masks || (p.op == Op::Where && i == 0);
      n.args[i] = operand(mask ? Type::Mask : p.type);
    }
    add(n);
  }

  void round() {
    const DType d = kStored[below(std::size(kStored))];
    if (is_narrower_than_carrier(d)) add(rounded(operand(carrier(d)), d));
  }
  static Node rounded(NodeId id, DType d) {
    return {.op = Op::RoundTo,
            .type = carrier(d),
            .arity = 1,
            .args = {id, kNoNode, kNoNode},
            .bits = static_cast<uint64_t>(d)};
  }

  void output(size_t i) {
    // Often an input's dtype: the output may then be that input.
    const auto& inputs = parts_.inputs;
    const DType d = below(2) == 0 ? inputs[below(inputs.size())].dtype : stored_[below(stored_.size())];
    NodeId value = cast(pool_[pool_.size() - 1 - below(std::min<size_t>(pool_.size(), 4))], carrier(d));
    if (!holds(g_.nodes(), parts_.inputs, value, d)) value = g_.add(rounded(value, d));
    parts_.outputs.push_back(
        {.dtype = d, .rank = g_[value].rank(), .operand = static_cast<uint16_t>(i), .node = value});
  }

  std::mt19937_64 rng_;
  std::span<const DType> stored_;
  std::span<const Type> types_;
  Builder g_;
  ExpressionParts parts_;
  std::vector<NodeId> pool_;
};

/// What conversions and comparisons treat in a way of its own, as bits of the type: zeros of both signs, NaN,
/// halves between two integers, the ends of integers, what rounds twice by way of double.
inline const std::vector<uint64_t>& special_values(Type t) {
  static const auto all = [] {
    constexpr double kFloats[] = {0.0,   -0.0,    INFINITY, -INFINITY, NAN,        0.5,
                                  1.5,   2.5,     -2.5,     1,         -1,         0x1p31,
                                  1e30,  -1e30,   -0x1p31,  0x1p63,    2049,       257.5,
                                  65520, 0x1p-24, -0x1p63,  0x1p-25,   0x1.8p-149, 0x1.000001p0};
    constexpr int64_t kIntegers[] = {0,
                                     1,
                                     -1,
                                     127,
                                     128,
                                     -129,
                                     255,
                                     256,
                                     32768,
                                     INT32_MAX,
                                     INT32_MIN,
                                     INT64_MAX,
                                     INT64_MIN,
                                     0x1000001,
                                     -16777217,
                                     (int64_t{1} << 53) + 1,
                                     (int64_t{1} << 60) + (int64_t{1} << 36) + 1};
    std::array<std::vector<uint64_t>, 5> lists;
    lists[static_cast<size_t>(Type::Mask)] = {0, 1};
    for (const double d : kFloats) {
      lists[static_cast<size_t>(Type::F32)].push_back(as_number(static_cast<float>(d)));
      lists[static_cast<size_t>(Type::F64)].push_back(as_number(d));
    }
    for (const int64_t i : kIntegers) {
      lists[static_cast<size_t>(Type::I32)].push_back(static_cast<uint32_t>(i));
      lists[static_cast<size_t>(Type::I64)].push_back(static_cast<uint64_t>(i));
    }
    return lists;
  }();
  return all[static_cast<size_t>(t)];
}

/// `n` elements of a dtype: mostly ordinary numbers, a quarter special, some of any bits; foreign bools too.
inline std::vector<unsigned char> random_elements(DType d, size_t n, uint64_t seed) {
  const size_t size = item_size(d);
  std::vector<unsigned char> bytes(n * size);
  std::mt19937_64 rng(seed);
  const std::vector<float> floats = random_values<float>(n, seed);
  const std::vector<double> doubles = random_values<double>(n, seed);
  for (size_t i = 0; i < n; ++i) {
    unsigned char* at = bytes.data() + i * size;
    const uint64_t any = rng();
    if (d != DType::Bool && any % 4 == 3)
      store_scalar(at, d, special_values(carrier(d))[(any >> 8) % special_values(carrier(d)).size()]);
    else if (d == DType::Float32)
      std::memcpy(at, &floats[i], size);
    else if (d == DType::Float64)
      std::memcpy(at, &doubles[i], size);
    else if (d == DType::Float16 || d == DType::BFloat16)
      any % 4 == 0 ? void(std::memcpy(at, &any, size)) : store_scalar(at, d, as_number(floats[i]));
    else if (d == DType::Bool)
      *at = static_cast<unsigned char>(any % 3);
    else
      store_scalar(at, d,
                   any % 4 == 0 ? any >> 7 : static_cast<uint64_t>(static_cast<int64_t>(any % 41) - 20));
  }
  return bytes;
}

/// Whether two elements are the same bits, all NaNs being one.
inline bool same_element(const void* a, const void* b, DType d) {
  if (std::memcmp(a, b, item_size(d)) == 0) return true;
  if (!is_floating_point(d)) return false;
  const double x = std::bit_cast<double>(convert_scalar(load_scalar(a, d), carrier(d), Type::F64));
  const double y = std::bit_cast<double>(convert_scalar(load_scalar(b, d), carrier(d), Type::F64));
  return x != x && y != y;
}

}  // namespace tenon::expr::testing
