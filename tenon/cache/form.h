// The form of a file in the plan cache: a header with a checksum, who wrote it and for which machine, what it
// is about, and the value. Used by the folder alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/expr/key.h"

namespace tenon::cache {

using Bytes = std::span<const std::byte>;

/// Why a value was not found.
enum class Miss : uint8_t {
  None,  ///< It was.
  Absent,
  Unreadable,  ///< The system refuses, or it is no regular file.
  Owner,       ///< It is another user's, or others may write it.
  Foreign,
  CutOff,
  Altered,
  Build,
  Machine,
  Key,  ///< It was stored under another key.
};
inline constexpr int kNumMisses = 10;
/// "the file is cut off".
std::string_view name(Miss miss) noexcept;

/// What a value holds for, besides its key; a reader with others does not take it.
struct Holder {
  std::string build;    ///< Of the library that wrote it.
  std::string machine;  ///< Its instruction set.
};

/// Of a whole file.
struct Contents {
  expr::Key key;
  std::string_view build, machine, about;
  Bytes value;
  Miss miss = Miss::None;  ///< Foreign, CutOff, Altered: and nothing else is known. Build, Machine.
};

/// Of one value, with what goes with it.
inline constexpr uint64_t kLargestValue = uint64_t{16} << 20;
inline constexpr size_t kHeaderBytes = 64;

std::vector<std::byte> to_form(const expr::Key& key, const Holder& writer, std::string_view about,
                               Bytes value);
Contents from_form(Bytes file, const Holder& reader) noexcept;

}  // namespace tenon::cache
