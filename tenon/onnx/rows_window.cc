// Convolutions and pools.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "tenon/generated/activation/functions.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/convolution/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/norm/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/generated/window/functions.h"
#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"
#include "tenon/ops/factory/from_data.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;

Dims spatial(IntArrayRef sizes) { return sizes.size() > 2 ? Dims(sizes.last(sizes.size() - 2)) : Dims(); }

/// Windows over the dimensions after the second: one number for each of them in every list.
struct Windows {
  Dims kernel, stride, dilation;
  Dims before, after;  ///< Padding.
  bool is_same = false;

  size_t rank() const { return kernel.size(); }
  int64_t extent(size_t i) const { return (kernel[i] - 1) * dilation[i] + 1; }
};

/// An attribute with one number for each axis, or what it is without.
Dims per_axis(N& n, std::string_view attribute, size_t count, int64_t otherwise) {
  const Dims out = n.ints(attribute).value_or(Dims(count, otherwise));
  TENON_NODE_CHECK(n, out.size() == count, Value,
                   fmt::format("attribute `{}` has {} numbers, expected {}", attribute, out.size(), count));
  for (const int64_t one : out)  // sums and products of two of them fit 64 bits
    TENON_NODE_CHECK(n, one == static_cast<int32_t>(one), Value,
                     fmt::format("attribute `{}` has the number {}", attribute, one));
  return out;
}

/// What strides, dilations and explicit pads say of windows of this size.
Windows plain_windows(N& n, Dims kernel) {
  Windows w;
  const size_t rank = kernel.size();
  w.kernel = std::move(kernel);
  w.stride = per_axis(n, "strides", rank, 1);
  w.dilation = per_axis(n, "dilations", rank, 1);
  for (size_t i = 0; i < rank; ++i)
    TENON_NODE_CHECK(n, w.kernel[i] > 0 && w.stride[i] > 0 && w.dilation[i] > 0, Value,
                     fmt::format("kernels, strides and dilations must be positive, got {}, {} and {}",
                                 w.kernel[i], w.stride[i], w.dilation[i]));
  TENON_NODE_CHECK(n, rank == 0 || std::ranges::max(w.kernel) <= INT32_MAX, Value,
                   fmt::format("a kernel of {} elements", std::ranges::max(w.kernel)));
  const Dims pads = per_axis(n, "pads", 2 * rank, 0);
  w.before = Dims(pads.data(), rank);
  w.after = Dims(pads.data() + rank, rank);
  return w;
}

/// `auto_pad`, unless pads are explicit.
std::string_view automatic_pads(N& n) {
  const std::string_view mode = n.text("auto_pad", "NOTSET");
  TENON_NODE_CHECK(n, mode == "NOTSET" || mode == "VALID" || mode == "SAME_UPPER" || mode == "SAME_LOWER",
                   Value, fmt::format("attribute `auto_pad` is '{}'", mode));
  return mode;
}
/// Divides padding between both sides.
void share(Windows& w, size_t i, int64_t total, bool upper) {
  w.before[i] = upper ? total / 2 : total - total / 2;
  w.after[i] = total - w.before[i];
}

Windows windows_of(N& n, const Tensor& x, Dims kernel) {
  TENON_NODE_CHECK(n, !kernel.empty() && kernel.size() <= 3 && x.sizes().size() == kernel.size() + 2, Shape,
                   fmt::format("windows along {} dimensions of an input of shape {}", kernel.size(),
                               to_string(x.sizes())));
  Windows w = plain_windows(n, std::move(kernel));
  const std::string_view mode = automatic_pads(n);
  if (mode == "NOTSET") return w;
  w.is_same = true;
  for (size_t i = 0; i < w.rank(); ++i) {
    const int64_t size = x.sizes()[i + 2], outputs = (size + w.stride[i] - 1) / w.stride[i];
    const int64_t missing = (outputs - 1) * w.stride[i] + w.extent(i) - size;
    share(w, i, mode == "VALID" ? 0 : std::max<int64_t>(missing, 0), mode == "SAME_UPPER");
  }
  return w;
}
Windows pool_windows(N& n) {
  const auto kernel = n.ints("kernel_shape");
  TENON_NODE_CHECK(n, kernel.has_value(), Value, "attribute `kernel_shape` is missing");
  return windows_of(n, n.tensor(0), *kernel);
}

