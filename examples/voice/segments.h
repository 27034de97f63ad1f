// Segments: from the probability of speech in each chunk to the parts of a recording that are speech.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

/// In samples: `end` is the first one after it.
struct Segment {
  long begin = 0, end = 0;
};

/// The defaults of the package silero-vad.
struct SegmentOptions {
  double enter = 0.5;             ///< Speech begins with a chunk of at least this probability,
  double leave = 0.35;            ///< and ends with one below this,
  double shortest_silence = 0.1;  ///< if no speech follows for so many seconds.
  double shortest_speech = 0.25;  ///< Shorter segments are left out.
  double padding = 0.03;          ///< Seconds added on both sides, as far as the silence has them.
};

std::vector<Segment> find_segments(std::span<const float> probabilities, size_t num_samples,
                                   const SegmentOptions& options = {});
