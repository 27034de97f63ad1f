// Rows of `save`: products, convolutions, pools, norms, reductions, recurrent layers, attention.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "tenon/generated/factory/functions.h"
#include "tenon/onnx/save/saver.h"
#include "tenon/ops/recurrent/geometry.h"

namespace tenon::onnx {
namespace {

using C = SavedCall;
using ops::Cell;
using Ints = std::vector<int64_t>;

/// A list that has one number for all axes, or one for each; empty: `otherwise`.
Ints per_axis(Ints list, size_t rank, const Ints& otherwise) {
  if (list.empty()) return otherwise;
  return list.size() == rank ? list : Ints(rank, list[0]);
}
Ints both_ends(const Ints& padding) {
  Ints pads = padding;
  pads.insert(pads.end(), padding.begin(), padding.end());
  return pads;
}

/// Runs `f` on a tensor with a dimension for the batch, which the file's layers need.
template <class F>
Name batched(C& c, size_t spatial, size_t result, const F& f) {
  const IntArrayRef sizes = c.sizes(0);
  if (sizes.size() != spatial + 1) return f(c.tensor(0));
  Dims with = sizes.to_dims(), out = c.result_sizes(result).to_dims();
  with.insert(0, 1);
  out.insert(0, 1);
  return c.s.reshape(f(c.s.reshape(c.tensor(0), sizes, with)), out, c.result_sizes(result));
}

// Products

void product(C& c, size_t left, const Name& bias, double alpha, double beta) {
  const auto [a, a_turned] = c.matrix(left);
  const auto [b, b_turned] = c.matrix(left + 1);
  const bool gemm = is_floating_point(c.geometry(left).dtype);
  const bool scaled = alpha != 1 || (beta != 1 && !bias.empty());
  Name out;
  if (gemm && (a_turned || b_turned || scaled || !bias.empty())) {
    WrittenAttributes attributes;
    if (a_turned) attributes.push_back({"transA", int64_t{1}});
    if (b_turned) attributes.push_back({"transB", int64_t{1}});
    if (alpha != 1) attributes.push_back({"alpha", static_cast<float>(alpha)});
    if (beta != 1) attributes.push_back({"beta", static_cast<float>(beta)});
    out = c.s.node("Gemm", {a, b, bias}, std::move(attributes));
  } else {
    if (scaled) c.refuse("ONNX does not scale products of integers");
    out = c.s.node("MatMul", {c.tensor(left), c.tensor(left + 1)});
    if (!bias.empty()) out = c.s.node("Add", {out, bias});
  }
  if (b_turned && !a_turned && !scaled)
    c.s.products.insert_or_assign(out, Saver::Product{a, b, bias, c.sizes(left).to_dims()});
  c.result(out);
}
void addmm(C& c) {
  const double beta = c.number(3).to_double();
  product(c, 1, beta == 0 ? Name() : c.tensor(0), c.number(4).to_double(), beta == 0 ? 1 : beta);
}
void mm(C& c) { product(c, 0, "", 1, 1); }
void matmul(C& c) { c.result(c.s.node("MatMul", {c.tensor(0), c.tensor(1)})); }

// Convolutions and pools

void convolution(C& c) {
  const size_t spatial = c.sizes(1).size() - 2;
  const Ints one(spatial, 1), zero(spatial, 0);
  WrittenAttributes attributes{{"strides", per_axis(c.ints(3), spatial, one)},
                               {"pads", both_ends(per_axis(c.ints(4), spatial, zero))},
                               {"dilations", per_axis(c.ints(5), spatial, one)},
                               {"group", c.integer(8)}};
  const bool transposed = c.flag(6);
  if (transposed) attributes.push_back({"output_padding", per_axis(c.ints(7), spatial, zero)});
  c.result(batched(c, spatial, 0, [&](const Name& x) {
    return c.s.node(transposed ? "ConvTranspose" : "Conv", {x, c.tensor(1), c.optional_tensor(2)},
                    attributes);
  }));
}

struct Windows {
  Ints kernel, stride, padding, dilation, pads;
  bool reaches_further = false;  // ceil_mode has a window that goes beyond the padding
};
Windows windows_of(C& c, size_t ceil_mode, bool has_dilation) {
  Windows w{.kernel = c.ints(1)};
  const size_t rank = w.kernel.size();
  w.stride = per_axis(c.ints(2), rank, w.kernel);
  w.padding = per_axis(c.ints(3), rank, Ints(rank, 0));
  w.dilation = has_dilation ? per_axis(c.ints(4), rank, Ints(rank, 1)) : Ints(rank, 1);
  w.pads = both_ends(w.padding);
  const IntArrayRef in = c.sizes(0), out = c.result_sizes();
  for (size_t i = 0; c.flag(ceil_mode) && i < rank; ++i) {
    const size_t at = in.size() - rank + i;
    const int64_t reach = (out[at] - 1) * w.stride[i] + w.dilation[i] * (w.kernel[i] - 1) + 1;
    const int64_t more = reach - in[at] - w.padding[i];
    w.reaches_further |= more > w.padding[i];
    w.pads[rank + i] = std::max(more, w.padding[i]);
  }
  return w;
}

void max_pool(C& c) {
  const Windows w = windows_of(c, 5, true);
  if (c.is_used(1)) c.refuse("its indices count from each plane, and ONNX's from the first");
  c.result(batched(c, w.kernel.size(), 0, [&](const Name& x) {
    return c.s.node(
        "MaxPool", {x},
        {{"kernel_shape", w.kernel}, {"strides", w.stride}, {"pads", w.pads}, {"dilations", w.dilation}});
  }));
}
void avg_pool(C& c) {
  const Windows w = windows_of(c, 4, false);
  const bool padded = std::ranges::count(w.padding, 0) < std::ssize(w.padding);
  if (c.has(6)) c.refuse("ONNX does not have `divisor_override`");
  if (padded && w.reaches_further) c.refuse("ONNX counts what `ceil_mode` adds to the padding");
  const int64_t counts = c.flag(5) && padded;
  c.result(batched(c, w.kernel.size(), 0, [&](const Name& x) {
    return c.s.node(
        "AveragePool", {x},
        {{"kernel_shape", w.kernel}, {"strides", w.stride}, {"pads", w.pads}, {"count_include_pad", counts}});
  }));
}
void adaptive_pool(C& c, std::string_view global, std::string_view pool) {
  const Ints out = c.ints(1);
  const size_t rank = out.size();
  const IntArrayRef in = c.sizes(0);
  const bool to_one = std::ranges::count(out, 1) == std::ssize(out);
  Ints kernel;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t size = in[in.size() - rank + i];
    if (out[i] == 0 || size % out[i] != 0)
      c.refuse(fmt::format("{} elements are not divided into {} equal parts", size, out[i]));
    kernel.push_back(size / out[i]);
  }
  if (c.is_used(1)) c.refuse("its indices count from each plane, and ONNX's from the first");
  c.result(batched(c, rank, 0, [&](const Name& x) {
    return to_one ? c.s.node(global, {x})
                  : c.s.node(pool, {x}, {{"kernel_shape", kernel}, {"strides", kernel}});
  }));
}
void adaptive_avg_pool(C& c) { adaptive_pool(c, "GlobalAveragePool", "AveragePool"); }
void adaptive_max_pool(C& c) { adaptive_pool(c, "GlobalMaxPool", "MaxPool"); }

// Norms and reductions

/// An optional tensor, or ones or zeros in its place.
Name or_filled(C& c, size_t i, IntArrayRef sizes, double value) {
  const DType dtype = c.geometry(0).dtype;
  if (!c.has(i)) return c.s.constant(full(sizes, Scalar(value), TensorOptions(dtype)));
  return c.s.cast(c.tensor(i), c.geometry(i).dtype, dtype);
}
void batch_norm(C& c) {
  const Dims channels{c.sizes(0)[1]};
  c.result(c.s.node("BatchNormalization",
                    {c.tensor(0), or_filled(c, 1, channels, 1), or_filled(c, 2, channels, 0),
                     or_filled(c, 3, channels, 0), or_filled(c, 4, channels, 1)},
                    {{"epsilon", static_cast<float>(c.number(5).to_double())}}));
}
void layer_norm(C& c) {
  const Ints shape = c.ints(1);
  const auto axis = std::ssize(c.sizes(0)) - std::ssize(shape);
  const Name bias = c.has(3) ? or_filled(c, 3, shape, 0) : Name();
  const std::vector<Name> out =
      c.s.nodes("LayerNormalization", {c.tensor(0), or_filled(c, 2, shape, 1), bias},
                {{"axis", int64_t{axis}}, {"epsilon", static_cast<float>(c.number(4).to_double())}}, 3);
  for (size_t i = 0; i < 3; ++i) c.result(out[i], i);
}
void softmax(C& c, std::string_view op) {
  const DType to = c.result_geometry().dtype;
  const Name x = c.s.cast(c.tensor(0), c.geometry(0).dtype, to);
  c.result(c.sizes(0).empty() ? c.s.node(op, {c.s.reshape(x, {}, Dims{1})}, {{"axis", int64_t{0}}})
                              : c.s.node(op, {x}, {{"axis", c.integer(1)}}));
}
void softmax(C& c) { softmax(c, "Softmax"); }
void log_softmax(C& c) { softmax(c, "LogSoftmax"); }

/// The dimensions that argument `i` lists, as none or more; all, where it is absent or empty.
Ints dims_of(C& c, size_t i) {
  const auto rank = std::ssize(c.sizes(0));
  Ints dims = c.has(i) ? c.ints(i) : Ints();
  if (dims.empty()) {
    dims.resize(static_cast<size_t>(rank));
    std::iota(dims.begin(), dims.end(), 0);
  }
  for (int64_t& d : dims) d += d < 0 ? rank : 0;
  return dims;
}
Name reduced(C& c, std::string_view op, const Name& x, const Ints& dims, bool keepdim) {
  return dims.empty() ? x : c.s.node(op, {x, c.s.ints(dims)}, {{"keepdims", int64_t{keepdim}}});
}
void logsumexp(C& c) {
  const Name x = c.s.cast(c.tensor(0), c.geometry(0).dtype, c.result_geometry().dtype);
  c.result(reduced(c, "ReduceLogSumExp", x, dims_of(c, 1), c.flag(2)));
}
void vector_norm(C& c) {
  const double order = c.number(1).to_double();
  const bool extreme = std::abs(order) == std::numeric_limits<double>::infinity();
  Name x = c.s.cast(c.tensor(0), c.geometry(0).dtype, c.result_geometry().dtype);
  if (extreme) x = c.s.node("Abs", {x});
  const std::string_view op = extreme      ? (order > 0 ? "ReduceMax" : "ReduceMin")
                              : order == 1 ? "ReduceL1"
                                           : "ReduceL2";
  if (!extreme && order != 1 && order != 2) c.refuse(fmt::format("ONNX has no norm of order {}", order));
  c.result(reduced(c, op, x, dims_of(c, 2), c.flag(3)));
}
void extremum(C& c, std::string_view reduce, std::string_view place) {
  if (c.sizes(0).empty()) c.refuse("of tensors without dimensions");
  const int64_t dim = c.integer(1) < 0 ? c.integer(1) + std::ssize(c.sizes(0)) : c.integer(1),
                keep = c.flag(2);
  const DType own = c.geometry(0).dtype, dtype = own == kBool ? kInt32 : own;
  const Name x = c.s.cast(c.tensor(0), own, dtype);
  c.result(c.s.cast(reduced(c, reduce, x, {dim}, keep != 0), dtype, own));
  c.result(c.s.node(place, {x}, {{"axis", dim}, {"keepdims", keep}}), 1);
}
void max_dim(C& c) { extremum(c, "ReduceMax", "ArgMax"); }
void min_dim(C& c) { extremum(c, "ReduceMin", "ArgMin"); }
void variance(C& c, bool root, bool with_mean) {
  const DType dtype = c.geometry(0).dtype;
  const Ints dims = dims_of(c, 1);
  const bool keepdim = c.flag(3);
  int64_t count = 1;
  for (const int64_t d : dims) count *= c.sizes(0)[static_cast<size_t>(d)];
  const double correction = c.has(2) ? c.number(2).to_double() : 1;
  const Name x = c.tensor(0), mean = reduced(c, "ReduceMean", x, dims, true);
  const Name d = c.s.node("Sub", {x, mean});
  const Name sum = reduced(c, "ReduceSum", c.s.node("Mul", {d, d}), dims, keepdim);
  const Name degrees =
      c.s.node("Sub", {c.s.cast(c.s.size(count), kInt64, dtype), c.s.number(correction, dtype)});
  Name out = c.s.node("Div", {sum, c.s.node("Max", {degrees, c.s.number(0.0, dtype)})});
  if (root) out = c.s.node("Sqrt", {out});
  c.result(out);
  if (with_mean) c.result(reduced(c, "ReduceMean", x, dims, keepdim), 1);
}
void var(C& c) { variance(c, false, false); }
void std_deviation(C& c) { variance(c, true, false); }
void var_mean(C& c) { variance(c, false, true); }
void std_mean(C& c) { variance(c, true, true); }

// Recurrent layers

/// PyTorch's gates, of [gates * hidden, ...], in the order of the standard.
Name ordered(C& c, const Name& weight, Cell cell, bool is_torch) {
  if (!is_torch || (cell != Cell::Lstm && cell != Cell::Gru)) return weight;
  const Ints order = cell == Cell::Lstm ? Ints{0, 3, 1, 2} : Ints{1, 0, 2};
  const auto gates = c.s.nodes("Split", {weight},
                               {{"axis", int64_t{0}}, {"num_outputs", int64_t(order.size())}}, order.size());
  std::vector<Name> parts;
  for (const int64_t i : order) parts.push_back(gates[static_cast<size_t>(i)]);
  return c.s.node("Concat", std::move(parts), {{"axis", int64_t{0}}});
}
void recurrence(C& c) {
  const int64_t number = c.integer(7), gated = number >= 4 ? number - 2 : number;
  const auto cell = static_cast<Cell>(gated);
  const bool is_torch = number < 4, lstm = cell == Cell::Lstm;
  if (c.has(5)) c.refuse("ONNX's LSTM has no projections");
  if (c.has(6)) c.refuse("packed sequences");
  const DType dtype = c.geometry(0).dtype;
  const Dims sizes = c.sizes(0).to_dims();  // steps, batch, gates * hidden
  const int64_t steps = sizes[0], batch = sizes[1], width = sizes[2], hidden = c.sizes(3)[1];
  // The layer's input and weights, whose product `input` is; else the identity in place of the weights.
  Name x, weight, bias;
  if (const Saver::Product* product = c.product(0)) {
    x = c.s.reshape(product->x, product->sizes, Dims{steps, batch, product->sizes[1]});
    weight = product->weight;
    bias = product->bias;
  } else {
    x = c.tensor(0);
    weight = c.s.constant(eye(width, TensorOptions(dtype)));
  }
  const auto direction = [&](const Name& t) { return c.s.node("Unsqueeze", {t, c.s.ints(0)}); };
  const auto gates = [&](const Name& t) { return ordered(c, t, cell, is_torch); };
  const Name none = c.s.constant(zeros(Dims{width}, TensorOptions(dtype)));
  const Name b = c.s.node("Concat", {gates(bias.empty() ? none : bias), gates(c.has(4) ? c.tensor(4) : none)},
                          {{"axis", int64_t{0}}});
  std::vector<Name> inputs{x,  direction(gates(weight)), direction(gates(c.tensor(3))), direction(b),
                           "", direction(c.tensor(1))};
  if (lstm) inputs.push_back(direction(c.tensor(2)));
  WrittenAttributes attributes{{"hidden_size", hidden},
                               {"direction", std::string(c.flag(8) ? "reverse" : "forward")}};
  if (cell == Cell::Gru) attributes.push_back({"linear_before_reset", int64_t{1}});
  if (cell == Cell::Relu) attributes.push_back({"activations", std::vector<std::string>{"Relu"}});
  const std::vector<Name> out = c.s.nodes(lstm                ? "LSTM"
                                          : cell == Cell::Gru ? "GRU"
                                                              : "RNN",
                                          std::move(inputs), std::move(attributes), lstm ? 3 : 2);
  c.result(c.s.node("Squeeze", {out[0], c.s.ints(1)}));
  for (size_t i = 1; i < out.size(); ++i) c.result(c.s.node("Squeeze", {out[i], c.s.ints(0)}), i);
}

// Attention

/// Heads of keys or values as often as queries need them.
Name repeated(C& c, size_t i, IntArrayRef query) {
  const IntArrayRef own = c.sizes(i);
  const size_t heads = own.size() - 3;
  if (own.size() < 3 || own[heads] == query[heads]) return c.tensor(i);
  Dims one = own.to_dims(), many = one, out = one;
  one.insert(heads + 1, 1);
  many.insert(heads + 1, query[heads] / own[heads]);
  out[heads] = query[heads];
  return c.s.reshape(c.s.expand(c.s.reshape(c.tensor(i), own, one), one, many), many, out);
}
void attention(C& c) {
  const DType dtype = c.geometry(0).dtype;
  const IntArrayRef q = c.sizes(0), k = c.sizes(1);
  const size_t n = q.size();
  const bool shares_heads = c.flag(7);
  const auto heads = [&](size_t i) { return shares_heads ? repeated(c, i, q) : c.tensor(i); };
  Ints turned(n);
  std::iota(turned.begin(), turned.end(), 0);
  std::swap(turned[n - 1], turned[n - 2]);
  const Name query = c.s.node("Mul", {c.tensor(0), c.s.number(c.number(6), dtype)});
  Name scores = c.s.node("MatMul", {query, c.s.transpose(heads(1), turned)});
  const Name low = c.s.number(-std::numeric_limits<double>::infinity(), dtype);
  if (c.flag(5)) {
    // Ones on and below the diagonal.
    const Tensor one = ones({1}, TensorOptions(kInt32));
    const Name all = c.s.node("ConstantOfShape", {c.s.ints(Dims{q[n - 2], k[n - 2]})}, {{"value", one}});
    const Name sees = c.s.cast(c.s.node("Trilu", {all}, {{"upper", int64_t{0}}}), kInt32, kBool);
    scores = c.s.node("Where", {sees, scores, low});
  }
  if (c.has(3)) {
    const Name mask = c.tensor(3);
    scores = c.geometry(3).dtype == kBool
                 ? c.s.node("Where", {mask, scores, low})
                 : c.s.node("Add", {scores, c.s.cast(mask, c.geometry(3).dtype, dtype)});
  }
  if (c.is_used(1))
    c.result(c.s.node("ReduceLogSumExp", {scores, c.s.ints(-1)}, {{"keepdims", int64_t{0}}}), 1);
  const Name weights = c.s.node("Softmax", {scores}, {{"axis", int64_t{-1}}});
  c.result(c.s.node("MatMul", {weights, heads(2)}));
}

constexpr SavedRow kLayerRows[] = {
    {"aten::_adaptive_avg_pool", adaptive_avg_pool},
    {"aten::_adaptive_max_pool", adaptive_max_pool},
    {"aten::_attention_forward", attention},
    {"aten::_avg_pool", avg_pool},
    {"aten::_batch_norm_inference", batch_norm},
    {"aten::_log_softmax", log_softmax},
    {"aten::_max_pool", max_pool},
    {"aten::_max_pool_values", max_pool},
    {"aten::_recurrence", recurrence},
    {"aten::_softmax", softmax},
    {"aten::addmm", addmm},
    {"aten::bmm", matmul},
    {"aten::convolution", convolution},
    {"aten::dot", matmul},
    {"aten::linalg_vector_norm", vector_norm},
    {"aten::logsumexp", logsumexp},
    {"aten::max.dim", max_dim},
    {"aten::min.dim", min_dim},
    {"aten::mm", mm},
    {"aten::mv", matmul},
    {"aten::native_layer_norm", layer_norm},
    {"aten::std.correction", std_deviation},
    {"aten::std_mean.correction", std_mean},
    {"aten::var.correction", var},
    {"aten::var_mean.correction", var_mean},
};

}  // namespace

std::span<const SavedRow> layer_rows() noexcept { return kLayerRows; }

}  // namespace tenon::onnx
