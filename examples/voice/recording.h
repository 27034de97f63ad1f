// Recordings: 16-bit mono WAV files of 16,000 samples a second, and recordings that are computed.
// Used by both programs. Independent of Tenon's operators.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

constexpr int kRate = 16000;  ///< Samples a second.
constexpr int kChunk = 512;   ///< Samples that a detector takes at once.

/// Samples from -1 to 1. Throws tenon::Error{Value} that names the file and what it has instead.
std::vector<float> read_wav(const std::string& path);
void write_wav(const std::string& path, const std::vector<float>& samples);

/// A recording with labels: whether each chunk is of speech.
struct Recording {
  std::vector<float> samples;
  std::vector<bool> is_speech;
};

/// `chunks` chunks of a voice that says syllables, and of pauses with noise and mains hum. The same for the
/// same seed. The voice is pulses through three resonances, as of a vowel (Klatt 1980, "Software for a
/// cascade/parallel formant synthesizer").
Recording make_recording(uint32_t seed, int chunks);
