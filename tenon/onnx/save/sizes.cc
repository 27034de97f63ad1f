// Dynamic axes: traces of one function for several sizes are compared; the numbers that differ are written as
// computed from the sizes of inputs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tenon/generated/factory/functions.h"
#include "tenon/onnx/save/saver.h"
#include "tenon/onnx/types.h"

namespace tenon::onnx {
namespace {

/// A size that runs choose: its name, where it is found, and what it is in each trace.
struct Symbol {
  std::string name;
  size_t input;
  int64_t axis;
  std::vector<int64_t> sizes;
};

std::vector<Symbol> symbols_of(std::span<const Inference* const> functions, const SaveOptions& options) {
  std::vector<Symbol> out;
  for (const auto& axis : options.dynamic_axes) {
    Symbol symbol{axis.name, axis.input, axis.axis, {}};
    for (const Inference* const f : functions)
      symbol.sizes.push_back(f->inputs()[axis.input].sizes[static_cast<size_t>(axis.axis)]);
    const auto known = std::ranges::find(out, axis.name, &Symbol::name);
    if (known == out.end()) {
      out.push_back(std::move(symbol));
    } else if (known->sizes != symbol.sizes) {
      throw_error(ErrorKind::Value,
                  fmt::format("onnx.save: dynamic axis '{}' has size {} in one input and {} in another",
                              axis.name, known->sizes[0], symbol.sizes[0]));
    }
  }
  return out;
}

/// factor * (product of symbols) / divisor, rounded down, + addend.
struct Formula {
  std::vector<const Symbol*> symbols;
  int64_t factor = 1, divisor = 1, addend = 0;
};

bool fits(const Formula& f, std::span<const int64_t> values) {
  for (size_t t = 0; t < values.size(); ++t) {
    int64_t product = f.factor;
    for (const Symbol* s : f.symbols) product *= s->sizes[t];
    if (product / f.divisor + f.addend != values[t]) return false;
  }
  return true;
}

std::optional<Formula> formula_of(std::span<const int64_t> values, std::span<const Symbol> symbols) {
  // By one size: a straight line through two traces that differ in it.
  for (const Symbol& s : symbols) {
    size_t other = 0;
    while (other < values.size() && s.sizes[other] == s.sizes[0]) ++other;
    if (other == values.size()) continue;
    int64_t rise = values[other] - values[0], run = s.sizes[other] - s.sizes[0];
    const int64_t common = std::gcd(rise, run);
    if (common != 0) rise /= common, run /= common;
    if (run < 0) rise = -rise, run = -run;
    const int64_t start = rise * s.sizes[0];
    if (start % run != 0) continue;
    Formula f{{&s}, rise, run, values[0] - start / run};
    if (fits(f, values)) return f;
  }
  // By a product of all those that it changes with.
  Formula f;
  for (const Symbol& s : symbols) {
    for (size_t t = 1; t < values.size(); ++t) {
      const auto changes_alone = [&](const Symbol& o) { return &o == &s || o.sizes[t] == o.sizes[0]; };
      if (s.sizes[t] == s.sizes[0] || values[t] == values[0] || !std::ranges::all_of(symbols, changes_alone))
        continue;
      f.symbols.push_back(&s);
      break;
    }
  }
  int64_t product = 1;
  for (const Symbol* s : f.symbols) product *= s->sizes[0];
  const int64_t common = std::gcd(values[0], product);
  if (f.symbols.size() < 2 || common == 0) return std::nullopt;
  f.factor = values[0] / common;
  f.divisor = product / common;
  return fits(f, values) ? std::optional(f) : std::nullopt;
}

class Merger {
 public:
  Merger(std::vector<WrittenModel> traces, std::vector<Symbol> symbols)
      : traces_(std::move(traces)), symbols_(std::move(symbols)) {}

