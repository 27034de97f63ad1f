// Band: the inputs that some columns of Windows read, converted, with the zeros around them, so that every
// tap of neighbouring outputs is a run of contiguous elements. Used by the packing of this folder's products.
#pragma once

#include <vector>

#include "backends/cpu/conv/windows.h"
#include "backends/cpu/gemm/gemm_scratch.h"

namespace tenon::cpu {

/// Elements that may be read before and after a band; their values are undefined.
inline constexpr int64_t kBandSlack = 64;

class Band {
 public:
  /// What columns [first, last) read from the band, and where it is within a channel. `item`: bytes of the
  /// compute type. A band that may be in_place() has the slack of a copy only where there are columns.
  Band(const Windows& windows, int64_t first, int64_t last, int64_t item, bool may_be_in_place = false);

  /// Whether windows of one tap are read in place and not copied: then nothing follows the last
  /// column.
  bool in_place() const noexcept { return in_place_; }
  int64_t channel_elements() const noexcept { return channel_; }
  /// Copies channels [first, last) into memory of this thread, valid until it fills another band. Returns the
  /// first element of channel `first`; channels are channel_elements() apart. `has_zeros`: the memory has
  /// those around the inputs from a fill of as many channels.
  const void* fill(int64_t first, int64_t last, bool has_zeros = false) const;
  /// Element number of a tap from a column's own place, by tap.
  const std::vector<int64_t>& taps() const noexcept { return taps_; }
  /// The place of each column: offsets[i] of column first + i.
  const std::vector<int64_t>& columns() const noexcept { return columns_; }

 private:
  /// A run of inputs along one axis: a band's coordinate `to + i` holds input `from + i * step`.
  struct Strip {
    int64_t to, from, step, count;
  };
  /// Outputs of one batch entry and depth: lines [first_line, first_line + count) from row `first` on.
  struct Plane {
    int64_t batch, depth, row, count, first_line;
  };

  bool lies_in_order() const noexcept;
  void lay_out_width(int64_t first_output, int64_t outputs);
  void lay_out_rows(int64_t lines);
  /// Copies what one strip of rows and one of columns have of `channels` channels.
  void copy(char* to, int64_t from, const Strip& rows, const Strip& columns, int64_t channels,
            bool has_zeros) const;

  const Windows& w_;
  int64_t item_;
  bool in_place_;
  std::vector<Plane> planes_;
  std::vector<Strip> width_strips_, row_strips_;  // the latter for planes_[0], then planes_[1], ...
  size_t strips_per_plane_ = 1;
  std::vector<int64_t> width_taps_, row_taps_, line_rows_;
  int64_t width_ = 0, rows_ = 0, channel_ = 0;
  std::vector<int64_t> taps_, columns_;
};

}  // namespace tenon::cpu
