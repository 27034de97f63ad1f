#include "backends/cpu/conv/band.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/copy/row_kernels.h"

namespace tenon::cpu {
namespace {

/// Longer than what fits into memory, and short enough to be added up.
constexpr int64_t kLongest = int64_t{1} << 40;

}  // namespace

Band::Band(const Windows& windows, int64_t first, int64_t last, int64_t item, bool may_be_in_place)
    : w_(windows), item_(item), in_place_(may_be_in_place && lies_in_order()) {
  if (in_place_) {
    channel_ = w_.channel_stride / item_;
    taps_.push_back(0);
    const PositionStrides strides{w_.batch_stride, {w_.axes[0].stride, w_.axes[1].stride, w_.axes[2].stride}};
    Positions at(w_, first);
    columns_.resize(static_cast<size_t>(last - first));
    for (int64_t& c : columns_) c = at.offset(strides) / item_, at.advance(1);
    return;
  }
  const int64_t outputs = w_.axes[2].outputs, height = w_.axes[1].outputs;
  const int64_t first_line = first / outputs, lines = (last - 1) / outputs + 1 - first_line;
  const int64_t first_output = lines == 1 ? first % outputs : 0;
  for (int64_t line = 0; line < lines;) {
    const Positions at(w_, (first_line + line) * outputs);
    const int64_t count = std::min(height - at[1], lines - line);
    planes_.push_back({at.batch(), at[0], at[1], count, line});
    line += count;
  }
  lay_out_width(first_output, lines == 1 ? last - first : outputs);
  lay_out_rows(lines);
  const int64_t slab = rows_ * width_;
  channel_ = w_.axes[0].taps.count * slab;
  for (int64_t d = 0; d < w_.axes[0].taps.count; ++d) {
    for (const int64_t row : row_taps_) {
      for (const int64_t column : width_taps_) taps_.push_back(d * slab + row * width_ + column);
    }
  }
  columns_.resize(static_cast<size_t>(last - first));
  int64_t line = 0, output = first % outputs;
  for (int64_t& c : columns_) {
    c = line_rows_[static_cast<size_t>(line)] * width_ + output - first_output;
    if (++output == outputs) output = 0, ++line;
  }
}

/// One tap that reads each output's own input, in the order of memory.
bool Band::lies_in_order() const noexcept {
  if (!w_.same_type || w_.taps() != 1 || w_.channel_stride % item_ != 0) return false;
  int64_t extent = item_;
  for (size_t a = kWindowAxes; a-- > 0;) {
    const WindowAxis& axis = w_.axes[a];
    if (axis.taps.first != 0 || axis.outputs > axis.inputs) return false;
    if (axis.outputs > 1 && (axis.step != 1 || axis.stride < extent || axis.stride % item_ != 0))
      return false;
    if (axis.outputs > 1) extent = axis.stride * axis.outputs;
    if (a == 2 && axis.outputs > 1 && axis.stride != item_) return false;
  }
  return w_.batch == 1 || (w_.batch_stride >= extent && w_.batch_stride % item_ == 0);
}

// Taps share what they read where that is less than an own copy for each: of a step s, inputs that are s
// apart are neighbours in the band, one strip for each remainder that a tap has.
void Band::lay_out_width(int64_t first_output, int64_t outputs) {
  const WindowAxis& axis = w_.axes[2];
  const int64_t step = axis.step, lowest = axis.taps.lowest();
  // With more remainders than that, taps share next to nothing.
  const int64_t remainders = std::min(step, axis.taps.span());
  const bool few = remainders <= 64 + 4 * axis.taps.count;
  std::vector<int64_t> strip_of(static_cast<size_t>(few ? remainders : 0), -1);
  int64_t strips = 0;
  for (int64_t j = 0; few && j < axis.taps.count; ++j) {
    int64_t& strip = strip_of[static_cast<size_t>((axis.taps.shift(j) - lowest) % step)];
    if (strip < 0) strip = strips++;
  }
  const int64_t length = std::min(kLongest, outputs + (axis.taps.span() - 1) / step);
  if (few && strips * length <= axis.taps.count * outputs) {
    width_ = strips * length;
    for (int64_t r = 0; r < static_cast<int64_t>(strip_of.size()); ++r) {
      const int64_t strip = strip_of[static_cast<size_t>(r)];
      if (strip >= 0)
        width_strips_.push_back({strip * length, first_output * step + lowest + r, step, length});
    }
    for (int64_t j = 0; j < axis.taps.count; ++j) {
      const int64_t distance = axis.taps.shift(j) - lowest;
      width_taps_.push_back(strip_of[static_cast<size_t>(distance % step)] * length + distance / step);
    }
  } else {
    width_ = axis.taps.count * outputs;
    for (int64_t j = 0; j < axis.taps.count; ++j) {
      width_strips_.push_back({j * outputs, first_output * step + axis.taps.shift(j), step, outputs});
      width_taps_.push_back(j * outputs);
    }
  }
}

void Band::lay_out_rows(int64_t lines) {
  const WindowAxis& axis = w_.axes[1];
  const int64_t lowest = axis.taps.lowest(), span = axis.taps.span();
  int64_t shared = 0;
  for (const Plane& p : planes_) shared += std::min(kLongest, (p.count - 1) * axis.step + span);
  if (shared <= axis.taps.count * lines) {
    int64_t row = 0;
    for (const Plane& p : planes_) {
      const int64_t count = (p.count - 1) * axis.step + span;
      row_strips_.push_back({row, p.row * axis.step + lowest, 1, count});
      for (int64_t i = 0; i < p.count; ++i) line_rows_.push_back(row + i * axis.step);
      row += count;
    }
    for (int64_t j = 0; j < axis.taps.count; ++j) row_taps_.push_back(axis.taps.shift(j) - lowest);
    rows_ = shared;
  } else {
    strips_per_plane_ = static_cast<size_t>(axis.taps.count);
    for (const Plane& p : planes_) {
      for (int64_t j = 0; j < axis.taps.count; ++j) {
        row_strips_.push_back(
            {j * lines + p.first_line, p.row * axis.step + axis.taps.shift(j), axis.step, p.count});
      }
    }
    for (int64_t i = 0; i < lines; ++i) line_rows_.push_back(i);
    for (int64_t j = 0; j < axis.taps.count; ++j) row_taps_.push_back(j * lines);
    rows_ = axis.taps.count * lines;
  }
}

namespace {

/// The i of [0, count) whose from + i * step is in [0, size).
struct Inside {
  int64_t first, last;
  Inside(int64_t from, int64_t step, int64_t count, int64_t size) noexcept {
    first = from >= 0 ? 0 : std::min(count, (-from + step - 1) / step);
    last = from >= size ? first : std::clamp((size - from + step - 1) / step, first, count);
  }
};

// Runs of zeros next to lines are short: a call of memset for each costs more than the line.
#if defined(__GNUC__) && !defined(__clang__)
[[gnu::optimize("no-tree-loop-distribute-patterns")]]
#endif
void zero_words(char* to, int64_t bytes) {
  auto* words = reinterpret_cast<uint32_t*>(to);
  for (int64_t i = 0; i < bytes / 4; ++i) words[i] = 0;
}

void zero(char* to, int64_t bytes) {
  if (bytes <= 64)
    zero_words(to, bytes);
  else
    std::memset(to, 0, static_cast<size_t>(bytes));
}

}  // namespace

void Band::copy(char* to, int64_t from, const Strip& rows, const Strip& columns, int64_t channels,
                bool has_zeros) const {
  const WindowAxis &height = w_.axes[1], &width = w_.axes[2];
  const Inside down(rows.from, rows.step, rows.count, height.inputs),
      across(columns.from, columns.step, columns.count, width.inputs);
  const int64_t row_bytes = width_ * item_, channel_bytes = channel_ * item_;
  const int64_t left = across.first * item_, right = (columns.count - across.last) * item_;
  char* strip = to + rows.to * row_bytes + columns.to * item_;
  // Where lines follow each other, what is after one and before the next is one run.
  const bool whole = columns.count == width_;
  for (int64_t c = 0; c < channels && !has_zeros; ++c) {
    char* first = strip + c * channel_bytes;
    const auto zero_rows = [&](int64_t row, int64_t end) {
      if (whole) return zero(first + row * row_bytes, (end - row) * row_bytes);
      for (; row < end; ++row) zero(first + row * row_bytes, columns.count * item_);
    };
    zero_rows(0, down.first);
    if (whole && down.first < down.last) {
      zero(first + down.first * row_bytes, left);
      for (int64_t r = down.first + 1; r < down.last; ++r) zero(first + r * row_bytes - right, right + left);
      zero(first + down.last * row_bytes - right, right);
    } else {
      for (int64_t r = down.first; r < down.last; ++r) {
        zero(first + r * row_bytes, left);
        zero(first + r * row_bytes + across.last * item_, right);
      }
    }
    zero_rows(down.last, rows.count);
  }
  if (down.first == down.last || across.first == across.last) return;
  const char* source = w_.data + from + (rows.from + down.first * rows.step) * height.stride +
                       (columns.from + across.first * columns.step) * width.stride;
  char* target = strip + down.first * row_bytes + left;
  const int64_t down_step = rows.step * height.stride, across_step = columns.step * width.stride;
  if (channels == 1) {
    w_.convert(target, {item_, row_bytes}, source, {across_step, down_step}, across.last - across.first,
               down.last - down.first);
    return;
  }
  const auto transpose = row_kernels().transpose[element_size_index(item_)];
  for (int64_t r = down.first; r < down.last; ++r, target += row_bytes, source += down_step) {
    transpose(target, channel_bytes, source, across_step, static_cast<size_t>(across.last - across.first),
              static_cast<size_t>(channels));
  }
}

const void* Band::fill(int64_t first, int64_t last, bool has_zeros) const {
  if (in_place_) return w_.data + first * w_.channel_stride;
  const int64_t elements = (last - first) * channel_ + 2 * kBandSlack;
  char* memory = static_cast<char*>(gemm_scratch(GemmScratch::Band, static_cast<size_t>(elements * item_)));
  char* to = memory + kBandSlack * item_;
  // What is there may be denormal, which arithmetic is slow with.
  if (!has_zeros)
    std::memset(to + (last - first) * channel_ * item_, 0, static_cast<size_t>(kBandSlack * item_));
  const WindowAxis& depth = w_.axes[0];
  // Channels that are side by side are turned in registers, all at once.
  const bool together = w_.same_type && w_.channel_stride == w_.item && last - first > 1;
  const int64_t at_once = together ? last - first : 1;
  for (int64_t c = first; c < last; c += at_once) {
    char* plane_to = to + (c - first) * channel_ * item_;
    for (int64_t d = 0; d < depth.taps.count; ++d, plane_to += rows_ * width_ * item_) {
      for (size_t p = 0; p < planes_.size(); ++p) {
        const Plane& plane = planes_[p];
        const int64_t input = plane.depth * depth.step + depth.taps.shift(d);
        const int64_t from = plane.batch * w_.batch_stride + c * w_.channel_stride + input * depth.stride;
        for (size_t s = 0; s < strips_per_plane_; ++s) {
          const Strip& rows = row_strips_[p * strips_per_plane_ + s];
          if (input < 0 || input >= depth.inputs) {
            for (int64_t i = 0; i < at_once && !has_zeros; ++i)
              zero(plane_to + (i * channel_ + rows.to * width_) * item_, rows.count * width_ * item_);
            continue;
          }
          for (const Strip& columns : width_strips_) copy(plane_to, from, rows, columns, at_once, has_zeros);
        }
      }
    }
  }
  return to;
}

}  // namespace tenon::cpu
