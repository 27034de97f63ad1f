#include "backends/cpu/ops/recurrent_cells.h"

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/core/error.h"
#include "tenon/expr/expr.h"
#include "tenon/expr/instantiate.h"

namespace tenon::cpu {
namespace {

/// Names of inputs, definitions, and outputs. x are products with the input, m with the state, b biases;
/// h and c are states before the step, gh and gc the gradients by those after it, go by the output.
struct CellText {
  std::string_view inputs, definitions, outputs;
};

constexpr std::string_view kRnnInputs = "x m b";
constexpr std::string_view kLstmInputs = "xi xf xg xo mi mf mg mo bi bf bg bo c";
constexpr std::string_view kOnnxLstmInputs = "xi xo xf xg mi mo mf mg bi bo bf bg c";
constexpr std::string_view kLstmStep =
    "let i = sigmoid(xi + (mi + bi)); let f = sigmoid(xf + (mf + bf)); let g = tanh(xg + (mg + bg)); "
    "let o = sigmoid(xo + (mo + bo)); "
    "let d = f * c + i * g;";
constexpr std::string_view kGruInputs = "xr xz xn mr mz mn br bz bn h";
constexpr std::string_view kOnnxGruInputs = "xz xr xn mz mr mn bz br bn h";
constexpr std::string_view kGruStep =
    "let r = sigmoid(xr + (mr + br)); let z = sigmoid(xz + (mz + bz)); let m = mn + bn; "
    "let n = tanh(xn + r * m);";

CellText text_of(ops::Cell cell, bool onnx, CellPart part) {
  if (part == CellPart::Sum) return {"go gh", "", "go + gh"};
  if (part == CellPart::Unscaled) return {"o c", "", "o * tanh(c)"};
  const bool gradient = part == CellPart::Gradient, kept = part == CellPart::KeptStep;
  switch (cell) {
    case ops::Cell::Relu:
      if (gradient) return {"h go gh", "", "where(h <= 0, 0, go + gh)"};
      return {kRnnInputs, "", "relu(x + (m + b))"};
    case ops::Cell::Tanh:
      if (gradient) return {"h go gh", "", "(go + gh) * (1 - h * h)"};
      return {kRnnInputs, "", "tanh(x + (m + b))"};
    case ops::Cell::Lstm:
      if (gradient) {
        return {"i f g o d c go gh gc", "let t = tanh(d); let s = go + gh; let e = gc + s * o * (1 - t * t);",
                onnx
                    ? "e * g * (i * (1 - i)), s * t * (o * (1 - o)), e * c * (f * (1 - f)), e * i * (1 - g * "
                      "g), e * f"
                    : "e * g * (i * (1 - i)), e * c * (f * (1 - f)), e * i * (1 - g * g), s * t * (o * (1 - "
                      "o)), e * f"};
      }
      return {onnx ? kOnnxLstmInputs : kLstmInputs, kLstmStep,
              kept ? "o * tanh(d), d, i, f, g, o, d" : "o * tanh(d), d"};
    case ops::Cell::Gru:
      if (gradient) {
        return {"r z n m h go gh",
                "let s = go + gh; let e = s * (1 - z) * (1 - n * n); let a = e * m * (r * (1 - r)); "
                "let b = s * (h - n) * (z * (1 - z));",
                onnx ? "b, a, e, b, a, e * r, s * z" : "a, b, e, a, b, e * r, s * z"};
      }
      return {onnx ? kOnnxGruInputs : kGruInputs, kGruStep,
              kept ? "n + z * (h - n), r, z, n, m" : "n + z * (h - n)"};
  }
  return {};
}

/// The next of a list's parts, and the rest; commas inside parentheses separate nothing here.
std::string_view take_part(std::string_view& list, char separator) {
  int depth = 0;
  size_t end = 0;
  for (; end < list.size() && (depth > 0 || list[end] != separator); ++end)
    depth += list[end] == '(' ? 1 : list[end] == ')' ? -1 : 0;
  const std::string_view part = list.substr(0, end);
  list.remove_prefix(std::min(list.size(), end + 1));
  return part;
}

std::unique_ptr<const HostProgram> compile(const CellText& text, DType compute) {
  expr::Builder g;
  std::vector<expr::Symbol> symbols;
  for (std::string_view rest = text.inputs; !rest.empty();)
    symbols.push_back({std::string(take_part(rest, ' ')), expr::SymbolKind::Tensor});
  // In the order of the slots, which no use decides.
  for (const expr::Symbol& s : symbols) g.symbol(s.name, s.kind);
  std::vector<expr::NodeId> roots;
  for (std::string_view rest = text.outputs; !rest.empty();) {
    const std::string whole = std::string(text.definitions) + std::string(take_part(rest, ','));
    roots.push_back(expr::parse(g, whole, symbols));
  }
  const expr::Type type = compute == DType::Float64 ? expr::Type::F64 : expr::Type::F32;
  return kHost.compile(*expr::instantiate(*g.finish(roots), {.compute = type}), {});
}

}  // namespace

const HostProgram& cell_program(ops::Cell cell, bool onnx_order, CellPart part, DType compute) {
  struct Place {
    std::once_flag made;
    std::unique_ptr<const HostProgram> program;
  };
  static std::array<Place, 2 * 4 * 5 * 2> places;
  const size_t order = static_cast<size_t>(cell) + (onnx_order ? 4 : 0);
  const size_t at = (order * 5 + static_cast<size_t>(part)) * 2 + (compute == DType::Float64);
  Place& place = places[at];
  std::call_once(place.made, [&] { place.program = compile(text_of(cell, onnx_order, part), compute); });
  return *place.program;
}

}  // namespace tenon::cpu
