// RNN, LSTM and GRU: by Tenon's operator for a direction of a layer where they are as usual, else step by
// step.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>

#include "tenon/core/thread_state.h"
#include "tenon/generated/activation/functions.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/recurrent/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"
#include "tenon/ops/recurrent/geometry.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;
using ops::Cell;

/// An activation, and whether it is the operator's usual one.
struct Activation {
  std::function<Tensor(const Tensor&)> compute;
  bool is_usual = true;
};

/// Numbers of an attribute, which the activations that need one take in turn.
struct Numbers {
  std::vector<double> all;
  size_t next = 0;

  double take(double otherwise) { return next < all.size() ? all[next++] : otherwise; }
};

Activation activation_of(N& n, std::string name, std::string_view usual, Numbers& alphas, Numbers& betas) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto make = [&](auto f) { return Activation{f, name == usual}; };
  if (name == "tanh") return make([](const Tensor& x) { return tanh(x); });
  if (name == "sigmoid") return make([](const Tensor& x) { return sigmoid(x); });
  if (name == "relu") return make([](const Tensor& x) { return relu(x); });
  if (name == "softplus") return make([](const Tensor& x) { return softplus(x); });
  if (name == "softsign") return make([](const Tensor& x) { return x / (abs(x) + Scalar(1)); });
  const bool is_affine = name == "affine";
  if (is_affine || name == "scaledtanh") {
    const double a = alphas.take(1), b = betas.take(is_affine ? 0 : 1);
    if (is_affine) return make([=](const Tensor& x) { return x * Scalar(a) + Scalar(b); });
    return make([=](const Tensor& x) { return tanh(x * Scalar(b)) * Scalar(a); });
  }
  if (name == "leakyrelu") {
    const double a = alphas.take(0.01);
    return make([=](const Tensor& x) { return leaky_relu(x, a); });
  }
  if (name == "thresholdedrelu") {
    const double a = alphas.take(1);
    return make([=](const Tensor& x) { return threshold(x, a, 0); });
  }
  if (name == "elu") {
    const double a = alphas.take(1);
    return make([=](const Tensor& x) { return elu(x, a); });
  }
  if (name == "hardsigmoid") {
    const double a = alphas.take(0.2), b = betas.take(0.5);
    return make([=](const Tensor& x) { return clamp(x * Scalar(a) + Scalar(b), Scalar(0), Scalar(1)); });
  }
  n.refuse(ErrorKind::NotImplemented, fmt::format("the activation '{}'", name));
}

/// The weights of a direction, and its first states. Absent ones are undefined.
struct Direction {
  Tensor w, r, wb, rb, h, c, peepholes;
  /// Of weights of 8 bits: what products with them are multiplied by, and what they count from.
  Tensor w_scale, r_scale, w_zero, r_zero;
  std::span<const Activation> activations;
  bool reverse = false;
};
struct States {
  Tensor all, h, c;
};

/// What the directions of a node share.
struct Layer {
  Cell cell;
  Tensor x;        ///< [steps, batch, size]
  Tensor lengths;  ///< [batch, 1], unless all sequences have all steps.
  double clip = 0;
  bool input_forget = false;
  bool reset_after = false;  ///< GRU's r multiplies the product with the state.
  /// What replaces an input of a product; nothing as a rule.
  Tensor (*replace)(const Tensor&) = nullptr;

  int64_t gates() const { return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1; }
};

Tensor input_of(const Layer& a, const Tensor& x) { return a.replace ? a.replace(x) : x; }
Tensor scaled(const Tensor& products, const Tensor& scale) {
  return scale.defined() ? products * scale : products;
}
Tensor clipped(const Layer& a, const Tensor& x) {
  return a.clip > 0 ? clamp(x, Scalar(-a.clip), Scalar(a.clip)) : x;
}

States run_at_once(const Layer& a, const Direction& d) {
  const bool gru = a.cell == Cell::Gru;
  // The standard orders gates otherwise than PyTorch does.
  const int64_t cell = static_cast<int64_t>(a.cell) + (a.gates() > 1 ? 2 : 0);
  const Tensor products = linear(a.x, d.w, gru ? d.wb : Tensor());
  const Tensor bias = gru || !d.wb.defined() ? d.rb : d.wb + d.rb;
  bool keep = false;
  for (const Tensor* t : std::initializer_list<const Tensor*>{&products, &d.h, &d.c, &d.r, &bias})
    keep = keep || (thread_state.grad_enabled && t->defined() && t->requires_grad());
  auto [all, h, c, kept] = _recurrence(products, d.h, d.c, d.r, bias, {}, {}, cell, d.reverse, keep);
  return {all, h, c};
}

