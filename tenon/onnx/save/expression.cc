// Pointwise operators and operators over rows, written as what their expressions are made of.
#include <algorithm>
#include <array>
#include <cstring>

#include "tenon/expr/definition.h"
#include "tenon/expr/expr.h"
#include "tenon/expr/function.h"
#include "tenon/expr/instantiate.h"
#include "tenon/iter/lower.h"
#include "tenon/onnx/save/saver.h"

namespace tenon::onnx {
namespace {

using expr::Op;
using expr::ReduceKind;
using expr::Type;

/// What a function of the language is: an operator of ONNX, or else a text over functions that are. A
/// function that is not here is written as its definition.
struct FunctionRow {
  std::string_view name, op, text;
};
constexpr FunctionRow kFunctions[] = {
    {"acos", "Acos", {}},
    {"acosh", "Acosh", {}},
    {"asin", "Asin", {}},
    {"asinh", "Asinh", {}},
    {"atan", "Atan", {}},
    {"atanh", "Atanh", {}},
    {"clamp_max", "Min", {}},
    {"clamp_min", "Max", {}},
    {"conj", {}, "x"},
    {"copysign", {}, "where(y < 0, -abs(x), abs(x))"},
    {"cos", "Cos", {}},
    {"cosh", "Cosh", {}},
    {"erf", "Erf", {}},
    {"erfc", {}, "1 - erf(x)"},
    {"exp", "Exp", {}},
    {"exp2", {}, "exp(x * 0.6931471805599453)"},
    {"expm1", {}, "exp(x) - 1"},
    {"gelu", {}, "0.5 * x * (1 + erf(0.7071067811865476 * x))"},
    {"gelu_derivative",
     {},
     "0.5 + 0.5 * erf(0.7071067811865476 * x) + x * (0.3989422804014327 * exp(-0.5 * x * x))"},
    {"gelu_tanh", {}, "0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))"},
    {"hypot", {}, "sqrt(x * x + y * y)"},
    {"isfinite", {}, "abs(x) < inf"},
    {"isinf", {}, "abs(x) == inf"},
    {"isnan", {}, "x != x"},
    {"log", "Log", {}},
    {"log10", {}, "log(x) * 0.4342944819032518"},
    {"log1p", {}, "log(1 + x)"},
    {"log2", {}, "log(x) * 1.4426950408889634"},
    {"log_sigmoid", {}, "-softplus(-x)"},
    {"logaddexp", {}, "where(x == y, x + log(2), max(x, y) + log(1 + exp(-abs(x - y))))"},
    {"mish", "Mish", {}},
    {"pow", "Pow", {}},
    {"reciprocal", "Reciprocal", {}},
    {"relu", "Relu", {}},
    {"rsqrt", {}, "1 / sqrt(x)"},
    {"sgn", "Sign", {}},
    {"sigmoid", "Sigmoid", {}},
    {"sign", "Sign", {}},
    {"silu", {}, "x * sigmoid(x)"},
    {"sin", "Sin", {}},
    {"sinh", "Sinh", {}},
    {"softplus", "Softplus", {}},
    {"tan", "Tan", {}},
    {"tanh", "Tanh", {}},
    {"xlogy", {}, "where(y != y, y, where(x == 0, 0, x * log(y)))"},
};

/// What an operation is: on masks, which are bool in the file, the second.
std::string_view op_of(Op op, bool is_mask) {
  switch (op) {
    case Op::Add:
      return "Add";
    case Op::Sub:
      return "Sub";
    case Op::Mul:
      return "Mul";
    case Op::Div:
    case Op::TruncDiv:
      return "Div";
    case Op::Neg:
      return "Neg";
    case Op::Abs:
      return "Abs";
    case Op::Sqrt:
      return "Sqrt";
    case Op::Min:
      return "Min";
    case Op::Max:
      return "Max";
    case Op::Floor:
      return "Floor";
    case Op::Ceil:
      return "Ceil";
    case Op::Round:
      return "Round";
    case Op::IntPow:
      return "Pow";
    case Op::Eq:
      return "Equal";
    case Op::Lt:
      return "Less";
    case Op::Le:
      return "LessOrEqual";
    case Op::Gt:
      return "Greater";
    case Op::Ge:
      return "GreaterOrEqual";
    case Op::And:
      return is_mask ? "And" : "BitwiseAnd";
    case Op::Or:
      return is_mask ? "Or" : "BitwiseOr";
    case Op::Xor:
      return is_mask ? "Xor" : "BitwiseXor";
    case Op::Not:
      return is_mask ? "Not" : "BitwiseNot";
    case Op::Where:
      return "Where";
    default:
      return {};
  }
}

/// A value of an expression in the file.
struct Value {
  Name name;
  Dims sizes;
  Type type = Type::F32;
};

Scalar scalar_of(uint64_t bits, Type type) {
  const auto as = [&](auto value) {
    std::memcpy(&value, &bits, sizeof value);
    return Scalar(value);
  };
  switch (type) {
    case Type::F32:
      return as(float{});
    case Type::F64:
      return as(double{});
    case Type::I32:
      return as(int32_t{});
    default:
      return as(int64_t{});
  }
}

/// Writes the nodes of one expression. Functions are expressions inside of it.
class ExpressionWriter {
 public:
  ExpressionWriter(Saver& s, const Dims& sizes, const Dims& over) : s_(s), sizes_(sizes), over_(over) {}

