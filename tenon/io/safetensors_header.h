// The header of a safetensors file: which tensors it holds, and where. Of this room alone.
// The format: https://github.com/huggingface/safetensors#format
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tenon/core/dims.h"
#include "tenon/core/dtype.h"
#include "tenon/io/input.h"

namespace tenon::io {

struct SafetensorsHeader {
  struct Entry {
    std::string name;
    std::optional<DType> dtype;  // none: Tenon lacks what dtype_name says, and the tensor cannot be read
    std::string dtype_name;
    Dims sizes;
    uint64_t begin, end;  // of its bytes, counted from the end of the header
  };

  std::vector<Entry> entries;                                 // in the order of the header
  std::vector<std::pair<std::string, std::string>> metadata;  // without the checksum
  bool has_metadata = false;  // be it empty; not where it is the checksum alone
  Input::Text held;           // where the header was read: the bytes before the data, with the length
  std::string written;        // the same of one that was made
  /// Where the checksum's digits are in the text. There in every file that Tenon has written, and only there.
  std::optional<size_t> checksum;

  std::string_view text() const noexcept { return written.empty() ? held.view() : written; }
};

inline constexpr size_t kChecksumDigits = 16;

/// The name of a dtype in the format; null for one that it does not have.
const char* safetensors_name(DType t) noexcept;

/// Reads and checks a header: the tensors fill the rest of the input without gaps and without overlaps.
/// Throws Error{Value} for anything else. How many bytes a tensor of a dtype that Tenon lacks should take is
/// not known. As the reference implementation does, it permits blanks before the header, and passes over
/// fields of a tensor that it does not know.
SafetensorsHeader read_safetensors_header(const Input& input);

/// The bytes before the data, of a multiple of 64. The checksum's digits are zeros. Throws Error{Value} for a
/// name that is no UTF-8, or is taken, and for the name "__metadata__".
SafetensorsHeader make_safetensors_header(std::vector<SafetensorsHeader::Entry> entries,
                                          std::vector<std::pair<std::string, std::string>> metadata);

}  // namespace tenon::io