  WrittenModel merged() {
    WrittenModel& out = traces_[0];
    for (const WrittenModel& other : traces_) compare(out, other);
    for (size_t i = 0, count = out.constants.size(); i < count; ++i) merge_constant(i);
    for (size_t i = 0; i < out.sizes.size(); ++i) merge_sizes(i);
    for (size_t i = 0; i < out.outputs.size(); ++i) merge_output(i);
    computed_.insert(computed_.end(), std::make_move_iterator(expressed_.begin()),
                     std::make_move_iterator(expressed_.end()));
    out.nodes.insert(out.nodes.begin(), std::make_move_iterator(computed_.begin()),
                     std::make_move_iterator(computed_.end()));
    const auto is_replaced = [&](const auto& one) { return std::ranges::count(replaced_, one.name) > 0; };
    std::erase_if(out.sizes, is_replaced);
    std::erase_if(out.constants, is_replaced);
    for (WrittenModel::Sizes& s : constants_) out.sizes.push_back(std::move(s));
    simplify(out);
    return std::move(out);
  }

 private:
  [[noreturn]] static void refuse(const std::string& call, const std::string& what) {
    throw_error(
        ErrorKind::NotImplemented,
        fmt::format("onnx.save: in {}, {} the sizes of `dynamic_axes`; leave them out, or write the line so "
                    "that it does not",
                    call, what));
  }
  static bool same_bytes(const Tensor& a, const Tensor& b) {
    return a.dtype() == b.dtype() && std::ranges::equal(a.sizes(), b.sizes()) &&
           (a.data_ptr() == b.data_ptr() || a.nbytes() == 0 ||
            std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0);
  }
  static bool same_value(const WrittenAttribute& a, const WrittenAttribute& b) {
    const auto* const t = std::get_if<Tensor>(&a.value);
    const auto* const u = std::get_if<Tensor>(&b.value);
    if (t || u) return t && u && same_bytes(*t, *u);
    const auto with_tensor = [](const auto& x, const auto& y) {
      using X = std::decay_t<decltype(x)>;
      if constexpr (std::is_same_v<X, std::decay_t<decltype(y)>> && !std::is_same_v<X, Tensor>)
        return x == y;
      else
        return false;
    };
    return std::visit(with_tensor, a.value, b.value);
  }

  void compare(const WrittenModel& a, const WrittenModel& b) {
    for (size_t i = 0; i < std::max(a.nodes.size(), b.nodes.size()); ++i) {
      if (i >= a.nodes.size() || i >= b.nodes.size())
        refuse((i < a.nodes.size() ? a : b).nodes[i].call, "what is computed depends on");
      const WrittenNode &n = a.nodes[i], &m = b.nodes[i];
      if (n.op != m.op || n.inputs != m.inputs || n.outputs != m.outputs ||
          n.attributes.size() != m.attributes.size())
        refuse(n.call, "what is computed depends on");
      for (size_t k = 0; k < n.attributes.size(); ++k)
        if (!same_value(n.attributes[k], m.attributes[k]))
          refuse(n.call, fmt::format("attribute `{}` of {} depends on", n.attributes[k].name, n.op));
    }
  }