  std::vector<Value> write(const expr::Expression& e, std::span<const Value> inputs,
                           std::span<const Scalar> numbers) {
    std::vector<Value> values(e.num_nodes);
    std::vector<bool> needed(e.num_nodes);
    for (const expr::Slot& slot : e.outputs()) needed[slot.node] = true;
    for (size_t i = e.num_nodes; i-- > 0;)
      for (size_t a = 0; needed[i] && a < e[static_cast<expr::NodeId>(i)].arity; ++a)
        needed[e[static_cast<expr::NodeId>(i)].args[a]] = true;
    for (expr::NodeId i = 0; i < e.num_nodes; ++i)
      if (needed[i]) values[i] = value(e[i], values, inputs, numbers);
    std::vector<Value> out;
    for (const expr::Slot& slot : e.outputs()) out.push_back(values[slot.node]);
    return out;
  }

  Value cast(const Value& v, Type to) {
    return {s_.cast(v.name, expr::dtype(v.type), expr::dtype(to)), v.sizes, to};
  }

 private:
  Value made(std::string_view op, std::span<const Value> args, Type type, WrittenAttributes attributes = {}) {
    std::vector<Name> names;
    Dims sizes;
    for (const Value& arg : args) {
      names.push_back(arg.name);
      sizes = together(sizes, arg.sizes);
    }
    return {s_.node(op, std::move(names), std::move(attributes)), sizes, type};
  }
  static Dims together(const Dims& a, const Dims& b) {
    const Dims &more = a.size() < b.size() ? b : a, &fewer = a.size() < b.size() ? a : b;
    Dims out = more;
    for (size_t d = 0, lead = more.size() - fewer.size(); d < fewer.size(); ++d)
      if (out[lead + d] == 1) out[lead + d] = fewer[d];
    return out;
  }

