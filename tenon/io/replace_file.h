// replace_file: how every writer of Tenon, in C++ and in Python, changes a file: completely or not at all.
// Independent of formats.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tenon/core/error.h"

namespace tenon::io {

using Bytes = std::span<const std::byte>;

/// The operating system refuses something about a path. In Python it is the OSError of that number, such as
/// FileNotFoundError.
class SystemError final : public FileError {
 public:
  /// `why` follows what the system says of `code`.
  SystemError(int code, std::string path, const std::string& why = {});

  int code() const noexcept { return code_; }
  const std::string& path() const noexcept { return path_; }
  /// What the system says, and why: the message without the path.
  const std::string& reason() const noexcept { return reason_; }

 private:
  SystemError(int code, std::string path, std::string reason, int);

  int code_;
  std::string path_, reason_;
};

/// Makes `parts`, one after another, the contents of the file at `path`.
///
/// An existing file stays intact until the new one is complete: the bytes go to another file in the same
/// folder, which takes the old one's place, permissions and owner once it has reached the disk. Of several
/// writers one wins whole. A symbolic link is followed and kept. What is no regular file (a pipe, a device)
/// is written in place.
///
/// Throws SystemError: for a file that may not be written, for a folder to which no file can be added, for a
/// full disk. The old file is then as it was, and nothing is left next to it.
void replace_file(const std::string& path, std::span<const Bytes> parts);

}  // namespace tenon::io