/// Puts `value` around the dimensions after the second; negative widths cut.
Tensor padded(const Tensor& x, const Dims& before, const Dims& after, const Scalar& value) {
  Dims pads;
  for (size_t i = before.size(); i-- > 0;) {
    pads.push_back(before[i]);
    pads.push_back(after[i]);
  }
  return std::ranges::all_of(pads, [](int64_t pad) { return pad == 0; }) ? x
                                                                         : constant_pad_nd(x, pads, value);
}

void conv(N& n) {
  const Tensor &x = n.tensor(0), &weight = n.tensor(1);
  Windows w = windows_of(n, x, spatial(weight.sizes()));
  // The operator pads both sides alike.
  Dims both(w.rank());
  for (size_t i = 0; i < both.size(); ++i) {
    both[i] = std::max<int64_t>(std::min(w.before[i], w.after[i]), 0);
    w.before[i] -= both[i];
    w.after[i] -= both[i];
  }
  n.set(convolution(padded(x, w.before, w.after, 0), weight, n.optional(2), w.stride, both, w.dilation, false,
                    Dims(w.rank()), n.integer("group", 1)));
}

/// A transposed convolution whose windows are next to each other: a product with each input alone, whose
/// results are moved to their places.
Tensor transposed_side_by_side(const Tensor& x, const Tensor& weight, const Tensor& bias, const Windows& w) {
  const auto rank = static_cast<int64_t>(w.rank());
  const int64_t channels = weight.sizes()[0], maps = weight.sizes()[1];
  Dims order, kernel(w.rank() + 2, 1), parts{x.sizes()[0], maps}, sizes = parts;
  for (int64_t i = 1; i < rank + 2; ++i) order.push_back(i);
  order.push_back(0);
  kernel[0] = weight.numel() / channels;
  kernel[1] = channels;
  Tensor each = bias;
  if (bias.defined()) each = expand(unsqueeze(bias, 1), {maps, kernel[0] / maps}).reshape({-1});
  const Dims none(w.rank()), one(w.rank(), 1);
  const Tensor all =
      convolution(x, permute(weight, order).reshape(kernel), each, one, none, one, false, none, 1);
  for (const int64_t k : w.kernel) parts.push_back(k);
  for (int64_t i = 0; i < rank; ++i) parts.push_back(x.sizes()[static_cast<size_t>(i) + 2]);
  // Results of the last axis are put next to each other first, which copies lines; then lines are moved.
  const Tensor split = all.reshape(parts);
  std::vector<Tensor> last;
  for (int64_t k = 0; k < w.kernel.back(); ++k) last.push_back(select(split, rank + 1, k));
  Dims back{0, 1};
  for (int64_t i = 0; i < rank; ++i) {
    back.push_back(rank + 1 + i);
    back.push_back(i + 1 < rank ? 2 + i : 2 * rank + 1);
    sizes.push_back(x.sizes()[static_cast<size_t>(i) + 2] * w.kernel[static_cast<size_t>(i)]);
  }
  return permute(stack(last, -1), back).reshape(sizes);
}

/// The part of a transposed convolution that begins after `w.before` elements of the whole, of these sizes.
Tensor transposed(const Tensor& x, const Tensor& weight, const Tensor& bias, Windows w, const Dims& sizes,
                  int64_t groups) {
  const Dims none(w.rank());
  Dims more(w.rank());
  bool is_plain = true, side_by_side = groups == 1 && x.numel() > 0 && weight.numel() > 0;
  for (size_t i = 0; i < w.rank(); ++i) {
    w.after[i] = (x.sizes()[i + 2] - 1) * w.stride[i] + w.extent(i) - w.before[i] - sizes[i];
    more[i] = w.before[i] - w.after[i];
    side_by_side = side_by_side && w.kernel[i] == w.stride[i] && w.extent(i) == w.kernel[i] &&
                   w.before[i] == 0 && w.after[i] == 0;
    is_plain = is_plain && w.before[i] >= 0 && more[i] >= 0 && more[i] < std::max(w.stride[i], w.dilation[i]);
  }
  if (side_by_side) return transposed_side_by_side(x, weight, bias, w);
  if (is_plain) return convolution(x, weight, bias, w.stride, w.before, w.dilation, true, more, groups);
  Tensor out = convolution(x, weight, {}, w.stride, none, w.dilation, true, none, groups);
  for (size_t i = 0; i < w.rank(); ++i) w.before[i] = -w.before[i], w.after[i] = -w.after[i];
  out = padded(out, w.before, w.after, 0);
  if (!bias.defined()) return out;
  Dims shape(w.rank() + 1, 1);
  shape[0] = -1;
  return out + bias.reshape(shape);
}