  Value value(const expr::Node& n, std::span<const Value> values, std::span<const Value> inputs,
              std::span<const Scalar> numbers) {
    std::vector<Value> args;
    for (size_t a = 0; a < n.arity; ++a) args.push_back(values[n.args[a]]);
    switch (n.op) {
      case Op::Literal:
        return {s_.number(n.type == Type::Mask ? Scalar(n.bits != 0) : scalar_of(n.bits, n.type),
                          expr::dtype(n.type)),
                {},
                n.type};
      case Op::Load:
        return inputs[n.bits];
      case Op::Number:
        return {s_.number(numbers[n.bits], expr::dtype(n.type)), {}, n.type};
      case Op::Call:
        return call(static_cast<uint16_t>(n.bits), args, n.type);
      case Op::Hold:
        return args[0];
      case Op::Ne:
        return not_of(made("Equal", args, Type::Mask));
      case Op::Fma: {
        const Value product = made("Mul", std::span(args).first(2), n.type);
        return made("Add", std::array{product, args[2]}, n.type);
      }
      case Op::Fmod:
        return made("Mod", args, n.type, {{"fmod", int64_t{1}}});
      case Op::Trunc: {
        if (!expr::is_floating(n.type)) return args[0];
        const Value whole = made("Floor", std::array{made("Abs", args, n.type)}, n.type);
        return made("Mul", std::array{whole, made("Sign", args, n.type)}, n.type);
      }
      case Op::Cast:
        return cast(args[0], n.type);
      case Op::RoundTo: {
        const auto dtype = static_cast<DType>(n.bits);
        const Name rounded = s_.cast(args[0].name, expr::dtype(args[0].type), dtype);
        return {s_.cast(rounded, dtype, expr::dtype(n.type)), args[0].sizes, n.type};
      }
      case Op::Length: {
        int64_t length = 1;
        for (size_t d = 0; d < over_.size(); ++d) length *= over_[d] ? sizes_[d] : 1;
        return {s_.size(length), {}, Type::I64};
      }
      case Op::Reduce:
        return reduce(static_cast<ReduceKind>(n.bits), args[0], n.type);
      default:
        break;
    }
    const bool rounds = n.op == Op::Floor || n.op == Op::Ceil || n.op == Op::Round;
    if (rounds && !expr::is_floating(n.type)) return args[0];
    const std::string_view op = op_of(n.op, args.empty() || args[0].type == Type::Mask);
    if (op.empty()) throw Unsaid{std::string("it needs ") + std::string(expr::info(n.op).name)};
    return made(op, args, n.type);
  }
  Value not_of(const Value& v) { return made("Not", std::span(&v, 1), Type::Mask); }

  Value call(uint16_t function, std::span<const Value> args, Type type) {
    const expr::Function& f = expr::functions()[function];
    const Type own = args[0].type;
    const auto row = std::ranges::find(kFunctions, f.name, &FunctionRow::name);
    if (row == std::end(kFunctions) || (!row->text.empty() && !expr::is_floating(own)))
      return write(expr::definition(function, own), args, {})[0];
    if (!row->op.empty()) return made(row->op, args, type);
    expr::Builder g;
    std::vector<expr::Symbol> symbols;
    for (size_t i = 0; i < args.size(); ++i) symbols.push_back({std::string(1, static_cast<char>('x' + i))});
    for (const expr::Symbol& symbol : symbols) (void)g.symbol(symbol.name);
    const expr::NodeId root = expr::parse(g, row->text, symbols);
    const expr::ExpressionPtr typed = expr::instantiate(*g.finish({root}), {.compute = own});
    return write(*typed, args, {})[0];
  }

