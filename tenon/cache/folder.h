// Folder: values on disk, each in a file of its own, found again by a key. Several processes share one. A
// file is there whole or not at all; anything else in its place (cut off, altered, of another build,
// of another user) is a miss, with a reason. Used by the plan cache. Values are bytes here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/cache/form.h"
#include "tenon/core/descriptor.h"

namespace tenon::cache {

class Folder {
 public:
  /// Values take at most about that many bytes on the disk, where a small file takes a block; the least
  /// recently used go first.
  static constexpr uint64_t kDefaultCapacity = uint64_t{64} << 20;

  explicit Folder(std::string path, uint64_t capacity = kDefaultCapacity)
      : path_(std::move(path)), capacity_(capacity) {}

  struct Found {
    std::vector<std::byte> file;
    Bytes value;  ///< In the file.
    Miss miss = Miss::Absent;
  };
  Found find(const expr::Key& key, const Holder& reader);
  /// Makes the folder too, if there is none. `about`: for people. Returns why it is not stored, as the system
  /// says it; empty if it is. What was there under the key stays as it was until the new value is complete.
  /// Removes a few of the values used longest ago where the folder is full.
  std::string store(const expr::Key& key, const Holder& writer, std::string_view about, Bytes value);
  /// Removes what was used longest ago, where all is too much; and what killed processes left. Takes as long
  /// as that takes, so for the end of a process.
  void shrink();

  struct Entry {
    std::string file;
    uint64_t nbytes = 0;
    int64_t used = 0;   ///< Seconds since 1970.
    Holder written_by;  ///< ASCII without control characters, as is `about`.
    std::string about;
    Miss miss = Miss::None;  ///< Why a reader would not take it.
  };
  /// All files of values, the one used last first. Removes what killed processes left.
  std::vector<Entry> list(const Holder& reader);
  /// Returns how many values there were.
  size_t clear();

  /// Numbers that processes add up in the folder, by name, which is ASCII: other characters become "?". What
  /// was lost or altered counts from 0 again.
  /// While another process keeps the folder's lock, numbers are dropped after a moment.
  void add_counts(const std::map<std::string, uint64_t>& counts);
  std::map<std::string, uint64_t> counts();

  const std::string& path() const noexcept { return path_; }
  /// Why the folder is not used, as a sentence; empty if it is, or might be once it is there.
  const std::string& problem() const noexcept { return problem_; }
  /// Whether the reason is that others may write into it.
  bool is_open_to_others() const noexcept { return is_open_to_others_; }

 private:
  bool open();
  bool make();
  struct File {
    std::vector<std::byte> bytes;
    Contents contents;
    int64_t used = 0;
  };
  File read(const std::string& name, const Holder& reader) const;
  std::string replace(const std::string& file, Bytes bytes) const;
  bool remove_left_over(const std::string& file, int64_t written) const;
  std::vector<std::string> files() const;
  struct Value {
    std::string file;
    int64_t used;  // nanoseconds
    uint64_t nbytes;
  };
  /// Chooses what to evict, so that `goal` bytes are left. Removes what killed processes left.
  void look_through(uint64_t goal);
  /// Removes at most so many of the values that were chosen and not used since.
  void evict(size_t most);

  const std::string path_;
  const uint64_t capacity_;
  Descriptor folder_;
  std::string problem_;
  bool is_open_to_others_ = false;
  uint64_t added_ = 0;          // bytes on the disk, since it was looked through
  std::vector<Value> evicted_;  // which are still to be removed; the next one is the last
};

}  // namespace tenon::cache
