// A derivative is compared with the slope of its function before anything is generated from it.
#include <fmt/format.h>

#include <cmath>

#include "tenon/expr/reference.h"
#include "tools/opgen/pointwise_forms.h"

namespace tenon::opgen {

namespace {

constexpr double kPoints[] = {-100, -10, -1, -0.5, 0.5, 1, 10, 100};
// What the other operands are meanwhile: no two equal, none at a kink.
constexpr double kOthers[][4] = {{0.7, 1.3, 2.25, 0.3}, {-1.7, 3.5, -0.6, 1.9}};

double value(const PointwiseForm& f, const std::vector<expr::NamedValue>& at) {
  return expr::evaluate(f.graph, f.root(), at);
}

// The same with every node rounded to float32, whose range an intermediate value may leave long before
// float64's.
double value_f32(const PointwiseForm& f, const std::vector<expr::NamedValue>& at) {
  std::vector<double> values(f.graph.size());
  for (expr::NodeId id = 0; id <= f.root(); ++id) {
    if (!expr::uses(f.graph, f.root(), id)) continue;
    double args[3] = {};
    for (int i = 0; i < f.graph[id].arity; ++i) args[i] = values[f.graph[id].args[i]];
    if (f.graph.is_symbol(id)) {
      for (const expr::NamedValue& v : at) {
        if (v.name == f.graph.symbol_of(id).name) values[id] = v.value;
      }
    } else {
      values[id] = expr::evaluate_node(f.graph, id, std::span<const double>(args, f.graph[id].arity));
    }
    values[id] = static_cast<float>(values[id]);
  }
  return values[f.root()];
}

// Richardson's extrapolation of two central differences; NaN where the two disagree: a kink or a jump is
// near.
double slope(const PointwiseForm& f, std::vector<expr::NamedValue> at, size_t operand) {
  const double x = at[operand].value;
  const double h = 1e-4 * std::max(1.0, std::abs(x));
  const auto central = [&](double step) {
    at[operand].value = x + step;
    const double up = value(f, at);
    at[operand].value = x - step;
    const double down = value(f, at);
    return (up - down) / (2 * step);
  };
  const double coarse = central(h), fine = central(h / 2);
  if (!(std::abs(coarse - fine) <= 1e-4 * std::max(1.0, std::abs(fine)))) return NAN;
  return (4 * fine - coarse) / 3;
}

void check_at(const PointwiseForm& forward, size_t operand, const PointwiseGradient& gradient,
              const std::vector<expr::NamedValue>& at) {
  const double y = value(forward, at);
  if (!std::isfinite(y)) return;
  const double expected = slope(forward, at, operand);
  if (!std::isfinite(expected)) return;

  std::vector<expr::NamedValue> given = at;
  given.push_back({"grad", 1.0});
  given.push_back({"result", y});
  const double got = value(gradient.form, given);
  const double error = std::abs(got - expected) / std::max(1.0, std::abs(expected));
  const bool in_f32 = std::isfinite(static_cast<float>(expected)) && std::isfinite(static_cast<float>(y));
  const bool finite = !in_f32 || std::isfinite(value_f32(gradient.form, given));
  if (error <= 1e-5 && finite) return;
  std::string point;
  for (const expr::NamedValue& v : at)
    point += fmt::format("{}{} = {}", point.empty() ? "" : ", ", v.name, v.value);
  throw_error(ErrorKind::Value,
              fmt::format("the derivative by `{}` is {}{} at {}, where the slope is {}\n  {}",
                          forward.tensors[operand].name, finite ? got : value_f32(gradient.form, given),
                          finite ? "" : " in float32", point, expected, gradient.form.text));
}

}  // namespace

void check_gradient(const PointwiseForm& forward, size_t operand, const PointwiseGradient& gradient) {
  for (const auto& others : kOthers) {
    for (const double x : kPoints) {
      std::vector<expr::NamedValue> at;
      size_t next = 0;
      for (size_t i = 0; i < forward.tensors.size(); ++i) {
        const bool mask = forward.tensors[i].kind == expr::SymbolKind::MaskTensor;
        const double other = mask ? (&others != &kOthers[0]) : others[next++ % 4];
        at.push_back({forward.tensors[i].name, i == operand ? x : other});
      }
      for (const std::string& s : forward.scalars) at.push_back({s, others[next++ % 4]});
      check_at(forward, operand, gradient, at);
    }
  }
}

}  // namespace tenon::opgen
