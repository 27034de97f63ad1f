#include "tenon/cache/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>

namespace tenon::cache {
namespace {

constexpr std::string_view kSuffix = ".plan", kUnfinished = ".new-", kCounts = ".counts", kLock = ".lock";
// A file that is used again is younger than this, so that its time is not written at each use.
constexpr int64_t kFresh = 3600;
// What most file systems give a file at least.
constexpr uint64_t kBlock = 4096;
// The folder is looked through once that much was added, or a part of what it may hold.
constexpr uint64_t kLookThrough = uint64_t{1} << 20, kParts = 16;
// Removing a file takes milliseconds on some disks, and a user's call waits for it. Each store removes a part
// of what is evicted, at least so many files and at most so many.
constexpr size_t kEvictedParts = 16, kFewestEvicted = 4, kMostEvicted = 64;

constexpr size_t kDigits = 32;
std::string file_of(const expr::Key& key) {
  return fmt::format("{:016x}{:016x}{}", key.high, key.low, kSuffix);
}
/// Whether `file_of` makes the name. Other files of the folder belong to the user.
bool is_value(std::string_view file) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return file.size() == kDigits + kSuffix.size() && file.ends_with(kSuffix) &&
         std::ranges::all_of(file.substr(0, kDigits), is_digit);
}

bool is_ours_alone(const struct stat& s) noexcept {
  return s.st_uid == geteuid() && (s.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// When a file was written or used: nanoseconds, as many files have one second.
int64_t used(const struct stat& s) noexcept {
  return int64_t{s.st_mtim.tv_sec} * 1'000'000'000 + s.st_mtim.tv_nsec;
}

/// Reads at most `n` bytes; fewer where the file ends before.
std::vector<std::byte> read_all(int file, size_t n) {
  std::vector<std::byte> bytes(n);
  size_t have = 0;
  while (have < n) {
    const ssize_t got = uninterrupted([&] { return ::read(file, bytes.data() + have, n - have); });
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

/// Whether a character is ASCII and no control character. Texts that people see consist of those: a file may
/// have been altered.
bool is_printable(char c) { return c >= ' ' && c <= '~'; }
std::string printable(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(
      out, [](char c) { return !is_printable(c); }, '?');
  return out;
}

std::string said(int error) { return std::strerror(error); }

/// Locks a file, unless another process holds the lock for longer than a moment: one that was stopped, say.
bool lock_in_a_moment(int file) {
  constexpr int kTries = 500;
  constexpr timespec kPause{0, 2'000'000};
  for (int i = 0; i < kTries; ++i) {
    if (flock(file, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    (void)nanosleep(&kPause, nullptr);
  }
  return false;
}

/// A folder and those above it, for this user alone. 0, or the system's number.
int make_folders(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST && end == std::string::npos) return errno;
    if (end == std::string::npos) return 0;
  }
}

}  // namespace

bool Folder::open() {
  if (folder_) return true;
  if (!problem_.empty()) return false;
  Descriptor folder(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat s;
  if (!folder || fstat(folder.get(), &s) != 0) {
    if (errno != ENOENT) problem_ = fmt::format("{}: {}", path_, said(errno));
    return false;
  }
  if (!is_ours_alone(s)) {
    is_open_to_others_ = s.st_uid == geteuid();
    problem_ = s.st_uid != geteuid()
                   ? fmt::format("{} belongs to another user", path_)
                   : fmt::format(
                         "others may write into {}, and so change what this program computes; "
                         "`chmod go-w` keeps them out",
                         path_);
    return false;
  }
  folder_ = std::move(folder);
  return true;
}

bool Folder::make() {
  if (open()) return true;
  if (!problem_.empty()) return false;
  if (const int error = make_folders(path_)) {
    problem_ = fmt::format("{}: {}", path_, said(error));
    return false;
  }
  return open();
}

Folder::File Folder::read(const std::string& name, const Holder& reader) const {
  File file;
  Miss& miss = file.contents.miss;
  const Descriptor in(openat(folder_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat s;
  if (!in || fstat(in.get(), &s) != 0) {
    miss = errno == ENOENT ? Miss::Absent : Miss::Unreadable;
    return file;
  }
  const auto size = static_cast<uint64_t>(s.st_size);
  if (!S_ISREG(s.st_mode))
    miss = Miss::Unreadable;
  else if (!is_ours_alone(s))
    miss = Miss::Owner;
  else if (size > kLargestValue + kHeaderBytes)
    miss = Miss::CutOff;
  if (miss != Miss::None) return file;
  file.bytes = read_all(in.get(), size);
  file.contents = from_form(file.bytes, reader);
  if (miss != Miss::None) return file;
  if (file_of(file.contents.key) != name) miss = Miss::Key;
  file.used = s.st_mtime;
  return file;
}

Folder::Found Folder::find(const expr::Key& key, const Holder& reader) {
  if (!open()) return {};
  const std::string name = file_of(key);
  File file = read(name, reader);
  const int64_t now = std::time(nullptr);
  // A time to come was written before the clock was set back.
  if (file.contents.miss == Miss::None && (file.used > now || file.used < now - kFresh))
    (void)utimensat(folder_.get(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  return {std::move(file.bytes), file.contents.value, file.contents.miss};
}

std::string Folder::replace(const std::string& file, Bytes bytes) const {
  // Also processes of other machines, which have the same numbers, may write into the folder.
  uint64_t draw = 0;
  (void)getrandom(&draw, sizeof(draw), 0);
  const std::string unfinished = fmt::format("{}{}-{:016x}", kUnfinished, getpid(), draw);
  // Beyond the limit the system would end the process by a signal.
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      bytes.size() > limit.rlim_cur)
    return said(EFBIG);
  const Descriptor out(
      openat(folder_.get(), unfinished.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
  if (!out) return said(errno);
  const auto give_up = [&] {
    const int error = errno;
    (void)unlinkat(folder_.get(), unfinished.c_str(), 0);
    return said(error);
  };
  while (!bytes.empty()) {
    const ssize_t n = uninterrupted([&] { return ::write(out.get(), bytes.data(), bytes.size()); });
    if (n < 0) return give_up();
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  // Not fsync: what a failing machine leaves is noticed by its checksum, and made again.
  if (renameat(folder_.get(), unfinished.c_str(), folder_.get(), file.c_str()) != 0) return give_up();
  return {};
}

std::string Folder::store(const expr::Key& key, const Holder& writer, std::string_view about, Bytes value) {
  if (!make()) return problem_.empty() ? said(ENOENT) : problem_;
  const std::vector<std::byte> file = to_form(key, writer, about, value);
  if (file.size() > kLargestValue) return said(EFBIG);
  if (std::string why = replace(file_of(key), file); !why.empty()) return why;
  added_ += (file.size() + kBlock - 1) / kBlock * kBlock;
  // Room for what is added before the folder is looked through again.
  const uint64_t margin = std::min(kLookThrough, capacity_ / kParts);
  if (added_ >= margin) look_through(capacity_ - margin);
  evict(std::clamp(evicted_.size() / kEvictedParts, kFewestEvicted, kMostEvicted));
  return {};
}

std::vector<std::string> Folder::files() const {
  std::vector<std::string> names;
  const int copy = openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const all = copy < 0 ? nullptr : fdopendir(copy);
  if (!all) {
    if (copy >= 0) close(copy);
    return names;
  }
  while (const dirent* const each = readdir(all)) names.emplace_back(each->d_name);
  closedir(all);
  return names;
}

// True of unfinished files: no write takes that long.
bool Folder::remove_left_over(const std::string& file, int64_t written) const {
  if (!file.starts_with(kUnfinished)) return false;
  if (std::abs(std::time(nullptr) - written) > kFresh) (void)unlinkat(folder_.get(), file.c_str(), 0);
  return true;
}

void Folder::look_through(uint64_t goal) {
  if (!open()) return;
  added_ = 0;
  evicted_.clear();
  uint64_t total = 0;
  for (std::string& file : files()) {
    struct stat s;
    if (fstatat(folder_.get(), file.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (remove_left_over(file, s.st_mtime) || !is_value(file)) continue;
    // As they are on the disk: small files take a block.
    const uint64_t nbytes = static_cast<uint64_t>(s.st_blocks) * 512;
    total += nbytes;
    evicted_.push_back({std::move(file), used(s), nbytes});
  }
  // The one used longest ago is the last.
  std::ranges::sort(evicted_, std::greater(), &Value::used);
  size_t count = 0;
  for (; count < evicted_.size() && total > goal; ++count)
    total -= evicted_[evicted_.size() - 1 - count].nbytes;
  evicted_.erase(evicted_.begin(), evicted_.end() - static_cast<std::ptrdiff_t>(count));
}

void Folder::evict(size_t most) {
  for (; most > 0 && !evicted_.empty(); --most) {
    const Value value = std::move(evicted_.back());
    evicted_.pop_back();
    struct stat s;
    // Used again meanwhile, or replaced.
    if (fstatat(folder_.get(), value.file.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0 || used(s) != value.used)
      continue;
    (void)unlinkat(folder_.get(), value.file.c_str(), 0);
  }
}

void Folder::shrink() {
  look_through(capacity_);
  evict(evicted_.size());
}

std::vector<Folder::Entry> Folder::list(const Holder& reader) {
  std::vector<Entry> entries;
  if (!open()) return entries;
  for (std::string& file : files()) {
    struct stat s;
    if (fstatat(folder_.get(), file.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (remove_left_over(file, s.st_mtime) || !is_value(file)) continue;
    Entry& entry = entries.emplace_back();
    entry.nbytes = static_cast<uint64_t>(s.st_size);
    entry.used = s.st_mtime;
    const File found = read(file, reader);
    const Contents& c = found.contents;
    entry.miss = c.miss;
    entry.file = std::move(file);
    entry.written_by = {printable(c.build), printable(c.machine)};
    entry.about = printable(c.about);
  }
  std::ranges::sort(entries, std::greater(), &Entry::used);
  return entries;
}

size_t Folder::clear() {
  if (!open()) return 0;
  size_t removed = 0;
  for (const std::string& file : files()) {
    if (!is_value(file) && !file.starts_with(kUnfinished) && file != kCounts) continue;
    removed += unlinkat(folder_.get(), file.c_str(), 0) == 0 && is_value(file);
  }
  return removed;
}

// Lines "count name"; any other was not written by `add_counts`.
std::map<std::string, uint64_t> Folder::counts() {
  std::map<std::string, uint64_t> counts;
  if (!open()) return counts;
  const Descriptor in(openat(folder_.get(), kCounts.data(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!in) return counts;
  const std::vector<std::byte> bytes = read_all(in.get(), 1 << 16);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    uint64_t n = 0;
    const auto [rest, error] = std::from_chars(line.begin(), line.end(), n);
    const std::string_view name(rest, line.end());
    if (error != std::errc() || name.size() < 2 || name.front() != ' ' ||
        !std::ranges::all_of(name, is_printable))
      continue;
    uint64_t& count = counts[std::string(name.substr(1))];
    if (__builtin_add_overflow(count, n, &count)) count = n;
  }
  return counts;
}

void Folder::add_counts(const std::map<std::string, uint64_t>& more) {
  if (!open()) return;
  // Held until it is closed, also by a process that is killed.
  const Descriptor lock(openat(folder_.get(), kLock.data(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock || !lock_in_a_moment(lock.get())) return;
  std::map<std::string, uint64_t> all = counts();
  for (const auto& [what, n] : more) all[printable(what)] += n;
  std::string text;
  for (const auto& [what, n] : all) text += fmt::format("{} {}\n", n, what);
  (void)replace(std::string(kCounts), std::as_bytes(std::span(text)));
}

}  // namespace tenon::cache