/// Real numbers as uint8: 256 steps from the least of them, or 0, to the largest, as DynamicQuantizeLinear
/// does.
struct Places {
  Tensor values, zero, scale;  ///< The first two in float32.
};
Places places_of(const Tensor& x) {
  const Tensor low = clamp(amin(x), std::nullopt, Scalar(0)), high = clamp(amax(x), Scalar(0));
  const Tensor range = high - low;
  const Tensor scale = where(range == Scalar(0), Scalar(1), range / Scalar(255));
  const Tensor zero = clamp(round(-low / scale), Scalar(0), Scalar(255));
  return {clamp(round(x / scale) + zero, Scalar(0), Scalar(255)), zero, scale};
}
Tensor quantized(const Tensor& x) {
  const Places p = places_of(x);
  return (p.values - p.zero) * p.scale;
}

/// LSTM with weights of 8 bits, as usual otherwise.
States run_int8(const Layer& a, const Direction& d) {
  const auto packed = [](const Tensor& weight, const Tensor& zero) {
    return _int8_pack(transpose(weight, 0, 1), zero);
  };
  const int64_t steps = a.x.sizes()[0], batch = a.x.sizes()[1], gates = d.w.sizes()[0];
  const Places x = places_of(a.x);
  const Tensor sums = _int8_product(x.values.to(kUInt8).reshape({steps * batch, a.x.sizes()[2]}),
                                    packed(d.w, d.w_zero), gates, x.zero.to(kUInt8));
  const Tensor products = sums.to(kFloat32) * (x.scale * d.w_scale);
  auto [all, h, c] = _int8_lstm(products.reshape({steps, batch, gates}), d.h, d.c, packed(d.r, d.r_zero),
                                d.r_scale, d.wb.defined() ? d.wb + d.rb : Tensor(), d.reverse);
  return {all, h, c};
}

/// The new states of a step, whose product with the input is `x`.
std::pair<Tensor, Tensor> next_states(const Layer& a, const Direction& d, const Tensor& x, const Tensor& h,
                                      const Tensor& c) {
  const auto f = [&](size_t i, const Tensor& t) { return d.activations[i].compute(clipped(a, t)); };
  const Tensor state = input_of(a, h);
  if (a.cell == Cell::Gru) {
    const std::vector<Tensor> xs = chunk(x, 3, 1), rs = chunk(d.r, 3, 0);
    const auto gate = [&](size_t i) { return f(0, xs[i] + linear(state, rs[i])); };
    const std::vector<Tensor> biases = d.rb.defined() ? chunk(d.rb, 3, 0) : std::vector<Tensor>(3);
    const Tensor z = gate(0), r = gate(1);
    const Tensor own =
        a.reset_after ? r * linear(state, rs[2], biases[2]) : linear(r * state, rs[2], biases[2]);
    return {f(1, xs[2] + own) * (Scalar(1) - z) + z * h, c};
  }
  const Tensor sums = x + scaled(linear(state, d.r), d.r_scale);
  if (a.cell != Cell::Lstm) return {f(0, sums), c};
  const std::vector<Tensor> gates = chunk(sums, 4, 1);
  const std::vector<Tensor> peepholes =
      d.peepholes.defined() ? chunk(d.peepholes, 3, 0) : std::vector<Tensor>(3);
  const auto gate = [&](size_t i, const Tensor& cells) {
    const Tensor& hole = peepholes[i < 3 ? i : 0];
    return f(0, hole.defined() ? gates[i] + hole * cells : gates[i]);
  };
  const Tensor in = gate(0, c), forget = a.input_forget ? Scalar(1) - in : gate(2, c);
  const Tensor cells = forget * c + in * f(1, gates[3]);
  // What an LSTM's last activation takes is not clipped, as in other runtimes.
  return {gate(1, cells) * d.activations[2].compute(cells), cells};
}

/// A weight as real numbers, less the scale of one of 8 bits.
Tensor real_weight(const Tensor& weight, const Tensor& scale, const Tensor& zero) {
  if (!scale.defined()) return weight;
  const Tensor values = weight.to(scale.dtype());
  return zero.defined() ? values - unsqueeze(zero.to(scale.dtype()), 1) : values;
}