void conv_transpose(N& n) {
  const Tensor &x = n.tensor(0), &weight = n.tensor(1);
  const Dims inputs = spatial(x.sizes());
  Windows w = plain_windows(n, spatial(weight.sizes()));
  const size_t rank = w.rank();
  TENON_NODE_CHECK(n, rank >= 1 && rank <= 3 && inputs.size() == rank, Shape,
                   fmt::format("input {} and weights {}", to_string(x.sizes()), to_string(weight.sizes())));
  const Dims more = per_axis(n, "output_padding", rank, 0);
  const std::string_view mode = automatic_pads(n);
  Dims sizes(rank);
  const auto given = n.ints("output_shape");
  for (size_t i = 0; i < rank; ++i) {
    const int64_t whole = (inputs[i] - 1) * w.stride[i] + more[i] + w.extent(i);
    if (given || mode.starts_with("SAME")) {
      // Older files have the batch and the channels in it, too.
      if (given)
        TENON_NODE_CHECK(n, given->size() >= rank, Value,
                         fmt::format("attribute `output_shape` has {} numbers", given->size()));
      sizes[i] = given ? (*given)[given->size() - rank + i] : inputs[i] * w.stride[i];
      share(w, i, std::max<int64_t>(whole - sizes[i], 0), mode == "SAME_UPPER");
    } else {
      if (mode == "VALID") w.before[i] = w.after[i] = 0;
      sizes[i] = whole - w.before[i] - w.after[i];
    }
  }
  n.set(transposed(x, weight, n.optional(2), w, sizes, n.integer("group", 1)));
}

/// How many windows there are along each axis.
Dims outputs_of(N& n, const Tensor& x, const Windows& w, bool ceil) {
  Dims out;
  for (size_t i = 0; i < w.rank(); ++i) {
    const int64_t size = x.sizes()[i + 2], stride = w.stride[i];
    const int64_t room = size + w.before[i] + w.after[i] - w.extent(i);
    int64_t count = room < 0 ? 0 : (room + (ceil ? stride - 1 : 0)) / stride + 1;
    // The last window begins in the input, or in the padding before it.
    if (ceil && count > 1 && (count - 1) * stride >= size + w.before[i]) --count;
    TENON_NODE_CHECK(n, count > 0, Shape,
                     fmt::format("a window of {} does not fit into dimension {} of {}", w.extent(i), i + 2,
                                 to_string(x.sizes())));
    out.push_back(count);
  }
  return out;
}
/// The input with all that `outputs` windows read.
Tensor padded_for(const Tensor& x, const Windows& w, const Dims& outputs, const Scalar& value) {
  Dims after;
  for (size_t i = 0; i < w.rank(); ++i)
    after.push_back((outputs[i] - 1) * w.stride[i] + w.extent(i) - x.sizes()[i + 2] - w.before[i]);
  return padded(x, w.before, after, value);
}
/// Whether the operators of pools have such pads.
bool is_even(const Windows& w) {
  for (size_t i = 0; i < w.rank(); ++i)
    if (w.before[i] != w.after[i] || w.before[i] < 0 || w.before[i] > w.extent(i) / 2) return false;
  return true;
}
/// The sums of windows: a convolution with ones, of each channel alone.
Tensor window_sums(const Tensor& x, const Windows& w, const Dims& outputs) {
  const Tensor all = padded_for(x, w, outputs, 0);
  Dims flat = all.sizes().to_dims(), kernel = w.kernel, sizes = outputs;
  flat[0] *= flat[1];
  flat[1] = 1;
  kernel.insert(0, 1);
  kernel.insert(0, 1);
  const Tensor ones_of = ones(kernel, options_like(x));
  const Dims none(w.rank());
  const Tensor sums = convolution(all.reshape(flat), ones_of, {}, w.stride, none, w.dilation, false, none, 1);
  sizes.insert(0, x.sizes()[1]);
  sizes.insert(0, x.sizes()[0]);
  return sums.reshape(sizes);
}