  /// Values of rows keep the dimensions of the loop, those of the row with size 1.
  Value reduce(ReduceKind kind, Value x, Type type) {
    x.name = s_.expand(x.name, x.sizes, sizes_);  // an operand counts as often as the row is long
    Dims sizes = sizes_;
    std::vector<int64_t> axes;
    for (size_t d = 0; d < over_.size(); ++d) {
      if (!over_[d]) continue;
      sizes[d] = 1;
      axes.push_back(static_cast<int64_t>(d));
    }
    const auto of = [&](std::string_view op, const Name& from) {
      return axes.empty() ? from : s_.node(op, {from, s_.ints(axes)}, {{"keepdims", int64_t{1}}});
    };
    switch (kind) {
      case ReduceKind::Sum:
        return {of("ReduceSum", x.name), sizes, type};
      case ReduceKind::Prod:
        return {of("ReduceProd", x.name), sizes, type};
      case ReduceKind::Max:
        return {of("ReduceMax", x.name), sizes, type};
      case ReduceKind::Min:
        return {of("ReduceMin", x.name), sizes, type};
      case ReduceKind::Any:
      case ReduceKind::All: {
        const Name numbers = s_.cast(x.name, kBool, kInt32);
        return {s_.cast(of(kind == ReduceKind::Any ? "ReduceMax" : "ReduceMin", numbers), kInt32, kBool),
                sizes, Type::Mask};
      }
      case ReduceKind::ArgMax:
      case ReduceKind::ArgMin:
        return place(kind, x, axes, sizes);
      default:
        throw Unsaid{"it needs a reduction that ONNX does not have"};
    }
  }
  Value place(ReduceKind kind, const Value& x, const std::vector<int64_t>& axes, const Dims& sizes) {
    const char* const op = kind == ReduceKind::ArgMax ? "ArgMax" : "ArgMin";
    if (axes.size() == 1)
      return {s_.node(op, {x.name}, {{"axis", axes[0]}, {"keepdims", int64_t{1}}}), sizes, Type::I64};
    if (axes.size() != sizes_.size()) throw Unsaid{"it looks for a place over some of several dimensions"};
    int64_t count = 1;
    for (const int64_t size : sizes_) count *= size;
    const Dims flat{count}, one{1};
    const Name found =
        s_.node(op, {s_.reshape(x.name, sizes_, flat)}, {{"axis", int64_t{0}}, {"keepdims", int64_t{1}}});
    return {s_.reshape(found, one, sizes), sizes, Type::I64};
  }

  Saver& s_;
  const Dims &sizes_, &over_;  // of the loop; empty for expressions without rows
};

}  // namespace

void Saver::add_expression(const graph::Node& node, const graph::LoweredCall& call) {
  const expr::Expression& e = *call.expression;
  const auto uses = graph_.uses(node);
  const auto defs = graph_.defs(node);
  SavedCall arguments(*this, node);
  std::vector<Value> inputs;
  for (size_t i = 0; i < e.num_inputs; ++i) {
    const expr::Slot& slot = e.inputs()[i];
    if (slot.part != expr::Part::Whole) throw Unsaid{"ONNX does not compute with complex numbers"};
    const graph::Use& use = uses[call.inputs[i]];
    const graph::Geometry& g = graph_.geometry(use.geometry);
    Value v{read(use.value, g), g.sizes};
    if (!call.over.empty() && !varies_along(slot.rank) && g.sizes.size() < call.over.size()) {
      for (size_t d = 0; d < call.over.size(); ++d)
        if (call.over[d]) v.sizes.insert(d, 1);
      v.name = reshape(v.name, g.sizes, v.sizes);
    }
    // Elements are loaded as what is computed with.
    v.type = slot.node == expr::kNoNode ? expr::carrier(g.dtype) : e[slot.node].type;
    v.name = cast(v.name, g.dtype, expr::dtype(v.type));
    inputs.push_back(std::move(v));
  }
  std::vector<Scalar> numbers;
  for (size_t i = 0; i < e.num_numbers; ++i) {
    const graph::LoweredArgument& from = call.numbers[i];
    const Scalar given = from.argument == graph::kNone ? from.constant : arguments.number(from.argument);
    uint64_t bits = 0;
    put_number(bits, from.rule, given, node.op.schema().name.c_str());
    const expr::NodeId at = e.numbers()[i].node;
    numbers.push_back(at == expr::kNoNode ? Scalar(0) : scalar_of(bits, e[at].type));
  }
  const Dims sizes = call.over.empty() ? Dims{} : call.sizes;
  ExpressionWriter writer(*this, sizes, call.over);
  const std::vector<Value> outputs = writer.write(e, inputs, numbers);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const graph::Def& def = defs[call.outputs[i]];
    const graph::Geometry& g = graph_.geometry(def.geometry);
    Value v = outputs[i];
    v.name = cast(v.name, expr::dtype(v.type), g.dtype);
    if (v.sizes.size() > g.sizes.size())  // a value of rows, without their dimensions
      v.name = reshape(v.name, v.sizes, g.sizes);
    else
      v.name = expand(v.name, v.sizes, g.sizes);
    write(def, v.name);
  }
}

}  // namespace tenon::onnx