States run_by_steps(const Layer& a, Direction d) {
  d.w = real_weight(d.w, d.w_scale, d.w_zero);
  d.r = real_weight(d.r, d.r_scale, d.r_zero);
  Tensor bias = d.wb;
  if (d.wb.defined()) {
    Tensor more = d.rb;
    // GRU's last bias may be multiplied by r.
    if (a.cell == Cell::Gru) {
      const int64_t hidden = more.sizes()[0] / 3;
      more = cat(std::vector{slice(more, 0, 0, 2 * hidden), zeros_like(slice(more, 0, 2 * hidden))}, 0);
    }
    bias = bias + more;
  }
  Tensor products = scaled(linear(input_of(a, a.x), d.w, d.w_scale.defined() ? Tensor() : bias), d.w_scale);
  if (d.w_scale.defined() && bias.defined()) products = products + bias;
  const int64_t steps = a.x.sizes()[0];
  std::vector<Tensor> all(static_cast<size_t>(steps));
  Tensor h = d.h, c = d.c;
  for (int64_t k = 0; k < steps; ++k) {
    const int64_t t = d.reverse ? steps - 1 - k : k;
    auto [next_h, next_c] = next_states(a, d, select(products, 0, t), h, c);
    Tensor& out = all[static_cast<size_t>(t)];
    if (a.lengths.defined()) {
      const Tensor has_step = a.lengths > Scalar(t);
      out = where(has_step, next_h, Scalar(0));
      next_h = where(has_step, next_h, h);
      if (c.defined()) next_c = where(has_step, next_c, c);
    } else {
      out = next_h;
    }
    h = next_h;
    c = next_c;
  }
  return {stack(all, 0), h, c};
}

std::span<const std::string_view> usual_activations(Cell cell) {
  static constexpr std::string_view kAll[] = {"relu", "sigmoid", "tanh", "tanh"};
  const std::span all(kAll);
  if (cell == Cell::Lstm) return all.subspan(1);
  return cell == Cell::Gru ? all.subspan(1, 2) : all.subspan(cell == Cell::Relu ? 0 : 3, 1);
}

/// Of weights of 8 bits: [directions, 1], or [directions, gates * hidden].
struct Scales {
  Tensor w, r, w_zero, r_zero;
};

