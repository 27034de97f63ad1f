#include "load_digits.h"

#include <zlib.h>

#include <charconv>
#include <memory>
#include <vector>

namespace {

constexpr int kPixels = 64;

[[noreturn]] void fail(const std::string& path, int line, const std::string& what) {
  throw tenon::Error(tenon::ErrorKind::Value, path + (line ? ":" + std::to_string(line) : "") + ": " + what);
}

}  // namespace

Digits load_digits(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), &gzclose);
  if (!file) fail(path, 0, "cannot be opened");

  std::vector<float> pixels;
  std::vector<int64_t> labels;
  char line[1024];
  for (int row = 1; gzgets(file.get(), line, sizeof line); ++row) {
    const char* at = line;
    const char* end = line + std::char_traits<char>::length(line);
    for (int column = 0; column <= kPixels; ++column) {
      int value = -1;
      const auto [next, error] = std::from_chars(at, end, value);
      const int most = column < kPixels ? 16 : 9;
      if (error != std::errc() || value < 0 || value > most) {
        fail(path, row,
             "column " + std::to_string(column + 1) + ": expected an integer from 0 to " +
                 std::to_string(most));
      }
      const char separator = next < end ? *next : '\n';
      if (separator != (column < kPixels ? ',' : '\n')) fail(path, row, "expected 65 columns");
      if (column < kPixels)
        pixels.push_back(static_cast<float>(value) / 16);
      else
        labels.push_back(value);
      at = next + 1;
    }
  }
  int error = 0;
  const char* message = gzerror(file.get(), &error);
  if (error < 0) fail(path, 0, message);
  if (labels.empty()) fail(path, 0, "no rows");

  const auto n = static_cast<int64_t>(labels.size());
  return {tenon::tensor(pixels).view({n, kPixels}), tenon::tensor(labels)};
}
