// Products, convolutions, reductions, random numbers, and what moves elements.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "tenon/builder/node_call.h"
#include "tenon/builder/tensor.h"
#include "tenon/core/error.h"
#include "tenon/generated/functions.h"

namespace tenon::builder {
namespace {

using T = tenon::Tensor;

void matmul(NodeCall& n) {
  const T a = n.tensor(0), b = n.tensor(1);
  n.set(tenon::matmul(a, b));
}

// Convolutions: images [N, C, ...], filters [K, C / groups, ...].

struct Window {
  Dims padding, stride, dilation;
  /// Where the two sides differ, the image is padded before, with these numbers of constant_pad_nd, and
  /// `padding` is 0; else empty.
  Dims extra;

  Window(const NodeCall& n, const T& image) {
    const size_t spatial = image.sizes().size() < 2 ? 0 : image.sizes().size() - 2;
    const Dims none(spatial, 0), one(spatial, 1);
    TENON_CHECK(
        n.has("pre_padding") == n.has("post_padding") && !(n.has("padding") && n.has("pre_padding")), Value,
        fmt::format("{}: either `padding` is given, for both sides, or `pre_padding` and `post_padding`",
                    n.kind()));
    padding = n.dims("padding", n.dims("pre_padding", none));
    const Dims after = n.dims("post_padding", padding);
    stride = n.dims("stride", one);
    dilation = n.dims("dilation", one);
    for (const Dims* d : std::initializer_list<const Dims*>{&padding, &after, &stride, &dilation})
      TENON_CHECK(
          d->size() == spatial, Value,
          fmt::format("{}: an image of shape {} takes {} numbers for padding, stride and dilation, not {}",
                      n.kind(), to_string(image.sizes()), spatial, d->size()));
    if (padding == after) return;
    for (size_t d = spatial; d-- > 0;) {
      extra.push_back(padding[d]);
      extra.push_back(after[d]);
    }
    padding = none;
  }

