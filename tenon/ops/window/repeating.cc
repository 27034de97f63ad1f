// Composites that move elements to other places: repeat, tile, repeat_interleave by a number, roll, and the
// shuffles of channels and pixels.
#include <fmt/core.h>

#include "tenon/generated/copy/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/generated/window/bodies.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/forms/memory_format.h"
#include "tenon/ops/window/spatial.h"

namespace tenon::ops {
namespace {

int64_t checked_product(int64_t a, int64_t b, const char* op) {
  int64_t n = 0;
  TENON_CHECK(!__builtin_mul_overflow(a, b, &n), Shape,
              fmt::format("{}: a size is larger than int64 can count", op));
  return n;
}

Tensor contiguous_clone(const Tensor& t) { return tenon::clone(t, MemoryFormat::Contiguous); }

/// A copy of a view's elements, in order, with other sizes.
Tensor moved(const Tensor& view, IntArrayRef sizes) {
  return tenon::_unsafe_view(contiguous_clone(view), sizes);
}

Tensor repeated(const Tensor& self, IntArrayRef repeats, const char* op) {
  TENON_CHECK(repeats.size() >= self.sizes().size(), Shape,
              fmt::format("{}: `repeats` {} must have a number for each dimension of `self` {}", op,
                          to_string(repeats), to_string(self.sizes())));
  const size_t added = repeats.size() - self.sizes().size();
  // Every dimension as [1, size], whose first half is expanded.
  Dims view, wide, sizes;
  for (size_t d = 0; d < repeats.size(); ++d) {
    TENON_CHECK(repeats[d] >= 0, Value,
                fmt::format("{}: `repeats` must not be negative, got {}", op, to_string(repeats)));
    const int64_t size = d < added ? 1 : self.sizes()[d - added];
    for (const int64_t n : {int64_t{1}, size}) view.push_back(n);
    for (const int64_t n : {repeats[d], size}) wide.push_back(n);
    sizes.push_back(checked_product(repeats[d], size, op));
  }
  checked_numel(sizes, op);
  return moved(self.reshape(view).expand(wide), sizes);
}

/// The sizes before [C, H, W].
Dims channels_of(const Tensor& self, int64_t by, const char* op) {
  TENON_CHECK(self.dim() >= 3, Shape,
              fmt::format("{}: `self` must have 3 dimensions [C, H, W] or more, got {}", op,
                          to_string(self.sizes())));
  TENON_CHECK(by > 0, Value, fmt::format("{}: the factor must be greater than zero, got {}", op, by));
  return Dims(self.sizes().data(), self.sizes().size() - 3);
}

/// Permutes the last five dimensions of [batch.., 5 sizes], as `order` says from 0 to 4, and merges them to
/// `last`.
Tensor shuffled(const Tensor& self, const Dims& batch, IntArrayRef split, IntArrayRef order,
                IntArrayRef last) {
  Dims sizes = batch, dims, merged = batch;
  for (const int64_t n : split) sizes.push_back(n);
  for (size_t d = 0; d < batch.size(); ++d) dims.push_back(static_cast<int64_t>(d));
  for (const int64_t d : order) dims.push_back(static_cast<int64_t>(batch.size()) + d);
  for (const int64_t n : last) merged.push_back(n);
  const Tensor result = moved(self.reshape(sizes).permute(dims), merged);
  return shape::lies_channels_last(self.sizes(), self.strides()) && self.dim() == 4
             ? tenon::contiguous(result, MemoryFormat::ChannelsLast)
             : result;
}

}  // namespace

Tensor repeat(const Tensor& self, IntArrayRef repeats) { return repeated(self, repeats, "repeat"); }

Tensor tile(const Tensor& self, IntArrayRef dims) {
  Dims repeats(std::max(self.sizes().size(), dims.size()), 1);
  std::copy(dims.begin(), dims.end(), repeats.end() - dims.size());
  return repeated(self, repeats, "tile");
}

Tensor repeat_interleave(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  TENON_CHECK(repeats >= 0, Value,
              fmt::format("repeat_interleave: `repeats` must not be negative, got {}", repeats));
  const Tensor from = dim && self.dim() > 0 ? self : self.flatten(0, -1);
  const int64_t d = dim ? wrap_dim(*dim, self.dim(), "repeat_interleave") : 0;
  Dims wide = from.sizes().to_dims(), sizes = wide;
  sizes[at(d)] = checked_product(sizes[at(d)], repeats, "repeat_interleave");
  TENON_CHECK(!output_size || *output_size == sizes[at(d)], Value,
              fmt::format("repeat_interleave: `output_size` must be {}, got {}", sizes[at(d)],
                          output_size.value_or(0)));
  checked_numel(sizes, "repeat_interleave");
  wide.insert(at(d) + 1, repeats);
  return moved(from.unsqueeze(d + 1).expand(wide), sizes);
}

Tensor roll(const Tensor& self, IntArrayRef shifts, IntArrayRef dims) {
  TENON_CHECK(!shifts.empty(), Value, "roll: `shifts` must not be empty");
  if (dims.empty() && shifts.size() == 1) {
    const Dims flat{0};
    return tenon::_unsafe_view(ops::roll(self.flatten(0, -1), shifts, flat), self.sizes());
  }
  TENON_CHECK(shifts.size() == dims.size(), Value,
              fmt::format("roll: `shifts` {} and `dims` {} must have the same length", to_string(shifts),
                          to_string(dims)));
  TENON_CHECK(
      self.dim() > 0, Index,
      fmt::format("roll: `dims` {} of a `self` without dimensions; leave out `dims`", to_string(dims)));
  Tensor result = self;
  for (size_t i = 0; i < shifts.size(); ++i) {
    const int64_t d = wrap_dim(dims[i], self.dim(), "roll"), size = self.sizes()[at(d)];
    if (size == 0) continue;
    const int64_t start = ((size - shifts[i] % size) % size + size) % size;
    if (start == 0) continue;
    result = tenon::cat(std::array{result.narrow(d, start, size - start), result.narrow(d, 0, start)}, d);
  }
  return result.is_same(self) ? contiguous_clone(self) : result;
}

Tensor pixel_shuffle(const Tensor& self, int64_t upscale_factor) {
  const int64_t r = upscale_factor;
  const Dims batch = channels_of(self, r, "pixel_shuffle");
  const IntArrayRef last = spatial_sizes(self.sizes(), 3);
  const int64_t square = checked_product(r, r, "pixel_shuffle"), channels = last[0] / square;
  TENON_CHECK(
      last[0] % square == 0, Shape,
      fmt::format(
          "pixel_shuffle: the channels of `self` {} must be a multiple of the square of `upscale_factor` {}",
          to_string(self.sizes()), r));
  const int64_t height = checked_product(last[1], r, "pixel_shuffle"),
                width = checked_product(last[2], r, "pixel_shuffle");
  return shuffled(self, batch, {channels, r, r, last[1], last[2]}, {0, 3, 1, 4, 2},
                  {channels, height, width});
}

Tensor pixel_unshuffle(const Tensor& self, int64_t downscale_factor) {
  const int64_t r = downscale_factor;
  const Dims batch = channels_of(self, r, "pixel_unshuffle");
  const IntArrayRef last = spatial_sizes(self.sizes(), 3);
  TENON_CHECK(
      last[1] % r == 0 && last[2] % r == 0, Shape,
      fmt::format("pixel_unshuffle: height and width of `self` {} must be multiples of `downscale_factor` {}",
                  to_string(self.sizes()), r));
  const int64_t channels =
      checked_product(checked_product(r, r, "pixel_unshuffle"), last[0], "pixel_unshuffle");
  return shuffled(self, batch, {last[0], last[1] / r, r, last[2] / r, r}, {0, 2, 4, 1, 3},
                  {channels, last[1] / r, last[2] / r});
}

Tensor channel_shuffle(const Tensor& self, int64_t groups) {
  channels_of(self, groups, "channel_shuffle");
  const int64_t channels = self.sizes()[1];
  TENON_CHECK(channels % groups == 0, Shape,
              fmt::format("channel_shuffle: the channels of `self` {} must be a multiple of `groups` {}",
                          to_string(self.sizes()), groups));
  Dims split = self.sizes().to_dims();
  split[1] = groups;
  split.insert(2, channels / groups);
  return moved(self.reshape(split).transpose(1, 2), self.sizes());
}

}  // namespace tenon::ops
