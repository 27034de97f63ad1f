// Picture: the probability of speech over time above the loudness, as SVG.
#pragma once

#include <span>
#include <string>

#include "segments.h"

/// Replaces the file. Throws tenon::Error{Value} where it cannot be written.
void draw(const std::string& path, std::span<const float> samples, std::span<const float> probabilities,
          std::span<const Segment> segments, const SegmentOptions& options = {});