  /// A constant that differs: its elements are all equal, or those of an arange.
  void merge_constant(size_t i) {
    std::vector<Tensor> all;
    for (const WrittenModel& trace : traces_) all.push_back(trace.constants[i].value);
    if (std::ranges::all_of(all, [&](const Tensor& t) { return same_bytes(t, all[0]); })) return;
    const std::string name = traces_[0].constants[i].name;
    const auto& nodes = traces_[0].nodes;
    const auto user = std::ranges::find_if(
        nodes, [&](const WrittenNode& node) { return std::ranges::count(node.inputs, name) > 0; });
    if (user == nodes.end()) return;
    user_ = user->call;
    const DType dtype = all[0].dtype();
    const bool same_rank = std::ranges::all_of(all, [&](const Tensor& t) {
      return t.dtype() == dtype && t.sizes().size() == all[0].sizes().size();
    });
    std::vector<Line> lines;
    for (const Tensor& t : all)
      if (const auto line = same_rank ? line_of(t) : std::nullopt) lines.push_back(*line);
    const bool flat = std::ranges::all_of(lines, [](const Line& l) { return l.step == 0; });
    const bool together = std::ranges::all_of(lines, [&](const Line& l) { return l == lines[0]; });
    const bool whole =
        std::ranges::all_of(lines, [](const Line& l) { return l.start == std::floor(l.start); });
    if (lines.size() != all.size() ||
        !((flat && (together || whole)) || (together && all[0].sizes().size() == 1)))
      refuse(user_, fmt::format("a constant of shape {} depends on", to_string(all[0].sizes())));
    std::string value;
    if (!flat) {
      const std::string count = sizes([&](size_t t) { return all[t].sizes().to_dims(); }, true);
      value = express("Range", {scalar(0, kInt64), count, scalar(1, kInt64)});
      value = express("Cast", {value}, {{"to", *number_of(dtype)}});
      if (lines[0].step != 1) value = express("Mul", {value, scalar(lines[0].step, dtype)});
      if (lines[0].start != 0) value = express("Add", {value, scalar(lines[0].start, dtype)});
    } else if (together) {
      value = scalar(lines[0].start, dtype);
    } else {
      value = sizes([&](size_t t) { return Dims{static_cast<int64_t>(lines[t].start)}; }, true);
      value = express("Cast", {value}, {{"to", *number_of(dtype)}});
    }
    if (flat && !all[0].sizes().empty())
      value = express("Expand", {value, sizes([&](size_t t) { return all[t].sizes().to_dims(); }, false)});
    expressed_.push_back({"Identity", {value}, {name}, {}, "sizes"});
    replaced_.push_back(name);
  }
  /// Elements that begin with a number and grow by a whole one.
  struct Line {
    double start = 0, step = 0;
    bool operator==(const Line&) const = default;
  };
  static std::optional<Line> line_of(const Tensor& t) {
    if (t.numel() == 0 || !has_arithmetic(t.dtype()) || is_complex(t.dtype())) return std::nullopt;
    const Tensor values = t.to(kFloat64).reshape({-1});
    const auto* const x = static_cast<const double*>(values.data_ptr());
    const Line line{x[0], t.numel() > 1 ? x[1] - x[0] : 0};
    for (int64_t i = 0; i < t.numel(); ++i)
      if (x[i] != line.start + static_cast<double>(i) * line.step) return std::nullopt;
    return line.step == std::floor(line.step) ? std::optional(line) : std::nullopt;
  }
  std::string express(const char* op, std::vector<std::string> inputs, WrittenAttributes attributes = {}) {
    std::string name = fmt::format("expressed_{}", expressed_.size());
    expressed_.push_back({op, std::move(inputs), {name}, std::move(attributes), "sizes"});
    return name;
  }
  std::string scalar(double value, DType dtype) {
    traces_[0].constants.push_back({fmt::format("fixed_{}", traces_[0].constants.size()),
                                    full({}, Scalar(value), TensorOptions(dtype))});
    return traces_[0].constants.back().name;
  }
  /// A list that `of` gives for each trace.
  template <class Of>
  std::string sizes(const Of& of, bool is_scalar) {
    const std::string name = fmt::format("sized_{}", traces_[0].sizes.size());
    users_.emplace_back(name, user_);
    for (size_t t = 0; t < traces_.size(); ++t) {
      const Dims values = of(t);
      traces_[t].sizes.push_back({name, {values.begin(), values.end()}, is_scalar});
    }
    return name;
  }

  std::vector<int64_t> values_of(size_t list, size_t i) const {
    std::vector<int64_t> out;
    for (const WrittenModel& trace : traces_) out.push_back(trace.sizes[list].values[i]);
    return out;
  }
  static bool differ(std::span<const int64_t> values) {
    return std::ranges::count(values, values[0]) != std::ssize(values);
  }

