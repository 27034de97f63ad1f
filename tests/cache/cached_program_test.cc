// Programs whose plans are in a folder: what is wrong with a file there costs time and no results, and the
// processes of one folder find each other's plans. The room's program has a folder of its own.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "tenon/builder/graph.h"
#include "tenon/cache/plan_cache.h"
#include "tenon/graph/text/bytes.h"
#include "tenon/optim/adam.h"
#include "tenon/record/compile.h"
#include "tenon/tenon.h"
#include "tests/altered_bytes.h"

namespace tenon::cache {
namespace {

namespace fs = std::filesystem;

// Made before anybody asks for the cache, and removed after it was written for the last time.
struct FolderOfTests {
  std::string name = (fs::temp_directory_path() / "tenon-plans-XXXXXX").string();
  FolderOfTests() {
    mkdtemp(name.data());
    setenv("TENON_CACHE", name.c_str(), 1);
  }
  ~FolderOfTests() { fs::remove_all(name); }
};
const FolderOfTests kMade;
const std::string& kFolder = kMade.name;

class CachedProgram : public ::testing::Test {
 protected:
  CachedProgram() {
    PlanCache::get().write();  // what other tests made
    PlanCache::get().clear();
  }

  static fs::path file() {
    PlanCache::get().write();
    for (const auto& each : fs::directory_iterator(kFolder)) {
      if (each.path().extension() == ".plan") return each.path();
    }
    return {};
  }
  static std::string contents(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  }
};

/// What a program computes that nobody on this thread ran before.
template <class F>
Tensor run_anew(F&& program) {
  return compile(program, {.threshold = 0})();
}

struct Program {
  const Tensor x = randn({24, 16}), w = randn({16, 8});
  Tensor operator()() const {
    return sum(relu(matmul(x * 2, w) + 0.5) * sigmoid(x.narrow(1, 0, 8)), Dims{1}, true);
  }
};

TEST_F(CachedProgram, AFileThatIsCutOffOrAlteredIsPlannedAgain) {
  const Program program;
  const Tensor wanted = program();
  EXPECT_TRUE(equal(run_anew(program), wanted));
  const fs::path at = file();
  const std::string whole = contents(at);
  PlanCache::Counts before = PlanCache::get().counts();
  EXPECT_TRUE(equal(run_anew(program), wanted));
  EXPECT_EQ(PlanCache::get().counts().loaded, before.loaded + 1);
  EXPECT_EQ(PlanCache::get().counts().planned, before.planned);

  std::mt19937_64 rng(1);
  before = PlanCache::get().counts();
  constexpr int kTimes = 60;
  for (int i = 0; i < kTimes; ++i) {
    std::string bad = whole;
    const size_t bit = rng() % (whole.size() * 8);
    if (i % 2 == 0)
      bad.resize(bit / 8);
    else
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    write(at, bad);
    EXPECT_TRUE(equal(run_anew(program), wanted));
    // What was made instead takes its place.
    PlanCache::get().write();
    ASSERT_EQ(contents(at), whole);
  }
  const PlanCache::Counts after = PlanCache::get().counts();
  EXPECT_EQ(after.planned - before.planned, kTimes);
  EXPECT_EQ(after.loaded, before.loaded);
  uint64_t missed = 0;
  for (const auto& [why, n] : after.missed) missed += n;
  for (const auto& [why, n] : before.missed) missed -= n;
  EXPECT_EQ(missed, uint64_t{kTimes});
}

TEST_F(CachedProgram, ThePlanOfAnotherProgramDoesNotFit) {
  const Program program;
  (void)run_anew(program);
  PlanCache::get().write();
  const Folder::Entry entry = PlanCache::get().list().front();
  const auto key_of = [](const std::string& name) {
    return expr::Key{std::stoull(name.substr(0, 16), nullptr, 16),
                     std::stoull(name.substr(16, 16), nullptr, 16)};
  };
  // Another program with as many calls, one of which is another.
  const auto other = [&] {
    return sum(relu(matmul(program.x * 2, program.w) + 0.5) * tanh(program.x.narrow(1, 0, 8)), Dims{1}, true);
  };
  PlanCache::get().clear();
  const Tensor wanted = other();
  EXPECT_TRUE(equal(run_anew(other), wanted));
  PlanCache::get().write();
  Folder folder(kFolder);
  const Folder::Found found = folder.find(key_of(PlanCache::get().list().front().file), entry.written_by);
  ASSERT_EQ(found.miss, Miss::None);
  ASSERT_EQ(folder.store(key_of(entry.file), entry.written_by, "", found.value), "");
  const uint64_t planned = PlanCache::get().counts().planned;
  EXPECT_TRUE(equal(run_anew(program), program()));
  EXPECT_EQ(PlanCache::get().counts().planned, planned + 1);
  EXPECT_EQ(PlanCache::get().counts().missed.at("the plan does not fit: it has other calls than the program"),
            1u);
}

TEST_F(CachedProgram, NumbersAreNoPartOfAPlanAndSettingsAre) {
  const Tensor x = randn({32});
  const auto scaled = [&](double by, bool relaxed) {
    return compile([&] { return x * by + 1; }, {.threshold = 0, .relaxed = relaxed})();
  };
  EXPECT_TRUE(equal(scaled(2, false), x * 2 + 1));
  PlanCache::get().write();
  const PlanCache::Counts before = PlanCache::get().counts();
  EXPECT_TRUE(equal(scaled(3, false), x * 3 + 1));
  EXPECT_EQ(PlanCache::get().counts().loaded, before.loaded + 1);
  EXPECT_TRUE(equal(scaled(3, true), x * 3 + 1));
  EXPECT_EQ(PlanCache::get().counts().loaded, before.loaded + 1);
}

// Each thread has a tree of its own, and all share the folder.
TEST_F(CachedProgram, ThreadsPlanLoadAndWriteAtTheSameTime) {
  const auto work = [](uint64_t seed) {
    for (uint64_t i = 0; i < 12; ++i) {
      const Tensor x = full({static_cast<int64_t>(4 + (i + seed) % 6)}, 2.0);
      EXPECT_TRUE(equal(run_anew([&] { return tanh(x * 3) + x; }), tanh(x * 3) + x));
      if (i % 4 == seed % 4) PlanCache::get().write();
      if (i % 7 == 0) (void)PlanCache::get().summary();
    }
  };
  const PlanCache::Counts before = PlanCache::get().counts();
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 4; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
  const PlanCache::Counts after = PlanCache::get().counts();
  EXPECT_EQ(after.planned + after.loaded - before.planned - before.loaded, 48u);
  EXPECT_GT(after.loaded, before.loaded);
  PlanCache::get().write();
  EXPECT_EQ(PlanCache::get().list().size(), 6u);
}

/// Runs `f` in a process of its own, whose cache knows nothing of this one's, and returns what it says.
template <class F>
std::string in_process(F&& f) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string said = f();
    const ssize_t written = ::write(ends[1], said.data(), said.size());
    _exit(written == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  char some[256];
  for (ssize_t n; (n = read(ends[0], some, sizeof(some))) > 0;) said.append(some, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return said;
}

std::string adam_steps() {
  manual_seed(3);
  const Tensor x = randn({64, 16}), y = randn({64, 4});
  const Tensor w = randn({16, 4}).requires_grad_(), b = zeros({4}).requires_grad_();
  optim::Adam adam({w, b}, {.lr = 1e-2});
  std::string said;
  auto step = compile(
      [&] {
        adam.zero_grad();
        const Tensor loss = mean(square(matmul(x, w) + b - y));
        loss.backward();
        adam.step();
        return loss;
      },
      {.threshold = 0});
  for (int i = 0; i < 6; ++i) {
    said += fmt::format("{:a} ", step().item().to_double());
    adam.options().lr = 1e-2 / (i + 1);
  }
  return said + "| " + PlanCache::get().summary();
}

TEST_F(CachedProgram, ASecondProcessOfAdamWithAScheduleOfRatesPlansNothing) {
  const std::string first = in_process(&adam_steps), second = in_process(&adam_steps);
  const size_t end = first.find('|');
  EXPECT_EQ(second.substr(0, end), first.substr(0, end));
  EXPECT_NE(first.find(" planned, 0 tuned, 0 loaded"), std::string::npos) << first;
  EXPECT_NE(second.find("| 0 planned, 0 tuned, "), std::string::npos) << second;
}

// A graph of the builder: of the same file, an altered one is planned again.
TEST_F(CachedProgram, PlansOfBuiltGraphsAreFoundByGraphAndSignature) {
  const Tensor x = randn({8, 6}), w = randn({6, 5});
  const auto built = [&](uint64_t uid) {
    builder::Graph g({.io = kFloat32});
    auto& tx = g.tensor({.dim = {8, 6}, .uid = uid});
    auto& tw = g.tensor({.dim = {6, 5}, .uid = 2});
    g.relu(g.matmul(tx, tw)).set_uid(3).set_output();
    g.build();
    const Tensor out = empty({8, 5}), space = empty({static_cast<int64_t>(g.workspace_size()) + 64}, kUInt8);
    const auto address = [](const Tensor& t) { return reinterpret_cast<Address>(t.data_ptr()); };
    const size_t skip = -address(space) % 64;
    g.execute({{uid, address(x)}, {2, address(w)}, {3, address(out)}},
              {static_cast<std::byte*>(space.data_ptr()) + skip, g.workspace_size()});
    EXPECT_TRUE(equal(out, relu(matmul(x, w))));
  };
  built(1);
  const fs::path at = file();
  PlanCache::Counts before = PlanCache::get().counts();
  built(1);
  EXPECT_EQ(PlanCache::get().counts().loaded, before.loaded + 1);
  built(7);  // another signature
  EXPECT_EQ(PlanCache::get().counts().planned, before.planned + 1);
  std::string bad = contents(at);
  bad[bad.size() / 2] ^= 4;
  write(at, bad);
  built(1);
  EXPECT_EQ(PlanCache::get().counts().planned, before.planned + 2);
}

// Files with checksums that fit, as only somebody who wants that writes them: they load or are refused, and
// nothing else happens, under a sanitizer either. TENON_MUTATIONS=20000 tries that many.
TEST_F(CachedProgram, ChangedPlansWithRightChecksumsNeverCrash) {
  const int count = tenon::testing::mutations(2000);
  const Program program;
  // The graph in a file has a checksum of its own, which is made to fit as well.
  const auto sealed = [](std::vector<std::byte> bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const size_t at = text.find("TENONGRF");
    if (at == std::string_view::npos || bytes.size() < at + 32) return bytes;
    const Bytes rest = Bytes(bytes).subspan(at + 32);
    const uint64_t length = rest.size(), sum = graph::checksum(rest);
    for (size_t i = 0; i < 8; ++i) {
      bytes[at + 16 + i] = static_cast<std::byte>(length >> 8 * i);
      bytes[at + 24 + i] = static_cast<std::byte>(sum >> 8 * i);
    }
    return bytes;
  };
  (void)run_anew(program);
  PlanCache::get().write();
  const Folder::Entry entry = PlanCache::get().list().front();
  const expr::Key key{std::stoull(entry.file.substr(0, 16), nullptr, 16),
                      std::stoull(entry.file.substr(16, 16), nullptr, 16)};
  Folder folder(kFolder);
  const Folder::Found good = folder.find(key, entry.written_by);
  ASSERT_EQ(good.miss, Miss::None);
  const PlanCache::Counts before = PlanCache::get().counts();
  for (int seed = 0; seed < count; ++seed) {
    std::mt19937_64 rng(static_cast<uint64_t>(seed));
    const tenon::testing::MemoryBound bound(good.file.size());  // of one plan: programs keep theirs
    ASSERT_EQ(folder.store(key, entry.written_by, "",
                           sealed(tenon::testing::altered({good.value.begin(), good.value.end()}, rng))),
              "");
    try {
      (void)run_anew(program);
    } catch (const Error&) {
    }
  }
  const PlanCache::Counts after = PlanCache::get().counts();
  // Most changes break a plan, not all.
  EXPECT_GT(after.loaded - before.loaded, static_cast<uint64_t>(count) / 200);
  EXPECT_GT(after.planned - before.planned, static_cast<uint64_t>(count) / 2);
}

}  // namespace
}  // namespace tenon::cache
