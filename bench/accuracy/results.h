// What was measured, in memory and in a file with one line for each measurement, so that a long run can go on
// where it was stopped. Used by main.cc and page.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/accuracy/error.h"

namespace tenon::accuracy {

/// One function in one dtype.
struct Measurement {
  std::string function;
  std::string dtype;
  /// Of float32: every how many numbers. Otherwise how many samples were asked for.
  uint64_t effort = 0;
  double seconds = 0;  ///< Of processor time.
  Tally tally;
};

class Results {
 public:
  /// Reads `path` if it exists; an empty one keeps results in memory only. Throws Error{Value} for a line
  /// that is no measurement.
  explicit Results(std::string path);

  const Measurement* find(std::string_view function, std::string_view dtype) const noexcept;
  /// Replaces an older one of the same function and dtype, and writes it to the file.
  void add(Measurement m);
  const std::vector<Measurement>& all() const noexcept { return all_; }

 private:
  void insert(Measurement m);

  std::string path_;
  std::vector<Measurement> all_;
};

}  // namespace tenon::accuracy