  void merge_sizes(size_t list) {
    WrittenModel::Sizes& own = traces_[0].sizes[list];
    std::vector<size_t> differing;
    for (size_t i = 0; i < own.values.size(); ++i)
      if (differ(values_of(list, i))) differing.push_back(i);
    if (differing.empty()) return;
    if (own.is_shape && differing.size() == 1 && std::ranges::count(own.values, 0) == 0) {
      own.values[differing[0]] = -1;
      return;
    }
    std::vector<std::string> parts;
    for (size_t i = 0; i < own.values.size(); ++i) {
      const std::vector<int64_t> values = values_of(list, i);
      parts.push_back(differ(values) ? number(own.name, values) : constant({own.values[i]}));
    }
    replaced_.push_back(own.name);
    if (own.is_scalar)
      add("Squeeze", {parts[0], constant({0})}, own.name);
    else if (parts.size() == 1)
      add("Identity", {parts[0]}, own.name);
    else
      add("Concat", std::move(parts), own.name, {{"axis", int64_t{0}}});
  }

  /// The name of a list of one number.
  std::string number(const std::string& list, std::span<const int64_t> values) {
    const std::optional<Formula> f = formula_of(values, symbols_);
    if (!f) {
      const auto refuse_in = [&](const std::string& call) {
        refuse(call, fmt::format("a number ({}) follows by no simple formula from", fmt::join(values, ", ")));
      };
      for (const WrittenNode& node : traces_[0].nodes)
        if (std::ranges::count(node.inputs, list) > 0) refuse_in(node.call);
      const auto user = std::ranges::find(users_, list, &std::pair<std::string, std::string>::first);
      if (user != users_.end()) refuse_in(user->second);
      return constant({values[0]});
    }
    std::string out = size_of(*f->symbols[0]);
    for (size_t i = 1; i < f->symbols.size(); ++i) out = add("Mul", {out, size_of(*f->symbols[i])});
    if (f->factor != 1) out = add("Mul", {out, constant({f->factor})});
    if (f->divisor != 1) out = add("Div", {out, constant({f->divisor})});
    if (f->addend != 0) out = add("Add", {out, constant({f->addend})});
    return out;
  }
  std::string size_of(const Symbol& s) {
    const auto known = std::ranges::find(found_, s.name, &std::pair<std::string, std::string>::first);
    if (known != found_.end()) return known->second;
    const std::string name =
        add("Shape", {traces_[0].inputs[s.input].name}, "", {{"start", s.axis}, {"end", s.axis + 1}});
    found_.emplace_back(s.name, name);
    return name;
  }
  std::string add(const char* op, std::vector<std::string> inputs, std::string name = "",
                  WrittenAttributes attributes = {}) {
    if (name.empty()) name = fmt::format("dynamic_{}", computed_.size());
    computed_.push_back({op, std::move(inputs), {name}, std::move(attributes), "sizes"});
    return name;
  }
  std::string constant(std::vector<int64_t> values) {
    constants_.push_back({fmt::format("fixed_size_{}", constants_.size()), std::move(values)});
    return constants_.back().name;
  }

  /// Sizes of results that differ are unknown, or a dynamic axis.
  void merge_output(size_t i) {
    std::vector<Port::Dim>& shape = *traces_[0].outputs[i].shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      std::vector<int64_t> values;
      for (const WrittenModel& trace : traces_)
        values.push_back(std::get<int64_t>((*trace.outputs[i].shape)[d]));
      if (!differ(values)) continue;
      const auto symbol = std::ranges::find(symbols_, values, &Symbol::sizes);
      shape[d] = symbol == symbols_.end() ? Port::Dim() : Port::Dim(symbol->name);
    }
  }

  std::vector<WrittenModel> traces_;
  const std::vector<Symbol> symbols_;
  std::vector<WrittenNode> computed_, expressed_;  // sizes, and constants that follow from them
  std::vector<WrittenModel::Sizes> constants_;
  std::vector<std::string> replaced_;
  std::vector<std::pair<std::string, std::string>> found_;
  std::string user_;                                        // the call that uses the constant at hand
  std::vector<std::pair<std::string, std::string>> users_;  // by list
};

}  // namespace

WrittenModel merge(std::vector<WrittenModel> traces, std::span<const Inference* const> functions,
                   const SaveOptions& options) {
  std::vector<Symbol> symbols = symbols_of(functions, options);
  return Merger(std::move(traces), std::move(symbols)).merged();
}

}  // namespace tenon::onnx
