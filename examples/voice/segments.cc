#include "segments.h"

#include <algorithm>
#include <optional>

#include "recording.h"

std::vector<Segment> find_segments(std::span<const float> probabilities, size_t num_samples,
                                   const SegmentOptions& options) {
  std::vector<Segment> found;
  const auto length = static_cast<long>(num_samples);
  std::optional<long> begin, silence;  // of the segment, and of the silence that may end it
  const auto close = [&](long end) {
    if (static_cast<double>(end - *begin) > options.shortest_speech * kRate) found.push_back({*begin, end});
    begin.reset();
    silence.reset();
  };
  for (size_t i = 0; i < probabilities.size(); ++i) {
    const auto at = static_cast<long>(i) * kChunk;
    const double probability = probabilities[i];
    if (probability >= options.enter) {
      silence.reset();
      if (!begin) begin = at;
    } else if (begin && probability < options.leave) {
      if (!silence) silence = at;
      if (static_cast<double>(at - *silence) >= options.shortest_silence * kRate) close(*silence);
    }
  }
  if (begin) close(length);

  const auto padding = static_cast<long>(options.padding * kRate);
  for (size_t i = 0; i < found.size(); ++i) {
    // Neighbours that are closer than two paddings share the silence between them.
    if (i == 0) found[i].begin = std::max(0L, found[i].begin - padding);
    const bool is_last = i + 1 == found.size();
    const long gap = is_last ? length - found[i].end : found[i + 1].begin - found[i].end;
    const long added = is_last ? std::min(gap, padding) : std::min(gap / 2, padding);
    found[i].end += added;
    if (!is_last) found[i + 1].begin -= added;
  }
  return found;
}
