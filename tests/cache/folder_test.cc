// The folder of the plan cache: a value is there whole or is a miss, whatever stands in its place.
#include "tenon/cache/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/core/testing.h"
#include "tests/counts.h"

namespace tenon::cache {
namespace {

namespace fs = std::filesystem;

constexpr expr::Key kKey{1, 2};
const Holder kHolder{"1.0-abc", "AVX2"};

std::vector<std::byte> bytes(std::string_view text) {
  const auto all = std::as_bytes(std::span(text));
  return {all.begin(), all.end()};
}

class PlanFolder : public ::testing::Test {
 protected:
  PlanFolder() {
    std::string name = (fs::temp_directory_path() / "tenon-folder-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~PlanFolder() override { fs::remove_all(path_); }

  fs::path file() const {
    for (const auto& each : fs::directory_iterator(path_)) {
      if (each.path().extension() == ".plan") return each.path();
    }
    return {};
  }
  std::string contents() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const fs::path& to, const std::string& text) const {
    std::ofstream(to, std::ios::binary | std::ios::trunc) << text;
    fs::permissions(to, fs::perms::owner_read | fs::perms::owner_write);
  }
  Miss miss(const Holder& reader = kHolder, const expr::Key& key = kKey) const {
    return Folder(path_).find(key, reader).miss;
  }
  void store(std::string_view text = "a plan", const expr::Key& key = kKey) const {
    ASSERT_EQ(Folder(path_).store(key, kHolder, "about", bytes(text)), "");
  }

  std::string path_;
};

TEST_F(PlanFolder, FindsWhatAnotherHasStored) {
  EXPECT_EQ(miss(), Miss::Absent);
  store("a plan");
  Folder folder(path_);
  const Folder::Found found = folder.find(kKey, kHolder);
  EXPECT_EQ(found.miss, Miss::None);
  EXPECT_EQ(std::vector(found.value.begin(), found.value.end()), bytes("a plan"));
  EXPECT_EQ(folder.find({2, 1}, kHolder).miss, Miss::Absent);
  // Another value takes its place.
  store("a better plan");
  EXPECT_EQ(folder.find(kKey, kHolder).value.size(), 13u);
}

TEST_F(PlanFolder, IsMadeForItsOwnerAloneWhenSomethingIsStored) {
  Folder folder(path_ + "/deep/down");
  EXPECT_EQ(folder.find(kKey, kHolder).miss, Miss::Absent);
  EXPECT_FALSE(fs::exists(path_ + "/deep"));
  EXPECT_EQ(folder.store(kKey, kHolder, "", bytes("x")), "");
  for (const char* part : {"/deep", "/deep/down"})
    EXPECT_EQ(fs::status(path_ + part).permissions(), fs::perms::owner_all);
  EXPECT_EQ(folder.find(kKey, kHolder).miss, Miss::None);
}

TEST_F(PlanFolder, WhatIsCutOffOrLongerIsAMiss) {
  store();
  const std::string whole = contents();
  for (size_t n = 0; n < whole.size(); ++n) {
    write(file(), whole.substr(0, n));
    ASSERT_EQ(miss(), Miss::CutOff) << n;
  }
  write(file(), whole + "x");
  EXPECT_EQ(miss(), Miss::CutOff);
  write(file(), std::string(kLargestValue + 100, 'x'));
  EXPECT_EQ(miss(), Miss::CutOff);
}

TEST_F(PlanFolder, AnyBitThatIsAnotherIsAMiss) {
  store();
  const std::string whole = contents();
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    write(file(), changed);
    ASSERT_NE(miss(), Miss::None) << bit;
  }
}

TEST_F(PlanFolder, WhatIsForeignOrOfAnotherBuildOrMachineOrProgramIsAMissWithThatReason) {
  store();
  EXPECT_EQ(miss({"1.1-abc", "AVX2"}), Miss::Build);
  EXPECT_EQ(miss({"1.0-abc", "AVX3"}), Miss::Machine);
  EXPECT_EQ(miss(), Miss::None);
  std::string later = contents();
  later[8] = 9;  // the version of the form
  const std::string whole = contents();
  write(file(), later);
  EXPECT_EQ(miss(), Miss::Build);
  write(file(), "#!/bin/sh\n" + std::string(100, ' '));
  EXPECT_EQ(miss(), Miss::Foreign);
  // The file of another key.
  write(file(), whole);
  store("another", {7, 7});
  const std::string name = file().filename().string();
  const bool first = name.starts_with("0000000000000001");
  fs::path other = path_;
  other /= first ? "00000000000000070000000000000007.plan" : "00000000000000010000000000000002.plan";
  fs::rename(other, file());
  EXPECT_EQ(miss(kHolder, first ? kKey : expr::Key{7, 7}), Miss::Key);
}

TEST_F(PlanFolder, WhatIsNoFileOrOthersMayWriteIsAMiss) {
  store();
  const fs::path at = file();
  fs::permissions(at, fs::perms::group_write, fs::perm_options::add);
  EXPECT_EQ(miss(), Miss::Owner);
  const fs::path elsewhere = path_ + "/elsewhere";
  fs::permissions(at, fs::perms::group_write, fs::perm_options::remove);
  fs::rename(at, elsewhere);
  fs::create_symlink(elsewhere, at);
  EXPECT_EQ(miss(), Miss::Unreadable);
  fs::remove(at);
  ASSERT_EQ(mkfifo(at.c_str(), 0600), 0);
  EXPECT_EQ(miss(), Miss::Unreadable);  // and nobody waits for a writer
  fs::remove(at);
  fs::create_directory(at);
  EXPECT_EQ(miss(), Miss::Unreadable);
  if (geteuid() != 0) return;  // who may give files away
  fs::remove(at);
  fs::rename(elsewhere, at);
  ASSERT_EQ(chown(at.c_str(), 12345, 12345), 0);
  EXPECT_EQ(miss(), Miss::Owner);
}

TEST_F(PlanFolder, AFolderThatOthersMayWriteOrThatIsAnothersIsRefused) {
  store();
  for (const auto more : {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(path_, more, fs::perm_options::add);
    Folder folder(path_);
    EXPECT_EQ(folder.find(kKey, kHolder).miss, Miss::Absent);
    EXPECT_NE(folder.problem().find("others may write into " + path_), std::string::npos) << folder.problem();
    EXPECT_EQ(folder.store(kKey, kHolder, "", {}), folder.problem());
    fs::permissions(path_, more, fs::perm_options::remove);
  }
  Folder no_folder(file().string());
  EXPECT_EQ(no_folder.find(kKey, kHolder).miss, Miss::Absent);
  EXPECT_NE(no_folder.problem().find("Not a directory"), std::string::npos) << no_folder.problem();
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(path_.c_str(), 12345, 12345), 0);
  Folder anothers(path_);
  (void)anothers.find(kKey, kHolder);
  EXPECT_EQ(anothers.problem(), path_ + " belongs to another user");
}

TEST_F(PlanFolder, AFullDiskLeavesWhatWasThere) {
  store("the old plan");
  // A limit on the size of files: before it is reached, and while a file grows.
  for (const rlim_t limit : {rlim_t{0}, rlim_t{100}}) {
    const int code = testing::in_child([&] {
      const rlimit both{limit, limit};
      if (setrlimit(RLIMIT_FSIZE, &both) != 0) return 3;
      Folder folder(path_);
      const std::string why = folder.store(kKey, kHolder, "", std::vector<std::byte>(4000));
      return why == std::strerror(EFBIG) && folder.find(kKey, kHolder).value.size() == 12 ? 0 : 1;
    });
    EXPECT_EQ(code, 0);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(path_), {}), 1);
}

TEST_F(PlanFolder, AFolderThatCannotBeWrittenIsReadAllTheSame) {
  store();
  fs::permissions(path_, fs::perms::owner_read | fs::perms::owner_exec);
  const int code = testing::in_child([&] {
    // Root may write anywhere.
    if (geteuid() == 0) {
      if (chown(path_.c_str(), 12345, 12345) != 0 || chown(file().c_str(), 12345, 12345) != 0) return 3;
      if (setgid(12345) != 0 || setuid(12345) != 0) return 3;
    }
    Folder folder(path_);
    if (folder.find(kKey, kHolder).miss != Miss::None) return 1;
    return folder.store({3, 3}, kHolder, "", {}) == std::strerror(EACCES) ? 0 : 2;
  });
  EXPECT_EQ(code, 0);
  fs::permissions(path_, fs::perms::owner_all);
}

TEST_F(PlanFolder, KeepsBelowItsSizeByLastUse) {
  constexpr uint64_t kCapacity = 20 * 4096;
  Folder folder(path_);
  const std::vector<std::byte> value(3000);
  for (uint64_t i = 0; i < 30; ++i) {
    ASSERT_EQ(folder.store({i, 0}, kHolder, "", value), "");
    timespec times[2] = {{0, UTIME_OMIT}, {static_cast<time_t>(1000 + i), 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, (path_ + fmt::format("/{:016x}{:016x}.plan", i, 0)).c_str(), times, 0), 0);
  }
  // The oldest is used again.
  EXPECT_EQ(folder.find({0, 0}, kHolder).miss, Miss::None);
  Folder(path_, kCapacity).shrink();
  EXPECT_EQ(folder.find({0, 0}, kHolder).miss, Miss::None);
  EXPECT_EQ(folder.find({1, 0}, kHolder).miss, Miss::Absent);
  EXPECT_EQ(folder.find({29, 0}, kHolder).miss, Miss::None);
  uint64_t total = 0;
  for (const Folder::Entry& e : folder.list(kHolder)) total += e.nbytes;
  EXPECT_LE(total, kCapacity);
  EXPECT_GT(total, kCapacity / 2);
}

// Small files count as the blocks that they take on the disk, and whoever writes thousands does not wait for
// his end to make room for them.
TEST_F(PlanFolder, KeepsBelowItsSizeWhileItIsFilled) {
  constexpr uint64_t kBlocks = 32;
  Folder folder(path_, kBlocks * 4096);
  for (uint64_t i = 0; i < 200; ++i) {
    ASSERT_EQ(folder.store({i, 0}, kHolder, "", std::vector<std::byte>(100)), "");
    ASSERT_LE(folder.list(kHolder).size(), kBlocks + kBlocks / 16) << i;
  }
  EXPECT_GT(folder.list(kHolder).size(), kBlocks / 2);
}

// Removing a file takes milliseconds on some disks, and a user's call waits for it.
TEST_F(PlanFolder, EachStoreRemovesAFewFilesWhereTheFolderIsFull) {
  constexpr uint64_t kBlocks = 160;
  const std::vector<std::byte> value(100);
  const auto files = [&] {
    return static_cast<size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  };
  Folder large(path_);
  for (uint64_t i = 0; i < 1500; ++i) ASSERT_EQ(large.store({i, 0}, kHolder, "", value), "");
  timespec times[2] = {{0, UTIME_OMIT}, {1000, 0}};
  for (const auto& each : fs::directory_iterator(path_))
    ASSERT_EQ(utimensat(AT_FDCWD, each.path().c_str(), times, 0), 0);
  Folder folder(path_, kBlocks * 4096);
  size_t before = files();
  for (uint64_t i = 0; i < 200; ++i) {
    ASSERT_EQ(folder.store({i, 1}, kHolder, "", value), "");
    const size_t after = files();
    ASSERT_LE(after, before + 1);
    ASSERT_GE(after + 64, before) << i;
    before = after;
  }
  EXPECT_LE(before, kBlocks + kBlocks / 16);
  EXPECT_EQ(folder.find({199, 1}, kHolder).miss, Miss::None);
  EXPECT_EQ(folder.find({0, 0}, kHolder).miss, Miss::Absent);
}

TEST_F(PlanFolder, FilesOfOtherNamesAreNotTouched) {
  store();
  const std::string digits(32, 'a');
  std::vector<fs::path> others;
  for (const std::string& name : {std::string("thesis"), digits + "a", digits.substr(1),
                                  "A" + digits.substr(1), "g" + digits.substr(1), digits + ".plan"}) {
    others.push_back(path_ + "/" + name + ".plan");
    write(others.back(), "of somebody else");
  }
  EXPECT_EQ(Folder(path_).list(kHolder).size(), 1u);
  Folder(path_, 0).shrink();
  EXPECT_EQ(miss(), Miss::Absent);
  store();
  EXPECT_EQ(Folder(path_).clear(), 1u);
  for (const fs::path& each : others) EXPECT_TRUE(fs::exists(each)) << each;
}

// A clock that was set back leaves files of the future, which are as good as others, and go in their turn.
TEST_F(PlanFolder, FilesOfTheFutureAreUsedAndHaveTheTimeOfThatUse) {
  store();
  timespec times[2] = {{0, UTIME_OMIT}, {std::time(nullptr) + 1000000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, file().c_str(), times, 0), 0);
  EXPECT_EQ(miss(), Miss::None);
  EXPECT_LE(Folder(path_).list(kHolder).front().used, std::time(nullptr) + 1);
}

TEST_F(PlanFolder, WhatKilledProcessesLeaveIsRemovedOnceItIsOld) {
  using LookThrough = void (*)(Folder&);
  const LookThrough shrink = [](Folder& folder) { folder.shrink(); };
  const LookThrough list = [](Folder& folder) { EXPECT_EQ(folder.list(kHolder).size(), 1u); };
  for (const LookThrough look_through : {shrink, list}) {
    store();
    const fs::path old = path_ + "/.new-1-00", young = path_ + "/.new-2-00", other = path_ + "/.newer";
    for (const fs::path& each : {old, young, other}) write(each, "half");
    timespec times[2] = {{0, UTIME_OMIT}, {1000, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, old.c_str(), times, 0), 0);
    Folder folder(path_);
    look_through(folder);
    EXPECT_FALSE(fs::exists(old));
    EXPECT_TRUE(fs::exists(young));
    EXPECT_TRUE(fs::exists(other));
    EXPECT_EQ(miss(), Miss::None);
  }
}

TEST_F(PlanFolder, ListsWhatIsThereAndWhyAReaderWouldNotTakeIt) {
  store();
  store("another", {7, 7});
  Folder folder(path_);
  ASSERT_EQ(folder.list(kHolder).size(), 2u);
  const Folder::Entry entry = folder.list({"1.0-abc", "SSE4"}).front();
  EXPECT_EQ(entry.miss, Miss::Machine);
  EXPECT_EQ(entry.written_by.machine, "AVX2");
  EXPECT_EQ(entry.about, "about");
  // To be looked at is no use.
  timespec times[2] = {{0, UTIME_OMIT}, {1000, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, file().c_str(), times, 0), 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(folder.list(kHolder).back().used, 1000);
  EXPECT_EQ(folder.clear(), 2u);
  EXPECT_TRUE(folder.list(kHolder).empty());
}

TEST_F(PlanFolder, CountsOfManyProcessesAddUp) {
  constexpr int kProcesses = 8, kTimes = 20;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(fork());
    if (children.back() == 0) {
      for (int k = 0; k < kTimes; ++k)
        Folder(path_).add_counts({{"loaded", 2}, {"missed: no such thing", 1}});
      _exit(0);
    }
  }
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  const auto counts = Folder(path_).counts();
  EXPECT_EQ(counts.at("loaded"), 2u * kProcesses * kTimes);
  EXPECT_EQ(counts.at("missed: no such thing"), 1u * kProcesses * kTimes);
  write(path_ + "/.counts", "\x01\x02 rubbish\nno number\n3 loaded\n");
  EXPECT_EQ(Folder(path_).counts().at("loaded"), 3u);
}

TEST_F(PlanFolder, CountsThatNothingWroteAreIgnored) {
  write(path_ + "/.counts",
        "-5 planned\n2x tuned\n99999999999999999999999 loaded\n4 \xff\xfe\n5 \x1b[31mred\n6 missed: that\n7 "
        "\n8");
  EXPECT_EQ(Folder(path_).counts(), (std::map<std::string, uint64_t>{{"missed: that", 6}}));
  Folder(path_).add_counts({{"not written: \xc3\xa9\n", 1}});
  EXPECT_EQ(Folder(path_).counts().at("not written: ???"), 1u);
}

/// A value of a key: its size and all its bytes follow from the key and a version, and say so.
std::vector<std::byte> value_of(uint64_t key, uint64_t version) {
  std::mt19937_64 rng(key * 1000 + version);
  std::vector<std::byte> value(16 + rng() % 20000);
  for (std::byte& b : value) b = static_cast<std::byte>(rng());
  std::memcpy(value.data(), &key, 8);
  std::memcpy(value.data() + 8, &version, 8);
  return value;
}
bool is_whole(Bytes value, uint64_t key) {
  if (value.size() < 16) return false;
  uint64_t version = 0;
  std::memcpy(&version, value.data() + 8, 8);
  const std::vector<std::byte> wanted = value_of(key, version);
  return std::ranges::equal(value, wanted);
}

TEST_F(PlanFolder, CountsAreDroppedWhereAnotherKeepsTheLock) {
  Folder folder(path_);
  folder.add_counts({{"loaded", 1}});
  const Descriptor other(open((path_ + "/.lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(flock(other.get(), LOCK_EX), 0);
  folder.add_counts({{"loaded", 2}});  // returns
  EXPECT_EQ(folder.counts().at("loaded"), 1u);
  ASSERT_EQ(flock(other.get(), LOCK_UN), 0);
  folder.add_counts({{"loaded", 4}});
  EXPECT_EQ(folder.counts().at("loaded"), 5u);
}

// Processes that replace, read, shrink and die by SIGKILL in one folder: what is found is whole, and what was
// stored once stays. TENON_KILLS=200 has that many writes end by a signal; some by default.
TEST_F(PlanFolder, NothingIsLostWhereProcessesAreKilledWhileTheyWrite) {
  constexpr uint64_t kKeys = 4, kWriters = 8;
  const int kills = testing::count_of("TENON_KILLS", 20);
  for (uint64_t key = 0; key < kKeys; ++key) store("", {key, 0});
  for (uint64_t key = 0; key < kKeys; ++key)
    ASSERT_EQ(Folder(path_).store({key, 0}, kHolder, "", value_of(key, 0)), "");
  const auto write_for_ever = [&](uint64_t seed) {
    Folder folder(path_);
    std::mt19937_64 rng(seed);
    for (;;) {
      const uint64_t key = rng() % kKeys;
      if (!folder.store({key, 0}, kHolder, "", value_of(key, rng() % 1000)).empty()) _exit(1);
      const Folder::Found found = folder.find({key, 0}, kHolder);
      if (found.miss != Miss::None || !is_whole(found.value, key)) _exit(2);
      if (rng() % 8 == 0) folder.shrink();
    }
  };
  std::vector<pid_t> writers;
  uint64_t seed = 0;
  const auto start = [&] {
    const pid_t child = fork();
    if (child == 0) write_for_ever(seed);
    ++seed;
    return child;
  };
  for (uint64_t i = 0; i < kWriters; ++i) writers.push_back(start());
  Folder folder(path_);
  std::mt19937_64 rng(1);
  uint64_t reads = 0;
  const auto read_some = [&](uint64_t n) {
    for (; n > 0; --n, ++reads) {
      const uint64_t key = rng() % kKeys;
      const Folder::Found found = folder.find({key, 0}, kHolder);
      ASSERT_EQ(found.miss, Miss::None) << name(found.miss);
      ASSERT_TRUE(is_whole(found.value, key));
    }
  };
  for (int i = 0; i < kills; ++i) {
    read_some(rng() % 40);
    pid_t& victim = writers[rng() % kWriters];
    kill(victim, SIGKILL);
    int status = 0;
    waitpid(victim, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "a writer found half a value, or could not write: "
                                     << WEXITSTATUS(status);
    victim = start();
  }
  for (const pid_t writer : writers) {
    kill(writer, SIGKILL);
    int status = 0;
    waitpid(writer, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
  }
  read_some(100);
  EXPECT_GT(reads, 100u);
}

}  // namespace
}  // namespace tenon::cache
