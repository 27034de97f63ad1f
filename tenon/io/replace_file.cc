#include "tenon/io/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>

#include "tenon/core/descriptor.h"
#include "tenon/core/interrupt.h"
#include "tenon/io/wait.h"

namespace tenon::io {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPiece = size_t{1} << 26;  // between two questions for an interrupt

/// With `waits`, the file is a pipe or a device that may take nothing for a while.
void write_all(int file, std::span<const Bytes> parts, const std::string& path, bool waits = false) {
  for (Bytes left : parts) {
    while (!left.empty()) {
      if (waits) wait_for(file, POLLOUT, path);
      check_interrupt();
      const auto written = write(file, left.data(), std::min(left.size(), kPiece));
      if (written < 0 && (errno == EINTR || (waits && errno == EAGAIN))) continue;
      if (written < 0) throw SystemError(errno, path);
      left = left.subspan(static_cast<size_t>(written));
    }
  }
}

/// Where a path leads through symbolic links, whether or not something is there.
std::string followed(const std::string& path) {
  constexpr int kMostLinks = 40;  // the system's own limit
  fs::path at = path;
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code no_link;
    const fs::path target = fs::read_symlink(at, no_link);
    if (no_link) return at.string();
    at = target.is_absolute() ? target : at.parent_path() / target;
  }
  throw SystemError(ELOOP, path);
}

std::optional<struct stat> status_of(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0) return status;
  if (errno != ENOENT) throw SystemError(errno, path);
  return std::nullopt;
}

/// Gives a file the owner and the permissions of an old one, as far as the process may.
void take_after(int file, const struct stat& old) {
  struct stat now;
  if (fstat(file, &now) != 0) return;
  if (now.st_uid != old.st_uid || now.st_gid != old.st_gid) {
    if (fchown(file, old.st_uid, old.st_gid) != 0 && fchown(file, static_cast<uid_t>(-1), old.st_gid) != 0) {
      // It stays ours, as the files that the process makes are.
    }
  }
  (void)fchmod(file, old.st_mode & 0777);
}

/// The new file, which is there only once it has a name.
class NewFile {
 public:
  /// `given` is the path that errors name.
  NewFile(const std::string& folder, const std::string& given) : given_(given) {
#ifdef O_TMPFILE
    // Without a name, so that a process that is killed leaves nothing.
    if (access("/proc/self/fd", F_OK) == 0)
      file_ = Descriptor(open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
#endif
    std::random_device draw;
    name_ = (fs::path(folder) / fmt::format(".tenon-{:08x}{:08x}", draw(), draw())).string();
    if (file_) return;
    file_ = Descriptor(open(name_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666));
    if (!file_) {
      const bool refused = errno == EACCES || errno == EROFS || errno == EPERM;
      throw SystemError(errno, given_, refused ? "no file can be added to its folder" : "");
    }
    named_ = true;
  }
  ~NewFile() {
    if (named_) unlink(name_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int get() const noexcept { return file_.get(); }

  /// Takes the place of whatever is at `path`.
  void install(const std::string& path) {
    if (fsync(file_.get()) != 0) throw SystemError(errno, given_);
    if (!named_) {
      const std::string source = fmt::format("/proc/self/fd/{}", file_.get());
      if (linkat(AT_FDCWD, source.c_str(), AT_FDCWD, name_.c_str(), AT_SYMLINK_FOLLOW) != 0)
        throw SystemError(errno, given_);
      named_ = true;
    }
    if (rename(name_.c_str(), path.c_str()) != 0) throw SystemError(errno, given_);
    named_ = false;
  }

 private:
  const std::string& given_;
  std::string name_;
  Descriptor file_;
  bool named_ = false;
};

/// The disk has the folder's new entry. Where the system cannot say so, the file is whole all the same, old
/// or new.
void sync_folder(const std::string& folder) noexcept {
  const Descriptor entry(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (entry) (void)fsync(entry.get());
}

}  // namespace

SystemError::SystemError(int code, std::string path, const std::string& why)
    : SystemError(code, std::move(path),
                  std::strerror(code) + (why.empty() ? std::string() : fmt::format(" ({})", why)), 0) {}

SystemError::SystemError(int code, std::string path, std::string reason, int)
    : FileError(fmt::format("{}: {}", path, reason)),
      code_(code),
      path_(std::move(path)),
      reason_(std::move(reason)) {}

void replace_file(const std::string& given, std::span<const Bytes> parts) {
  const std::string path = followed(given);
  const auto old = status_of(path);
  if (old) {
    if (S_ISDIR(old->st_mode)) throw SystemError(EISDIR, given);
    if (access(path.c_str(), W_OK) != 0) throw SystemError(errno, given);
    if (!S_ISREG(old->st_mode)) {
      const Descriptor file = open_for_writing(path, S_ISFIFO(old->st_mode), given);
      return write_all(file.get(), parts, given, true);
    }
  }
  const std::string parent = fs::path(path).parent_path().string();
  const std::string folder = parent.empty() ? "." : parent;
  NewFile file(folder, given);
  if (old) take_after(file.get(), *old);
  write_all(file.get(), parts, given);
  file.install(path);
  sync_folder(folder);
}

}  // namespace tenon::io
