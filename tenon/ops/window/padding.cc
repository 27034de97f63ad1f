// Padding: a constant around a tensor, or its own elements, reflected, repeated or continued in a circle.
#include <fmt/core.h>

#include <array>

#include "tenon/generated/view/bodies.h"
#include "tenon/generated/window/bodies.h"
#include "tenon/generated/window/functions.h"
#include "tenon/generated/window/shapes.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/window/by_rank.h"
#include "tenon/ops/window/spatial.h"

namespace tenon::ops {
namespace {

constexpr std::array<const char*, 3> kModes = {"reflection_pad", "replication_pad", "_pad_circular"};

std::string pad_name(int64_t mode, size_t rank) {
  return mode == kCircular ? kModes[kCircular] : with_rank(kModes[at(mode)], rank);
}

/// The sizes of the padded tensor; `pad` has two numbers for each dimension from the last on, which may be
/// negative.
Dims padded_sizes(IntArrayRef sizes, IntArrayRef pad, const char* op) {
  TENON_CHECK(pad.size() % 2 == 0 && pad.size() <= 2 * sizes.size(), Shape,
              fmt::format("{}: `pad` must have two numbers for each padded dimension of `self` {}, got {}",
                          op, to_string(sizes), to_string(pad)));
  Dims result = sizes.to_dims();
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    int64_t& size = result[sizes.size() - 1 - i];
    const bool fits = !__builtin_add_overflow(size, pad[2 * i], &size) &&
                      !__builtin_add_overflow(size, pad[2 * i + 1], &size);
    TENON_CHECK(fits && size >= 0, Shape,
                fmt::format("{}: `pad` {} gives dimension {} of `self` {} a {} size", op, to_string(pad),
                            sizes.size() - 1 - i, to_string(sizes), fits ? "negative" : "too large"));
  }
  return result;
}

/// The part of a padded tensor that shows elements of the tensor without padding; of one without padding, the
/// part that is shown. `padded` says which of the two `t` is.
Tensor shown(const Tensor& t, IntArrayRef pad, bool padded) {
  Tensor part = t;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const auto d = static_cast<int64_t>(t.sizes().size() - 1 - i);
    const int64_t sign = padded ? 1 : -1;
    const int64_t before = std::max<int64_t>(sign * pad[2 * i], 0),
                  after = std::max<int64_t>(sign * pad[2 * i + 1], 0);
    const int64_t size = part.sizes()[at(d)];
    part = ops::slice(part, d, std::min(before, size), std::max(size - after, std::min(before, size)), 1);
  }
  return part;
}

void check_mode(int64_t mode, size_t numbers) {
  TENON_CHECK(mode >= kReflect && mode <= kCircular, Value, fmt::format(": no mode of padding {}", mode));
  TENON_CHECK(numbers == 2 || numbers == 4 || numbers == 6, Value,
              fmt::format("{}: `padding` must have 2, 4 or 6 numbers, got {}", kModes[at(mode)], numbers));
}

/// Checks what a mode asks for, and returns the padded sizes.
Dims check_pad(IntArrayRef sizes, IntArrayRef pad, int64_t mode) {
  check_mode(mode, pad.size());
  const size_t rank = pad.size() / 2;
  const std::string op = pad_name(mode, rank);
  check_spatial(sizes, rank, op.c_str());
  const Dims result = padded_sizes(sizes, pad, op.c_str());
  for (size_t i = 0; i < rank; ++i) {
    const size_t d = sizes.size() - 1 - i;
    const int64_t most = std::max(pad[2 * i], pad[2 * i + 1]);
    if (mode == kReflect) {
      TENON_CHECK(
          most < sizes[d], Value,
          fmt::format(
              "{}: `padding` must be less than the size of the dimension, got ({}, {}) at dimension {} of "
              "`self` {}",
              op, pad[2 * i], pad[2 * i + 1], d, to_string(sizes)));
    } else if (mode == kCircular) {
      TENON_CHECK(
          most <= sizes[d], Value,
          fmt::format(
              "{}: `pad` must not wrap around more than once, got ({}, {}) at dimension {} of `self` {}", op,
              pad[2 * i], pad[2 * i + 1], d, to_string(sizes)));
    }
    const int64_t kept = sizes[d] + std::min<int64_t>(pad[2 * i], 0) + std::min<int64_t>(pad[2 * i + 1], 0);
    TENON_CHECK(result[d] > 0 && (mode != kCircular || kept > 0), Shape,
                fmt::format("{}: `padding` {} leaves nothing of dimension {} of `self` {}", op,
                            to_string(pad), d, to_string(sizes)));
  }
  return result;
}