  T padded(const T& image) const { return extra.empty() ? image : tenon::constant_pad_nd(image, extra); }
  int64_t before(size_t d) const { return extra.empty() ? 0 : extra[extra.size() - 2 - 2 * d]; }
  int64_t behind(size_t d) const { return extra.empty() ? 0 : extra[extra.size() - 1 - 2 * d]; }
};

int64_t groups_of(const NodeCall& n, int64_t channels, const T& filter) {
  const int64_t own = filter.sizes()[1];
  TENON_CHECK(own > 0 && channels % own == 0, Shape,
              fmt::format("{}: {} channels and filters of {}", n.kind(), channels, own));
  return channels / own;
}

void conv_fprop(NodeCall& n) {
  const T image = n.tensor(0), filter = n.tensor(1);
  const Window w(n, image);
  const Dims none(w.stride.size(), 0);
  n.set(tenon::convolution(w.padded(image), filter, {}, w.stride, w.padding, w.dilation, false, none,
                           groups_of(n, image.sizes()[1], filter)));
}
void conv_dgrad(NodeCall& n) {
  const T loss = n.tensor(0), filter = n.tensor(1);
  const Window w(n, loss);
  const Dims& image = n.wanted_dim();
  TENON_CHECK(image.size() == loss.sizes().size(), Shape,
              fmt::format("conv_dgrad: an image of shape {} for a loss of shape {}", to_string(image),
                          to_string(loss.sizes())));
  Dims rest;  // of the image, that no window reaches
  for (size_t d = 0; d < w.stride.size(); ++d) {
    const auto at = static_cast<int64_t>(d) + 2;
    const int64_t size = image[d + 2] + w.before(d) + w.behind(d);
    rest.push_back(size - ((loss.sizes()[at] - 1) * w.stride[d] - 2 * w.padding[d] +
                           w.dilation[d] * (filter.sizes()[at] - 1) + 1));
  }
  T gradient = tenon::convolution(loss, filter, {}, w.stride, w.padding, w.dilation, true, rest,
                                  groups_of(n, image[1], filter));
  for (size_t d = 0; d < w.stride.size() && !w.extra.empty(); ++d)
    gradient = gradient.narrow(static_cast<int64_t>(d) + 2, w.before(d), image[d + 2]);
  n.set(gradient);
}
void conv_wgrad(NodeCall& n) {
  const T image = n.tensor(0), loss = n.tensor(1);
  const Window w(n, image);
  const Dims& filter = n.wanted_dim();
  TENON_CHECK(filter.size() == image.sizes().size() && filter[1] > 0, Shape,
              fmt::format("conv_wgrad: filters of shape {} for an image of shape {}", to_string(filter),
                          to_string(image.sizes())));
  n.set(tenon::_convolution_weight_gradient(loss, w.padded(image), filter, w.stride, w.padding, w.dilation,
                                            false, image.sizes()[1] / filter[1]));
}

/// Which dimensions a reduction goes over: `axis`, or those that its output has with size 1.
std::pair<Dims, bool> reduced(const NodeCall& n, const T& x) {
  if (n.has("axis")) return {n.dims("axis", {}), n.flag("keepdim", false)};
  TENON_CHECK(!n.has("keepdim"), Value,
              "reduction: `keepdim` says what becomes of the dimensions of `axis`, which is not given");
  const Dims& out = n.wanted_dim();
  TENON_CHECK(out.size() == x.sizes().size(), Shape,
              fmt::format("reduction: an output of shape {} for an input of shape {}; or say `axis`",
                          to_string(out), to_string(x.sizes())));
  Dims axes;
  for (size_t d = 0; d < out.size(); ++d) {
    const int64_t size = x.sizes()[static_cast<int64_t>(d)];
    TENON_CHECK(out[d] == size || out[d] == 1, Shape,
                fmt::format("reduction: dimension {} of size {} cannot become {}", d, size, out[d]));
    if (out[d] != size) axes.push_back(static_cast<int64_t>(d));
  }
  return {axes, true};
}

T product(const T& x, Dims axes, bool keepdim) {
  T result = x;
  for (int64_t& axis : axes) axis += axis < 0 ? static_cast<int64_t>(x.sizes().size()) : 0;
  std::ranges::sort(axes, std::greater<>());
  for (const int64_t axis : axes) result = tenon::prod(result, axis, keepdim);
  return result;
}

constexpr std::array<std::string_view, 9> kModes{"ADD", "AVG",          "MAX",   "MIN",  "AMAX",
                                                 "MUL", "MUL_NO_ZEROS", "NORM1", "NORM2"};

/// What a reduction makes of one element.
T of_each(const T& x, std::string_view mode) {
  if (mode == "MUL_NO_ZEROS") return tenon::where(tenon::eq(x, 0), Scalar(int64_t{1}), x);
  return mode == "AMAX" || mode == "NORM1" || mode == "NORM2" ? tenon::abs(x) : x;
}

void reduction(NodeCall& n) {
  const T x = n.tensor(0);
  const auto [axes, keep] = reduced(n, x);
  const std::string mode = n.text("mode", "ADD");
  TENON_CHECK(std::ranges::find(kModes, mode) != kModes.end(), Value,
              fmt::format("reduction: `mode` is one of {}, not {}", fmt::join(kModes, ", "), mode));
  if (mode == "AVG" || mode == "NORM1" || mode == "NORM2")
    TENON_CHECK(is_floating_point(x.dtype()), Type,
                fmt::format("reduction: {} is of floating-point numbers, not of {}; let it compute in such "
                            "(compute_data_type)",
                            mode, name(x.dtype())));
  if (axes.empty()) return n.set(of_each(x, mode));
  if (mode == "ADD") return n.set(tenon::sum(x, axes, keep));
  if (mode == "AVG") return n.set(tenon::mean(x, axes, keep));
  if (mode == "MAX") return n.set(tenon::amax(x, axes, keep));
  if (mode == "MIN") return n.set(tenon::amin(x, axes, keep));
  if (mode == "AMAX") return n.set(tenon::amax(tenon::abs(x), axes, keep));
  if (mode == "MUL") return n.set(product(x, axes, keep));
  if (mode == "MUL_NO_ZEROS") return n.set(product(of_each(x, mode), axes, keep));
  n.set(tenon::linalg_vector_norm(x, mode == "NORM1" ? 1 : 2, OptionalIntArrayRef(axes), keep));
}

void reshape(NodeCall& n) { n.set(n.raw(0).reshape(n.has("dim") ? n.dims("dim", {}) : n.wanted_dim())); }
void transpose(NodeCall& n) { n.set(n.raw(0).permute(n.dims("permutation", {}))); }
void slice(NodeCall& n) {
  T x = n.raw(0);
  const Dims start = n.dims("start", {}), limit = n.dims("limit", {});
  const Dims step = n.dims("step", Dims(start.size(), 1));
  TENON_CHECK(start.size() <= x.sizes().size() && limit.size() == start.size() && step.size() == start.size(),
              Value,
              fmt::format("slice: an input of shape {} takes at most as many of start, limit and step",
                          to_string(x.sizes())));
  for (size_t d = 0; d < start.size(); ++d) x = x.slice(static_cast<int64_t>(d), start[d], limit[d], step[d]);
  n.set(x);
}
void concatenate(NodeCall& n) {
  std::vector<T> parts;
  for (size_t i = 0; i < n.num_inputs(); ++i) parts.push_back(n.raw(i));
  n.set(tenon::cat(parts, n.integer("axis", 0)));
}

void rng(NodeCall& n) {
  const Dims dim = n.has("dim") ? n.dims("dim", {}) : n.wanted_dim();
  check_sizes("rng", dim);
  T out = n.writer().fresh(n.wanted_dtype().value_or(DType::Float32), dim, contiguous_strides(dim));
  const std::string distribution = n.text("distribution", "UNIFORM");
  const int64_t seed = n.whole_number(0, "seed", 0), offset = n.whole_number(1, "offset", 0);
  if (distribution == "UNIFORM")
    out._philox_uniform_(n.real("low", 0), n.real("high", 1), seed, offset);
  else if (distribution == "NORMAL")
    out._philox_normal_(n.real("mean", 0), n.real("std", 1), seed, offset);
  else if (distribution == "BERNOULLI")
    out._philox_bernoulli_(n.real("probability", 0.5), seed, offset);
  else
    throw_error(ErrorKind::Value,
                fmt::format("rng: `distribution` is UNIFORM, NORMAL or BERNOULLI, not {}", distribution));
  n.set(out);
}

constexpr std::string_view kWindow = "padding pre_padding post_padding stride dilation";
constexpr NodeKind kTensorKinds[] = {
    {"concatenate", "inputs*", "axis", "OUT_0", &concatenate, Computes::Nothing},
    {"conv_dgrad", "loss filter", kWindow, "DX", &conv_dgrad},
    {"conv_fprop", "image weight", kWindow, "Y", &conv_fprop},
    {"conv_wgrad", "image loss", kWindow, "DW", &conv_wgrad},
    {"matmul", "A B", "", "C", &matmul},
    {"reduction", "input", "mode axis keepdim", "Y", &reduction},
    {"reshape", "input", "dim", "Y", &reshape, Computes::Nothing},
    {"rng", "seed#? offset#?", "dim distribution low high mean std probability", "Y", &rng,
     Computes::Nothing},
    {"slice", "input", "start limit step", "Y", &slice, Computes::Nothing},
    {"transpose", "input", "permutation", "Y", &transpose, Computes::Nothing},
};

}  // namespace

std::span<const NodeKind> tensor_kinds() { return kTensorKinds; }

}  // namespace tenon::builder