void average_pool(N& n) {
  const Tensor& x = n.tensor(0);
  const Windows w = pool_windows(n);
  const bool ceil = n.flag("ceil_mode", false) && !w.is_same, with_pads = n.flag("count_include_pad", false);
  if (is_even(w) && std::ranges::all_of(w.dilation, [](int64_t d) { return d == 1; }))
    return n.set(_avg_pool(x, w.kernel, w.stride, w.before, ceil, with_pads, std::nullopt));
  const Dims outputs = outputs_of(n, x, w, ceil);
  Tensor out = window_sums(x, w, outputs);
  for (size_t i = 0; i < w.rank(); ++i) {
    const int64_t begin = with_pads ? 0 : w.before[i],
                  end = x.sizes()[i + 2] + w.before[i] + (with_pads ? w.after[i] : 0);
    std::vector<double> counts;
    for (int64_t o = 0; o < outputs[i]; ++o) {
      double count = 0;
      for (int64_t t = 0; t < w.kernel[i]; ++t) {
        const int64_t at = o * w.stride[i] + t * w.dilation[i];
        count += begin <= at && at < end;
      }
      counts.push_back(count);
    }
    Dims shape(w.rank(), 1);
    shape[i] = -1;
    out = out / tensor(counts, options_like(x)).reshape(shape);
  }
  n.set(out);
}
void lp_pool(N& n) {
  const Tensor& x = n.tensor(0);
  const Windows w = pool_windows(n);
  const auto p = static_cast<double>(n.integer("p", 2));
  const Dims outputs = outputs_of(n, x, w, n.flag("ceil_mode", false) && !w.is_same);
  n.set(pow(window_sums(pow(abs(x), Scalar(p)), w, outputs), Scalar(1 / p)));
}

/// From places in a channel's padded plane to places in the whole input.
Tensor places_in_input(Tensor places, const Tensor& x, const Windows& w, IntArrayRef planes, bool by_column) {
  int64_t plane = 1, step = 1;
  for (size_t i = 0; i < w.rank(); ++i) plane *= x.sizes()[i + 2];
  if (planes.size() != 0 || by_column) {
    Tensor out;
    step = by_column ? plane : 1;
    for (size_t i = w.rank(); i-- > 0;) {
      const int64_t size = x.sizes()[i + 2], of_plane = planes.size() == 0 ? size : planes[i + 2];
      if (by_column) step /= size;
      Tensor part = remainder(places, Scalar(of_plane));
      if (planes.size() != 0) part = part - Scalar(w.before[i]);
      part = part * Scalar(step);
      out = out.defined() ? out + part : part;
      places = div(places, Scalar(of_plane), "floor");
      if (!by_column) step *= size;
    }
    places = out;
  }
  Dims shape(w.rank() + 2, 1);
  shape[0] = x.sizes()[0];
  shape[1] = x.sizes()[1];
  const Tensor channels = arange(shape[0] * shape[1], options_like(x, kInt64));
  return places + channels.reshape(shape) * Scalar(plane);
}

void max_pool(N& n) {
  const Tensor& x = n.tensor(0);
  const Windows w = pool_windows(n);
  const bool ceil = n.flag("ceil_mode", false) && !w.is_same, even = is_even(w);
  Tensor input = x;
  if (!even) {
    const Scalar low = x.dtype() == kUInt8  ? Scalar(0)
                       : x.dtype() == kInt8 ? Scalar(-128)
                                            : Scalar(-std::numeric_limits<double>::infinity());
    input = padded_for(x, w, outputs_of(n, x, w, ceil), low);
  }
  const Dims none(w.rank());
  const IntArrayRef padding = even ? w.before : none;
  if (!n.wants(1) && !input.requires_grad())
    return n.set(0, _max_pool_values(input, w.kernel, w.stride, padding, w.dilation, even && ceil));
  const auto [values, places] = _max_pool(input, w.kernel, w.stride, padding, w.dilation, even && ceil);
  n.set(0, values);
  if (n.wants(1))
    n.set(1, places_in_input(places, x, w, even ? IntArrayRef() : input.sizes(),
                             n.flag("storage_order", false)));
}

