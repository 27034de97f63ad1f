// Input: the bytes that a reader of weights reads, of a file, of a stream or of memory, and the storages made
// of them. Used by the readers of this room, and by the Python package for open files. Independent of
// formats.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/core/descriptor.h"
#include "tenon/core/storage.h"
#include "tenon/io/replace_file.h"

namespace tenon::io {

class Mapping;

/// Puts the next bytes of a stream into a buffer and returns how many; 0 at its end.
using StreamReader = std::function<size_t(std::span<std::byte>)>;

class Input {
 public:
  /// A file. With `map`, storages are parts of the mapped file where their alignment allows. What is no
  /// regular file, such as a pipe or a device, is a stream. Throws SystemError.
  static Input file(const std::string& path, bool map = false);
  /// A stream is read as far as is asked for and no further: one without end is refused by its first bytes.
  static Input stream(StreamReader reader, std::string name);
  /// Memory, which must outlive the Input but not the storages.
  static Input memory(Bytes bytes, std::string name);
  Input(Input&&) noexcept;
  Input& operator=(Input&&) noexcept;
  ~Input();

  /// What error messages call it: the path.
  const std::string& name() const noexcept { return name_; }
  /// Reads a stream to its end.
  uint64_t size() const;
  /// Whether there are so many bytes.
  bool has(uint64_t size) const;
  /// How much of a stream has been read.
  uint64_t taken() const noexcept;
  bool is_mapped() const noexcept { return static_cast<bool>(mapping_); }

  /// Bytes of the input, which are copied. Throws Error{Value} beyond its end, and where a file has become
  /// shorter.
  std::string text(uint64_t offset, uint64_t size) const;
  void read(uint64_t offset, std::span<std::byte> to) const;

  /// Bytes of the input, which are copied where it is a small file, and mapped where it is a large one.
  class Text {
   public:
    /// Valid while the input lives and reads no more.
    std::string_view view() const noexcept;
    /// Throws FileError if a file that is mapped was cut short: what was seen of it may have been zeros.
    void check_whole() const;

   private:
    friend class Input;
    std::string own_;
    std::shared_ptr<Mapping> mapping_;  // of a large file
    const Input* input_ = nullptr;      // where they are not copied
    uint64_t offset_ = 0, size_ = 0;
  };
  Text part(uint64_t offset, uint64_t size) const;

  /// A part of the input that becomes a storage; its address is a multiple of `alignment`, a power of two.
  struct Part {
    uint64_t offset;
    uint64_t size;
    size_t alignment;
  };
  /// The grain of a parallel_for over parts: one thread where there is little to do.
  static int64_t grain(std::span<const Part> parts) noexcept;
  /// A storage for each part: read by several threads, or mapped. Throws FileError where a mapped file was
  /// cut short.
  std::vector<Storage> storages(std::span<const Part> parts) const;

  /// Throws Error{Value}: "load: NAME: at byte OFFSET: what".
  [[noreturn]] void refuse(uint64_t offset, const std::string& what) const;

 private:
  struct Stream;
  Input();
  void check(uint64_t offset, uint64_t size) const;
  /// What is in memory, of memory or a stream.
  Bytes held() const noexcept;

  std::string name_;
  uint64_t size_ = 0;  // of what is no stream
  Descriptor file_;
  std::shared_ptr<Mapping> mapping_;
  std::unique_ptr<Stream> stream_;
  Bytes memory_;
};

}  // namespace tenon::io
