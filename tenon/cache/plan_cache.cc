#include "tenon/cache/plan_cache.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tenon/cache/build_id.h"
#include "tenon/core/error.h"
#include "tenon/dispatch/trace.h"
#include "tenon/expr/mixer.h"
#include "tenon/iter/host.h"

namespace tenon::cache {
namespace {

constexpr int64_t kPatience = 1'000'000'000;
// So many plans are not kept waiting, nor their graphs in memory.
constexpr size_t kMostWaiting = 256;
constexpr const char* kGaveUp = "another plan could not be written";
const pid_t kStartedAs = getpid();

int64_t now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string_view variable(const char* name) {
  const char* const text = std::getenv(name);
  return text ? text : "";
}

uint64_t capacity() {
  const std::string_view text = variable("TENON_CACHE_MB");
  if (text.empty()) return Folder::kDefaultCapacity;
  uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), n);
  if (error == std::errc() && end == text.end() && n < uint64_t{1} << 40) return n << 20;
  write_diagnostic(fmt::format("TENON_CACHE_MB: '{}' is no number of megabytes; 64 is taken", text));
  return Folder::kDefaultCapacity;
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code failed;
  return std::filesystem::is_directory(path, failed);
}

/// Why TENON_CACHE cannot be meant as it is; empty where it can.
std::string problem_of_asked(const std::string& path) {
  std::error_code failed;
  if (std::filesystem::equivalent(path, "/", failed))
    return fmt::format("TENON_CACHE is '{}', the root of all folders; name a folder for plans alone", path);
  if (path == "~" || path.starts_with("~/"))
    return fmt::format("TENON_CACHE is '{}', and Tenon does not expand ~; write the home folder out", path);
  return {};
}

std::string listed(const std::map<std::string, uint64_t>& counts) {
  std::string text;
  for (const auto& [why, n] : counts) text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", why, n);
  return text;
}

}  // namespace

std::atomic<bool> PlanCache::behind_{false};

PlanCache& PlanCache::get() {
  static PlanCache& cache = *new PlanCache;
  return cache;
}

PlanCache::PlanCache() : holder_{build_id(), std::string(kHost.target())}, is_child_(getpid() != kStartedAs) {
  choose_folder();
  std::atexit([] { get().at_exit(); });
  pthread_atfork([] { get().mutex_.lock(); }, [] { get().mutex_.unlock(); },
                 [] {
                   get().mutex_.unlock();
                   get().after_fork();
                 });
}

void PlanCache::choose_folder() {
  if (!variable("TENON_DUMP_GRAPH").empty()) {
    off_because_ = "TENON_DUMP_GRAPH shows how graphs are planned, which plans that are loaded are not";
    return;
  }
  const char* const asked = std::getenv("TENON_CACHE");
  std::string path;
  is_asked_for_ = asked != nullptr;
  if (asked) {
    path = asked;
    if (path.empty() || path == "0") {
      off_because_ = "TENON_CACHE switches it off";
      return;
    }
    if (off_because_ = problem_of_asked(path); !off_because_.empty()) {
      write_diagnostic(fmt::format("plans are not kept on disk: {}", off_because_));
      return;
    }
  } else if (const std::string_view caches = variable("XDG_CACHE_HOME"); caches.starts_with('/')) {
    if (!is_folder(std::filesystem::path(caches).parent_path())) {
      off_because_ = fmt::format("XDG_CACHE_HOME is '{}', in a folder that is not there", caches);
      return;
    }
    path = fmt::format("{}/tenon", caches);
  } else if (const std::string_view home = variable("HOME"); home.starts_with('/')) {
    // Accounts of services have homes that do not exist, and a process of root could make them.
    if (!is_folder(home)) {
      off_because_ = fmt::format("HOME is '{}', which is no folder", home);
      return;
    }
    path = fmt::format("{}/.cache/tenon", home);
  } else {
    off_because_ = "there is no HOME";
    return;
  }
  // A program may change its folder, and its plans stay where they are.
  std::error_code failed;
  if (const auto absolute = std::filesystem::absolute(path, failed); !failed) path = absolute.string();
  folder_ = std::make_unique<Folder>(std::move(path), capacity());
}

std::string PlanCache::problem_to_report() {
  if (has_reported_ || folder_->problem().empty()) return {};
  // No user asked for a folder in a home that cannot be written.
  if (!is_asked_for_ && !folder_->is_open_to_others()) return {};
  has_reported_ = true;
  return fmt::format("plans are not kept on disk: {}", folder_->problem());
}

namespace {

/// Builds and machines have files of their own.
expr::Key place_of(const expr::Key& key, const Holder& holder) {
  expr::Mixer mixer;
  mixer.add(key);
  mixer.add(holder.build);
  mixer.add(holder.machine);
  return mixer.take();
}

}  // namespace