std::vector<Axis> pad_axes(IntArrayRef sizes, IntArrayRef padded, IntArrayRef pad, int64_t mode) {
  const size_t rank = pad.size() / 2;
  std::vector<Axis> axes;
  for (size_t i = rank; i-- > 0;) {
    const int64_t size = sizes[sizes.size() - 1 - i], before = pad[2 * i];
    axes.push_back(Axis::listed(size, padded[padded.size() - 1 - i]));
    Axis& axis = axes.back();
    axis.places.reserve(at(axis.outputs));
    // A circle goes on with what negative widths leave.
    const int64_t kept = size + std::min<int64_t>(before, 0) + std::min<int64_t>(pad[2 * i + 1], 0);
    for (int64_t o = 0; o < axis.outputs; ++o) {
      int64_t place = o - before;
      if (mode == kReflect) {
        place = place < 0 ? -place : place >= size ? 2 * (size - 1) - place : place;
      } else if (mode == kReplicate) {
        place = std::clamp<int64_t>(place, 0, size - 1);
      } else {
        const int64_t first = std::max<int64_t>(-before, 0);
        place = first + ((place - first) % kept + kept) % kept;
      }
      axis.add(place);
      axis.next();
    }
  }
  return axes;
}

}  // namespace

namespace shape {

void constant_pad_nd(OutputSpecs& out, HeaderRef self, IntArrayRef pad, const Scalar& value) {
  check_fits(value, self.dtype(), "constant_pad_nd");
  set_spatial(out, 0, self, padded_sizes(self.sizes(), pad, "constant_pad_nd"), self.dtype());
}

void pad_axes(OutputSpecs& out, HeaderRef self, IntArrayRef pad, int64_t mode) {
  set_spatial(out, 0, self, check_pad(self.sizes(), pad, mode), self.dtype());
}

void pad_axes_backward(OutputSpecs& out, HeaderRef grad, IntArrayRef input_size, IntArrayRef pad,
                       int64_t mode) {
  checked_numel(input_size, kThisCall);
  const Dims padded = check_pad(input_size, pad, mode);
  const std::string op = pad_name(mode, pad.size() / 2) + "_backward";
  check_gradient_sizes(grad, padded, op.c_str());
  check_inexact(grad.dtype(), true, op.c_str());
  set_spatial(out, 0, grad, input_size, grad.dtype());
}

}  // namespace shape

void constant_pad_nd(const Tensor& self, IntArrayRef pad, const Scalar& value, Tensor& out) {
  const Tensor from = shown(self, pad, false), to = shown(out, pad, true);
  if (to.numel() < out.numel()) fill_elements(out, value, "constant_pad_nd");
  if (to.numel() > 0) copy_elements(to, from, "constant_pad_nd");
}

void pad_axes(const Tensor& self, IntArrayRef pad, int64_t mode, Tensor& out) {
  if (out.numel() == 0) return;
  axes_copy_stub(self.device(), self, pad_axes(self.sizes(), out.sizes(), pad, mode), Scalar(0), out);
}

void pad_axes_backward(const Tensor& grad, IntArrayRef input_size, IntArrayRef pad, int64_t mode,
                       Tensor& out) {
  if (out.numel() == 0) return;
  std::vector<Axis> axes = pad_axes(input_size, grad.sizes(), pad, mode);
  for (Axis& axis : axes) axis = axis.transposed();
  axes_sum_stub(grad.device(), grad, axes, false, out);
}

Dims negative(IntArrayRef pad, const char* op) {
  Dims result = pad.to_dims();
  for (int64_t& p : result) {
    TENON_CHECK(p != INT64_MIN, Value, fmt::format("{}: `pad` must not have {}", op, p));
    p = -p;
  }
  return result;
}

Tensor pad_as(const Tensor& self, IntArrayRef padding, PadMode mode, size_t rank) {
  const std::string op = pad_name(mode, rank);
  TENON_CHECK(padding.size() == 2 * rank || padding.size() == 1, Value,
              fmt::format("{}: `padding` must have {} numbers, got {}", op, 2 * rank, to_string(padding)));
  return tenon::_pad_axes(self, per_axis(padding, 2 * rank, op.c_str(), "padding"), mode);
}
Tensor pad_backward_as(const Tensor& grad, const Tensor& self, IntArrayRef padding, PadMode mode,
                       size_t rank) {
  const std::string op = pad_name(mode, rank) + "_backward";
  check_gradient_of(grad, self, op.c_str());
  return tenon::_pad_axes_backward(grad, self.sizes(), per_axis(padding, 2 * rank, op.c_str(), "padding"),
                                   mode);
}

Tensor pad(const Tensor& self, IntArrayRef pad, std::string_view mode, std::optional<double> value) {
  if (mode == "constant") return tenon::constant_pad_nd(self, pad, value ? Scalar(*value) : Scalar(0));
  TENON_CHECK(!value || *value == 0, Value,
              fmt::format("pad: mode \"{}\" takes no `value`, got {}", mode, value.value_or(0)));
  constexpr std::array<std::string_view, 3> kWords = {"reflect", "replicate", "circular"};
  const auto found = std::find(kWords.begin(), kWords.end(), mode);
  TENON_CHECK(found != kWords.end(), NotImplemented,
              fmt::format("pad: `mode` must be constant, reflect, replicate or circular, got \"{}\"", mode));
  return tenon::_pad_axes(self, pad, found - kWords.begin());
}

}  // namespace tenon::ops