/// Runs the node. The weights are those with the input and with the state, [directions, gates * hidden,
/// size].
void run(N& n, Layer a, const Tensor& w, const Tensor& r, const Scales& scales = {}) {
  const bool lstm = a.cell == Cell::Lstm, batch_first = n.flag("layout", false);
  const auto turned = [&](const Tensor& t) { return batch_first && t.defined() ? transpose(t, 0, 1) : t; };
  const std::string_view direction = n.text("direction", "forward");
  TENON_NODE_CHECK(n, direction == "forward" || direction == "reverse" || direction == "bidirectional", Value,
                   fmt::format("attribute `direction` is '{}'", direction));
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  TENON_NODE_CHECK(n, n.tensor(0).sizes().size() == 3 && w.sizes().size() == 3 && r.sizes().size() == 3,
                   Shape,
                   fmt::format("expected 3 dimensions of the input and of both weights, got {}, {} and {}",
                               to_string(n.tensor(0).sizes()), to_string(w.sizes()), to_string(r.sizes())));
  TENON_NODE_CHECK(n, w.sizes()[0] == directions && r.sizes()[0] == directions, Shape,
                   fmt::format("weights {} and {} of {} directions", to_string(w.sizes()),
                               to_string(r.sizes()), directions));
  a.x = turned(n.tensor(0));
  const int64_t steps = a.x.sizes()[0], batch = a.x.sizes()[1], hidden = r.sizes()[2];
  const TensorOptions options = options_like(a.x);
  a.clip = n.number("clip", 0);
  a.input_forget = lstm && n.flag("input_forget", false);
  if (n.has(4)) {
    const Dims lengths = n.ints(4);
    if (std::ranges::any_of(lengths, [&](int64_t length) { return length != steps; }))
      a.lengths = unsqueeze(n.tensor(4), 1);
  }
  const std::span<const std::string_view> usual = usual_activations(a.cell);
  std::vector<std::string> names = n.texts("activations");
  if (names.empty())
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), usual.begin(), usual.end());
  TENON_NODE_CHECK(n, names.size() == usual.size() * static_cast<size_t>(directions), Value,
                   fmt::format("attribute `activations` has {} names, expected {}", names.size(),
                               usual.size() * static_cast<size_t>(directions)));
  Numbers alphas{n.numbers("activation_alpha")}, betas{n.numbers("activation_beta")};
  std::vector<Activation> activations;
  for (size_t i = 0; i < names.size(); ++i)
    activations.push_back(activation_of(n, names[i], usual[i % usual.size()], alphas, betas));
  const bool is_usual = a.clip == 0 && !a.input_forget && !a.lengths.defined() && !n.has(7) && steps > 0 &&
                        (a.cell != Cell::Gru || a.reset_after) &&
                        std::ranges::all_of(activations, [](const Activation& f) { return f.is_usual; });
  const Tensor b = n.optional(3), h = turned(n.optional(5)), c = lstm ? turned(n.optional(6)) : Tensor(),
               holes = lstm ? n.optional(7) : Tensor();
  TENON_NODE_CHECK(n, !b.defined() || (b.sizes().size() == 2 && b.sizes()[1] == 2 * w.sizes()[1]), Shape,
                   fmt::format("weights {} and a bias {}", to_string(w.sizes()), to_string(b.sizes())));
  std::vector<Tensor> all, hs, cs;
  for (int64_t i = 0; i < directions; ++i) {
    const auto part = [&](const Tensor& t) { return t.defined() ? select(t, 0, i) : t; };
    const auto state = [&](const Tensor& t) {
      return t.defined() ? part(t) : zeros({batch, hidden}, options);
    };
    Direction d;
    d.w = part(w);
    d.r = part(r);
    d.w_scale = part(scales.w);
    d.r_scale = part(scales.r);
    d.w_zero = part(scales.w_zero);
    d.r_zero = part(scales.r_zero);
    if (b.defined()) {
      const std::vector<Tensor> biases = chunk(part(b), 2, 0);
      d.wb = biases[0];
      d.rb = biases[1];
    }
    d.h = state(h);
    if (lstm) d.c = state(c);
    d.peepholes = part(holes);
    d.activations = std::span(activations).subspan(static_cast<size_t>(i) * usual.size(), usual.size());
    d.reverse = i == 1 || direction == "reverse";
    States out;
    if (is_usual && a.replace && a.x.dtype() == kFloat32) {
      out = run_int8(a, d);
    } else if (is_usual && !a.replace) {
      out = run_at_once(a, d);
    } else if (steps > 0) {
      out = run_by_steps(a, d);
    } else {
      out = {zeros({0, batch, hidden}, options), d.h, d.c};
    }
    all.push_back(out.all);
    hs.push_back(out.h);
    cs.push_back(out.c);
  }
  const Tensor y = stack(all, 1);  // [steps, directions, batch, hidden]
  n.set(0, batch_first ? permute(y, {2, 0, 1, 3}) : y);
  if (n.wants(1)) n.set(1, turned(stack(hs, 0)));
  if (n.wants(2) && lstm) n.set(2, turned(stack(cs, 0)));
}

void rnn(N& n) {
  const std::vector<std::string> names = n.texts("activations");
  run(n, {.cell = !names.empty() && names[0] == "Relu" ? Cell::Relu : Cell::Tanh}, n.tensor(1), n.tensor(2));
}
void lstm(N& n) { run(n, {.cell = Cell::Lstm}, n.tensor(1), n.tensor(2)); }
void gru(N& n) {
  run(n, {.cell = Cell::Gru, .reset_after = n.flag("linear_before_reset", false)}, n.tensor(1), n.tensor(2));
}

/// LSTM with weights of 8 bits, [directions, size, 4 * hidden], and inputs of products that are quantized.
void dynamic_quantize_lstm(N& n) {
  const int64_t directions = n.tensor(1).sizes().empty() ? 1 : n.tensor(1).sizes()[0];
  const auto listed = [&](size_t i) { return n.has(i) ? n.tensor(i).reshape({directions, -1}) : Tensor(); };
  run(n, {.cell = Cell::Lstm, .replace = quantized}, transpose(n.tensor(1), 1, 2),
      transpose(n.tensor(2), 1, 2), {listed(8), listed(10), listed(9), listed(11)});
}

constexpr auto kRecurrentRows = std::to_array<Row>({
    {"DynamicQuantizeLSTM", 1, dynamic_quantize_lstm, "com.microsoft"},
    {"GRU", 7, gru},
    {"LSTM", 7, lstm},
    {"RNN", 7, rnn},
});

}  // namespace

std::span<const Row> recurrent_rows() noexcept { return kRecurrentRows; }

}  // namespace tenon::onnx
