#include "bench/accuracy/results.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tenon/core/error.h"

namespace tenon::accuracy {

namespace {

std::string line_of(const Measurement& m) {
  const Tally& t = m.tally;
  return fmt::format("{} {} {} {:.1f} {:a} {:a} {:a} {:a} {} {} {} {} {}\n", m.function, m.dtype, m.effort,
                     m.seconds, t.worst, t.at[0], t.at[1], t.got, t.inputs, t.not_nearest, t.wrong_class,
                     t.differences, t.without_fma);
}

// Streams do not read hexadecimal floating point, strtod does.
bool read(std::istringstream& in, double& value) {
  std::string word;
  char* end = nullptr;
  if (!(in >> word)) return false;
  value = std::strtod(word.c_str(), &end);
  return *end == 0;
}

}  // namespace

Results::Results(std::string path) : path_(std::move(path)) {
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    Measurement m;
    Tally& t = m.tally;
    const bool ok = (in >> m.function >> m.dtype >> m.effort) && read(in, m.seconds) && read(in, t.worst) &&
                    read(in, t.at[0]) && read(in, t.at[1]) && read(in, t.got) &&
                    (in >> t.inputs >> t.not_nearest >> t.wrong_class >> t.differences >> t.without_fma);
    TENON_CHECK(ok, Value, fmt::format("{} holds a line that is no measurement: {}", path_, line));
    insert(std::move(m));
  }
}

const Measurement* Results::find(std::string_view function, std::string_view dtype) const noexcept {
  for (const Measurement& m : all_) {
    if (m.function == function && m.dtype == dtype) return &m;
  }
  return nullptr;
}

void Results::insert(Measurement m) {
  std::erase_if(all_, [&](const Measurement& o) { return o.function == m.function && o.dtype == m.dtype; });
  all_.push_back(std::move(m));
}

void Results::add(Measurement m) {
  if (!path_.empty()) std::ofstream(path_, std::ios::app) << line_of(m);
  insert(std::move(m));
}

}  // namespace tenon::accuracy
