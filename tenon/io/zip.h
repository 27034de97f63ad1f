// Zip archives whose entries are stored as they are: where each entry's bytes are, zip64 included. Of this
// room alone. The format: PKWARE's APPNOTE.TXT, 6.3.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tenon/io/input.h"

namespace tenon::io {

class Zip {
 public:
  struct Entry {
    uint64_t header;  // where the entry begins in the input
    uint64_t offset;  // of its bytes
    uint64_t size;
    uint32_t crc;
    std::string problem;  // why the bytes are not readable; empty where they are
  };

  /// Reads the directory. Throws Error{Value} for an archive that is damaged, has parts in other files, or
  /// has entries that overlap.
  explicit Zip(const Input& input);

  const Input& input() const noexcept { return input_; }
  const std::unordered_map<std::string, Entry>& entries() const noexcept { return entries_; }
  /// Null where the archive has none of this name.
  const Entry* find(std::string_view name) const {
    const auto found = entries_.find(std::string(name));
    return found == entries_.end() ? nullptr : &found->second;
  }
  /// Throws Error{Value} for an entry that is compressed or encrypted.
  void check_readable(const Entry& entry) const;
  /// The bytes of an entry, checked by its CRC-32. Throws Error{Value}.
  Input::Text text(const std::string& name, const Entry& entry) const;
  /// Throws Error{Value} unless bytes of this sum are the entry's.
  void check(const std::string& name, const Entry& entry, uint32_t crc) const;

 private:
  void check_places() const;

  const Input& input_;
  std::unordered_map<std::string, Entry> entries_;
  bool has_sums_ = false;  // PyTorch writes zeros where it computes none
};

}  // namespace tenon::io
