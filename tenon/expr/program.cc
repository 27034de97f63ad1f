#include "tenon/expr/program.h"

#include <algorithm>
#include <cstddef>

#include "tenon/expr/builder.h"
#include "tenon/expr/definition.h"
#include "tenon/expr/mixer.h"
#include "tenon/expr/typed_text.h"

namespace tenon::expr {

namespace {

// Expressions and programs are made of the same nodes, under the same numbers.
static_assert(sizeof(TenonNode) == sizeof(Node) && offsetof(TenonNode, op) == offsetof(Node, op) &&
              offsetof(TenonNode, type) == offsetof(Node, type) &&
              offsetof(TenonNode, arity) == offsetof(Node, arity) &&
              offsetof(TenonNode, flags) == offsetof(Node, flags) &&
              offsetof(TenonNode, args) == offsetof(Node, args) &&
              offsetof(TenonNode, bits) == offsetof(Node, bits));
constexpr bool numbered(Op op, int code) { return static_cast<int>(op) == code; }
static_assert(numbered(Op::Literal, TENON_OP_LITERAL) && numbered(Op::Load, TENON_OP_LOAD) &&
              numbered(Op::Number, TENON_OP_NUMBER) && numbered(Op::Add, TENON_OP_ADD) &&
              numbered(Op::Sub, TENON_OP_SUB) && numbered(Op::Mul, TENON_OP_MUL) &&
              numbered(Op::Div, TENON_OP_DIV) && numbered(Op::TruncDiv, TENON_OP_TRUNC_DIV) &&
              numbered(Op::Fmod, TENON_OP_FMOD) && numbered(Op::Neg, TENON_OP_NEG) &&
              numbered(Op::Abs, TENON_OP_ABS) && numbered(Op::Sqrt, TENON_OP_SQRT) &&
              numbered(Op::Fma, TENON_OP_FMA) && numbered(Op::Min, TENON_OP_MIN) &&
              numbered(Op::Max, TENON_OP_MAX) && numbered(Op::Floor, TENON_OP_FLOOR) &&
              numbered(Op::Ceil, TENON_OP_CEIL) && numbered(Op::Trunc, TENON_OP_TRUNC) &&
              numbered(Op::Round, TENON_OP_ROUND) && numbered(Op::IntPow, TENON_OP_INT_POW) &&
              numbered(Op::Eq, TENON_OP_EQ) && numbered(Op::Ne, TENON_OP_NE) &&
              numbered(Op::Lt, TENON_OP_LT) && numbered(Op::Le, TENON_OP_LE) &&
              numbered(Op::Gt, TENON_OP_GT) && numbered(Op::Ge, TENON_OP_GE) &&
              numbered(Op::And, TENON_OP_AND) && numbered(Op::Or, TENON_OP_OR) &&
              numbered(Op::Xor, TENON_OP_XOR) && numbered(Op::Not, TENON_OP_NOT) &&
              numbered(Op::Where, TENON_OP_WHERE) && numbered(Op::Bits, TENON_OP_BITS) &&
              numbered(Op::FromBits, TENON_OP_FROM_BITS) && numbered(Op::ShiftLeft, TENON_OP_SHIFT_LEFT) &&
              numbered(Op::ShiftRight, TENON_OP_SHIFT_RIGHT) &&
              numbered(Op::ShiftRightLogical, TENON_OP_SHIFT_RIGHT_LOGICAL) &&
              numbered(Op::PiReduce, TENON_OP_PI_REDUCE) && numbered(Op::Cast, TENON_OP_CAST) &&
              numbered(Op::RoundTo, TENON_OP_ROUND_TO));
static_assert(kNumOps <= 64, "ops_used has a bit for each");
constexpr bool typed(Type type, int code) { return static_cast<int>(type) == code; }
static_assert(typed(Type::Mask, TENON_TYPE_MASK) && typed(Type::F32, TENON_TYPE_F32) &&
              typed(Type::F64, TENON_TYPE_F64) && typed(Type::I32, TENON_TYPE_I32) &&
              typed(Type::I64, TENON_TYPE_I64) && typed(Type::U64, TENON_TYPE_U64));
constexpr bool ranked(Rank rank, int code) { return static_cast<int>(rank) == code; }
static_assert(ranked(Rank::Number, TENON_RANK_NUMBER) && ranked(Rank::Row, TENON_RANK_ROW) &&
              ranked(Rank::Column, TENON_RANK_COLUMN) && ranked(Rank::Element, TENON_RANK_ELEMENT) &&
              Node::kRank == 3);
constexpr bool stored(DType dtype, int code) { return static_cast<int>(dtype) == code; }
static_assert(stored(DType::Bool, TENON_DTYPE_BOOL) && stored(DType::UInt8, TENON_DTYPE_UINT8) &&
              stored(DType::Int8, TENON_DTYPE_INT8) && stored(DType::Int16, TENON_DTYPE_INT16) &&
              stored(DType::Int32, TENON_DTYPE_INT32) && stored(DType::Int64, TENON_DTYPE_INT64) &&
              stored(DType::Float16, TENON_DTYPE_FLOAT16) && stored(DType::BFloat16, TENON_DTYPE_BFLOAT16) &&
              stored(DType::Float32, TENON_DTYPE_FLOAT32) && stored(DType::Float64, TENON_DTYPE_FLOAT64) &&
              stored(DType::Complex64, TENON_DTYPE_COMPLEX64) &&
              stored(DType::Complex128, TENON_DTYPE_COMPLEX128) && stored(DType::QInt8, TENON_DTYPE_QINT8) &&
              stored(DType::QUInt8, TENON_DTYPE_QUINT8) &&
              stored(DType::Float8E4M3FN, TENON_DTYPE_FLOAT8_E4M3FN) &&
              stored(DType::Float8E5M2, TENON_DTYPE_FLOAT8_E5M2) &&
              stored(DType::UInt16, TENON_DTYPE_UINT16) && stored(DType::UInt32, TENON_DTYPE_UINT32) &&
              stored(DType::UInt64, TENON_DTYPE_UINT64) &&
              kFirstRegisteredDType == TENON_DTYPE_FIRST_REGISTERED);

// The nodes of `e` as nodes of `g`. `loads` are the values of its inputs; empty: they stay loads.
std::vector<NodeId> add_primitive(Builder& g, const Expression& e, std::span<const NodeId> loads) {
  std::vector<NodeId> made;
  for (const Node& given : e.nodes()) {
    Node n = given;
    for (int i = 0; i < n.arity; ++i) n.args[i] = made[n.args[i]];
    if (n.op == Op::Load && !loads.empty()) {
      made.push_back(loads[n.bits]);
    } else if (n.op == Op::Call) {
      const Expression& body = definition(static_cast<uint16_t>(n.bits), g[n.args[0]].type);
      made.push_back(add_primitive(g, body, {n.args, n.arity})[body.outputs()[0].node]);
    } else {
      made.push_back(g.add(n));
    }
  }
  return made;
}

ExpressionPtr make_primitive(const Expression& typed, uint64_t complex_results) {
  Builder g;
  const std::vector<NodeId> made = add_primitive(g, typed, {});
  ExpressionParts parts = parts_of(typed);
  parts.level = Level::Primitive;
  parts.outputs.clear();
  for (Slot s : typed.outputs()) {
    s.node = made[s.node];
    const bool widened = s.part == Part::Whole && s.operand < 64 && (complex_results >> s.operand & 1u) != 0;
    if (widened) s.part = Part::Re;
    parts.outputs.push_back(s);
    if (!widened) continue;
    s.part = Part::Im;
    s.rank = Rank::Number;
    s.node = g.add({.op = Op::Literal, .type = Type::F32});
    parts.outputs.push_back(s);
  }
  return g.finish(std::move(parts));
}

}  // namespace

ExpressionPtr inline_calls(const Expression& typed) { return make_primitive(typed, 0); }

DeviceProgram::DeviceProgram(const Expression& typed, uint64_t complex_results,
                             std::span<const std::string_view> inputs,
                             std::span<const std::string_view> numbers)
    : expression_(make_primitive(typed, complex_results)), text_(to_string(typed, inputs, numbers)) {
  const Expression& e = *expression_;
  for (const Slot& s : e.outputs()) outputs_.push_back(s.node);
  program_ = {.struct_size = sizeof(TenonProgram),
              .num_inputs = e.num_inputs,
              .num_scalars = e.num_numbers,
              .num_outputs = e.num_outputs,
              .num_nodes = e.num_nodes,
              .nodes = reinterpret_cast<const TenonNode*>(e.nodes().data()),
              .outputs = outputs_.data(),
              .hash = {e.key.high, e.key.low},
              .text = text_.c_str()};
  for (const Node& n : e.nodes()) {
    program_.ops_used |= uint64_t{1} << static_cast<int>(n.op);
    program_.types_used |= 1u << static_cast<int>(n.type);
    // Large arguments of sin are reduced in double, whatever their type.
    if (n.op == Op::PiReduce) program_.types_used |= 1u << TENON_TYPE_F64;
  }
}

void set_variant(TenonLaunch& launch) noexcept {
  const TenonProgram& p = *launch.program;
  const std::span operands(launch.operands, p.num_outputs + p.num_inputs);
  const auto fits = [](const TenonOperand& o) {
    return o.strides[0] == 0 || o.strides[0] == static_cast<int64_t>(item_size(DType{o.dtype}));
  };
  const bool dense = launch.ndim == 1 && std::all_of(operands.begin(), operands.end(), fits);
  launch.form = dense ? TENON_FORM_DENSE : TENON_FORM_STRIDED;

  Mixer m;
  m.add(Key{p.hash[0], p.hash[1]});
  m.add(uint64_t{launch.form} | uint64_t{launch.ndim} << 8);
  for (const TenonOperand& o : operands) {
    const bool repeated = dense && o.strides[0] == 0;
    m.add(uint64_t{o.dtype} | uint64_t{o.place} << 8 | uint64_t{repeated} << 16);
  }
  for (uint32_t i = 0; i < p.num_outputs; ++i) m.add(uint64_t{launch.results[i]});
  const Key variant = m.take();
  launch.variant[0] = variant.high;
  launch.variant[1] = variant.low;
}

}  // namespace tenon::expr
