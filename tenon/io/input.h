// Input: the bytes that a reader of weights reads, of a file or of memory, and the storages made of them.
// Used by the readers of this room. Knows nothing of formats.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/core/descriptor.h"
#include "tenon/core/storage.h"
#include "tenon/io/replace_file.h"

namespace tenon::io {

class Mapping;

class Input {
 public:
  /// A file. With `map`, storages are parts of the mapped file where their alignment allows. A pipe is read
  /// to its end. Throws SystemError.
  static Input file(const std::string& path, bool map = false);
  /// Memory, which must outlive the Input but not the storages.
  static Input memory(Bytes bytes, std::string name);

  /// What error messages call it: the path.
  const std::string& name() const noexcept { return name_; }
  uint64_t size() const noexcept { return size_; }
  bool is_mapped() const noexcept { return static_cast<bool>(mapping_); }

  /// Bytes of the input. Throws Error{Value} beyond its end, and where a file has become shorter.
  std::string text(uint64_t offset, size_t size) const;
  void read(uint64_t offset, std::span<std::byte> to) const;

  /// A part of the input that becomes a storage; its address is a multiple of `alignment`, a power of two.
  struct Part {
    uint64_t offset;
    uint64_t size;
    size_t alignment;
  };
  /// The grain of a parallel_for over parts: one thread where there is little to do.
  static int64_t grain(std::span<const Part> parts) noexcept;
  /// A storage for each part: read by several threads, or mapped.
  std::vector<Storage> storages(std::span<const Part> parts) const;

  /// Throws Error{Value}: "load: NAME: at byte OFFSET: what".
  [[noreturn]] void refuse(uint64_t offset, const std::string& what) const;

 private:
  Input() = default;
  void check(uint64_t offset, uint64_t size) const;

  std::string name_;
  uint64_t size_ = 0;
  Descriptor file_;
  std::shared_ptr<Mapping> mapping_;
  std::vector<std::byte> held_;  // of a pipe
  Bytes memory_;                 // where there is no file_
};

}  // namespace tenon::io
