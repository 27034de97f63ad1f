// Mapping: a file whose pages are memory of this process, and storages that are parts of it. Of this room
// alone.
//
// Writing to a storage copies its page and never reaches the file. A program that makes the file shorter
// takes pages away, and the system sends SIGBUS to their readers. A handler, which is installed with the
// first mapping and passes on what is not its own, gives the reader zeros instead. The mapping remembers it:
// every later access to one of its storages throws FileError, and so does the making of another.
#pragma once

#include <csignal>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "tenon/core/recording.h"
#include "tenon/core/storage.h"

namespace tenon::io {

class Mapping final : public PendingWork, public std::enable_shared_from_this<Mapping> {
 public:
  /// Maps the first `size` bytes, at least one. Throws SystemError.
  static std::shared_ptr<Mapping> make(int file, size_t size, const std::string& path);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  /// Bytes of the file as a storage, which keeps the mapping alive. Throws FileError once the file was found
  /// cut short.
  Storage storage(size_t offset, size_t size);
  /// All of it, while the mapping lives; zeros where the file was cut short, which `check` finds.
  std::string_view bytes() const noexcept { return {begin_, size_}; }
  /// Looks whether `file`, the one that is mapped, was cut short. Throws FileError if it was, and every
  /// access to a storage of the mapping does so from then on.
  void check(int file);

  /// What an access to a storage does once the file was found cut short: throws FileError.
  void materialize(StorageImpl& storage) override;
  bool has_failed() const noexcept override { return true; }

 private:
  struct Part;
  Mapping(char* begin, size_t size, std::string path) : begin_(begin), size_(size), path_(std::move(path)) {}
  [[noreturn]] void throw_cut() const;
  /// With the lock: remembers that the file was cut short, for storages that there are and for later ones.
  void lose() noexcept;
  static bool replace_lost_pages(const char* address) noexcept;
  static void handle(int number, siginfo_t* info, void* context);

  char* const begin_;
  const size_t size_;
  const std::string path_;
  // What the handler walks; guarded by the lock in mapping.cc.
  Part* parts_ = nullptr;
  bool is_cut_ = false;
  Mapping* next_ = nullptr;
  static Mapping* first_;
};

}  // namespace tenon::io