std::vector<std::byte> PlanCache::find(const expr::Key& key) {
  if (!is_on()) return {};
  std::string problem;
  {
    const std::lock_guard lock(mutex_);
    const Folder::Found found = folder_->find(place_of(key, holder_), holder_);
    if (found.miss == Miss::None) return {found.value.begin(), found.value.end()};
    ++missed_[folder_->problem().empty() ? std::string(name(found.miss)) : folder_->problem()];
    problem = problem_to_report();
  }
  if (!problem.empty()) write_diagnostic(problem);
  return {};
}

void PlanCache::reject(std::string_view why) {
  const std::lock_guard lock(mutex_);
  ++missed_[fmt::format("the plan does not fit: {}", why)];
}

void PlanCache::put(const expr::Key& key, std::function<File()> make) {
  if (!is_on()) return;
  bool is_much = false;
  {
    const std::lock_guard lock(mutex_);
    if (gave_up_) {
      ++not_written_[kGaveUp];
      return;
    }
    if (waiting_.empty()) waiting_since_ = now();
    waiting_.push_back({key, std::move(make)});
    is_much = waiting_.size() >= kMostWaiting;
    behind_.store(true, std::memory_order_relaxed);
  }
  if (is_much) write();
}

void PlanCache::write_if_due() noexcept {
  {
    const std::lock_guard lock(mutex_);
    // The end of a forked child may run no handlers.
    if (waiting_.empty() || (!is_child_ && now() - waiting_since_ < kPatience)) return;
  }
  write();
}

void PlanCache::write() noexcept {
  std::vector<Waiting> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(waiting_);
    behind_.store(false, std::memory_order_relaxed);
  }
  try {
    for (const Waiting& each : all) write(each);
  } catch (...) {
    // No memory: what is not written is made again.
  }
}

void PlanCache::write(const Waiting& plan) {
  std::string why, problem;
  try {
    const File file = plan.make();
    const std::lock_guard lock(mutex_);
    if (!gave_up_) {
      why = folder_->store(place_of(plan.key, holder_), holder_, file.about, file.bytes);
      gave_up_ = !why.empty();
      problem = problem_to_report();
      written_ += why.empty();
    } else {
      why = kGaveUp;
    }
  } catch (const std::exception& e) {
    why = e.what();
  }
  if (!problem.empty()) write_diagnostic(problem);
  if (why.empty()) return;
  const std::lock_guard lock(mutex_);
  ++not_written_[why];
}

PlanCache::Counts PlanCache::counts() {
  const std::lock_guard lock(mutex_);
  return {planned_, tuned_, loaded_, written_, missed_, not_written_};
}

std::string PlanCache::summary() {
  const Counts c = counts();
  std::string text = fmt::format("{} planned, {} tuned, {} loaded", c.planned, c.tuned, c.loaded);
  if (!is_on()) return fmt::format("{}; no cache: {}", text, off_because_);
  if (!c.missed.empty()) text += fmt::format("; not found: {}", listed(c.missed));
  if (!c.not_written.empty()) text += fmt::format("; not written: {}", listed(c.not_written));
  return text;
}

template <class F>
auto PlanCache::in_folder(F&& f) {
  const std::lock_guard lock(mutex_);
  auto result = f(*folder_);
  TENON_CHECK(folder_->problem().empty(), Runtime, folder_->problem());
  return result;
}

std::vector<Folder::Entry> PlanCache::list() {
  if (!is_on()) return {};
  return in_folder([&](Folder& folder) { return folder.list(holder_); });
}
std::map<std::string, uint64_t> PlanCache::totals() {
  if (!is_on()) return {};
  return in_folder([](Folder& folder) { return folder.counts(); });
}
size_t PlanCache::clear() {
  if (!is_on()) return 0;
  return in_folder([](Folder& folder) { return folder.clear(); });
}

void PlanCache::at_exit() noexcept {
  try {
    write();
    if (variable("TENON_CACHE_REPORT") == "1") std::fprintf(stderr, "tenon: plans: %s\n", summary().c_str());
    if (!is_on()) return;
    const Counts c = counts();
    std::map<std::string, uint64_t> all{{"loaded", c.loaded}, {"planned", c.planned}, {"tuned", c.tuned}};
    for (const auto& [why, n] : c.missed) all["missed: " + why] += n;
    for (const auto& [why, n] : c.not_written) all["not written: " + why] += n;
    std::erase_if(all, [](const auto& each) { return each.second == 0; });
    const std::lock_guard lock(mutex_);
    if (written_ > 0) folder_->shrink();
    if (!all.empty()) folder_->add_counts(all);
  } catch (...) {
    // The process ends as it would have without a cache.
  }
}

void PlanCache::after_fork() noexcept {
  // What waits is the parent's to write, and what was counted its to say.
  waiting_.clear();
  behind_ = false;
  planned_ = tuned_ = loaded_ = 0;
  written_ = 0;
  missed_.clear();
  not_written_.clear();
  is_child_ = true;
}

}  // namespace tenon::cache