Dims spatial_axes(const Tensor& x) {
  Dims axes;
  for (size_t i = 2; i < x.sizes().size(); ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}
void global_average_pool(N& n) {
  const Tensor& x = n.tensor(0);
  const Dims axes = spatial_axes(x);
  n.set(axes.empty() ? x : mean(x, IntArrayRef(axes), true));
}
void global_max_pool(N& n) {
  const Tensor& x = n.tensor(0);
  const Dims axes = spatial_axes(x);
  n.set(axes.empty() ? x : amax(x, axes, true));
}
void global_lp_pool(N& n) {
  const Tensor& x = n.tensor(0);
  n.set(linalg_vector_norm(x, Scalar(static_cast<double>(n.integer("p", 2))), IntArrayRef(spatial_axes(x)),
                           true));
}

/// Puts each element at its place among zeros.
void max_unpool(N& n) {
  const Tensor& x = n.tensor(0);
  const auto kernel = n.ints("kernel_shape");
  TENON_NODE_CHECK(n, kernel && x.sizes().size() == kernel->size() + 2, Value,
                   "attribute `kernel_shape` does not fit the input");
  const Windows w = plain_windows(n, *kernel);
  Dims sizes = x.sizes().to_dims();
  for (size_t i = 0; i < w.rank(); ++i)
    sizes[i + 2] = (sizes[i + 2] - 1) * w.stride[i] - w.before[i] - w.after[i] + w.kernel[i];
  const Tensor none = zeros(sizes, options_like(x)).reshape({-1});
  Tensor out = scatter(none, 0, n.tensor(1).reshape({-1}), x.reshape({-1})).reshape(sizes);
  if (n.has(2)) {
    const Dims given = n.ints(2);
    TENON_NODE_CHECK(n, given.size() == sizes.size(), Value, "input 2 does not fit the input");
    Dims after;
    for (size_t i = 2; i < sizes.size(); ++i) after.push_back(given[i] - sizes[i]);
    out = padded(out, Dims(w.rank()), after, 0);
  }
  n.set(out);
}

/// Adds blocks up to images: a transposed convolution whose weights pick each element of a block.
void col2im_of(N& n) {
  const Tensor& x = n.tensor(0);
  const Dims image = n.ints(1);
  Windows w = plain_windows(n, n.ints(2));
  const size_t rank = w.rank();
  int64_t elements = 1;
  for (const int64_t k : w.kernel) elements *= k;
  TENON_NODE_CHECK(n, rank >= 1 && rank <= 3 && image.size() == rank, NotImplemented,
                   fmt::format("blocks of {} dimensions in images of {}", rank, image.size()));
  TENON_NODE_CHECK(n, x.sizes().size() == 3 && x.sizes()[1] % elements == 0, Shape,
                   fmt::format("an input of shape {} in blocks of {}", to_string(x.sizes()), elements));
  const int64_t batch = x.sizes()[0], channels = x.sizes()[1] / elements;
  Dims blocks{batch * channels, elements}, kernel = w.kernel, sizes = image;
  for (size_t i = 0; i < rank; ++i)
    blocks.push_back((image[i] + w.before[i] + w.after[i] - w.extent(i)) / w.stride[i] + 1);
  kernel.insert(0, 1);
  kernel.insert(0, elements);
  const Tensor weight = eye(elements, options_like(x)).reshape(kernel);
  sizes.insert(0, channels);
  sizes.insert(0, batch);
  n.set(transposed(x.reshape(blocks), weight, {}, w, image, 1).reshape(sizes));
}

/// A convolution of each channel with what came before it.
void causal_conv(N& n) {
  const Tensor &x = n.tensor(0), &weight = n.tensor(1);
  TENON_NODE_CHECK(n, x.sizes().size() == 3 && weight.sizes().size() == 3, Shape,
                   fmt::format("input {} and weights {}, expected 3 dimensions each", to_string(x.sizes()),
                               to_string(weight.sizes())));
  const int64_t before = weight.sizes()[2] - 1;
  const Tensor all = n.has(3) ? cat(std::vector{n.tensor(3), x}, 2) : constant_pad_nd(x, {before, 0}, 0);
  Tensor out = convolution(all, weight, n.optional(2), {1}, {0}, {1}, false, {0}, x.sizes()[1]);
  const std::string_view activation = n.text("activation", "none");
  TENON_NODE_CHECK(n, activation == "none" || activation == "silu" || activation == "swish", NotImplemented,
                   fmt::format("attribute `activation` is '{}'", activation));
  n.set(0, activation == "none" ? out : silu(out));
  n.set(1, slice(all, 2, all.sizes()[2] - before));
}

constexpr auto kWindowRows = std::to_array<Row>({
    {"AveragePool", 1, average_pool},
    {"CausalConvWithState", 27, causal_conv},
    {"Col2Im", 18, col2im_of},
    {"Conv", 1, conv},
    {"ConvTranspose", 1, conv_transpose},
    {"GlobalAveragePool", 1, global_average_pool},
    {"GlobalLpPool", 2, global_lp_pool},
    {"GlobalMaxPool", 1, global_max_pool},
    {"LpPool", 2, lp_pool},
    {"MaxPool", 1, max_pool},
    {"MaxUnpool", 9, max_unpool},
});

}  // namespace

std::span<const Row> window_rows() noexcept { return kWindowRows; }

}  // namespace tenon::onnx
