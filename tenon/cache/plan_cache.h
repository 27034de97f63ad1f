// PlanCache: the plans that earlier processes made, on disk, and how many plans this process made, tuned and
// found there. Plans are written off the caller's path. Used by the recorder and the graph
// builder, which know what a plan is; here it is bytes under a key.
//
// TENON_CACHE names the folder; empty or 0, there is none. Without it, it is tenon in $XDG_CACHE_HOME, or in
// ~/.cache. TENON_CACHE_MB is how large it gets on the disk, 64 by default. TENON_CACHE_REPORT=1 has a line
// written at the end of the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/cache/folder.h"
#include "tenon/expr/key.h"

namespace tenon::cache {

class PlanCache {
 public:
  struct Counts {
    uint64_t planned = 0, tuned = 0, loaded = 0, written = 0;
    /// How often, by reason.
    std::map<std::string, uint64_t> missed, not_written;
  };
  /// A plan as it is written.
  struct File {
    std::string about;  ///< For people: what it computes.
    std::vector<std::byte> bytes;
  };

  /// The process's.
  static PlanCache& get();

  /// False: nothing is looked for and nothing is written. Why is `off_because`.
  bool is_on() const noexcept { return folder_ != nullptr; }
  const std::string& off_because() const noexcept { return off_because_; }

  /// The bytes that were written under the key, by this build and for this machine; else none, and a miss is
  /// counted. A caller that cannot make a plan of them calls `reject`.
  std::vector<std::byte> find(const expr::Key& key);
  void reject(std::string_view why);
  /// Has a plan written soon: when a second has gone by, at the end of the process, or by `write`. `make` is
  /// called then. A plan that was there under the key is replaced.
  void put(const expr::Key& key, std::function<File()> make);
  void count_planned() noexcept { planned_.fetch_add(1, std::memory_order_relaxed); }
  void count_tuned() noexcept { tuned_.fetch_add(1, std::memory_order_relaxed); }
  void count_loaded() noexcept { loaded_.fetch_add(1, std::memory_order_relaxed); }

  /// Whether plans wait to be written. Costs a load.
  static bool is_behind() noexcept { return behind_.load(std::memory_order_relaxed); }
  /// Writes them, if they have waited long enough.
  void write_if_due() noexcept;
  /// Writes them now. Never throws: what cannot be written is counted.
  void write() noexcept;

  Counts counts();
  /// "0 planned, 0 tuned, 3 loaded", and what was missed.
  std::string summary();

  // Of the folder; empty where the cache is off. Each throws Error{Runtime} for a folder that is refused.
  std::string folder() const { return folder_ ? folder_->path() : std::string(); }
  std::vector<Folder::Entry> list();
  /// What all processes counted that have ended, by name.
  std::map<std::string, uint64_t> totals();
  /// Removes all plans and counts. Returns how many plans there were.
  size_t clear();

 private:
  struct Waiting {
    expr::Key key;
    std::function<File()> make;
  };
  PlanCache();
  void write(const Waiting& plan);
  void choose_folder();
  /// What is wrong with the folder, the first time. Said by the caller, once the mutex is free: who listens
  /// may take locks.
  std::string problem_to_report();
  template <class F>
  auto in_folder(F&& f);
  void at_exit() noexcept;
  void after_fork() noexcept;

  static std::atomic<bool> behind_;

  std::unique_ptr<Folder> folder_;
  std::string off_because_;
  bool is_asked_for_ = false;  // by TENON_CACHE
  Holder holder_;
  std::atomic<uint64_t> planned_{0}, tuned_{0}, loaded_{0};

  std::mutex mutex_;  // of what follows, and of the folder
  std::vector<Waiting> waiting_;
  int64_t waiting_since_ = 0;  // nanoseconds
  uint64_t written_ = 0;
  std::map<std::string, uint64_t> missed_, not_written_;
  bool is_child_ = false, has_reported_ = false, gave_up_ = false;
};

}  // namespace tenon::cache
