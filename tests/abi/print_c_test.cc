// Printed kernels have the interpreter's bits: random expressions as C, compiled by the compiler of this
// build with the options that print_c.h asks for.
#include "tenon/abi/print_c.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/abi/launching.h"
#include "tests/counts.h"

namespace tenon::expr::testing {
namespace {

/// A shared library of the printed kernels of some launches.
class Compiled {
 public:
  explicit Compiled(const std::string& source) {
    char pattern[] = "/tmp/tenon_kernels_XXXXXX";
    folder_ = ::mkdtemp(pattern);
    std::ofstream(folder_ / "kernels.c") << source;
    std::string command = TENON_C_COMPILER;
    for (const std::string& option : abi::compiler_options(abi::Language::C)) command += " " + option;
    command += " -O1 -Wall -Wextra -shared -fPIC -o " + (folder_ / "kernels.so").string() + " " +
               (folder_ / "kernels.c").string() + " -lm 2> " + (folder_ / "messages").string();
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    std::ifstream messages(folder_ / "messages");
    EXPECT_EQ(messages.peek(), std::ifstream::traits_type::eof()) << messages.rdbuf();
    library_ = ::dlopen((folder_ / "kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library_, nullptr) << ::dlerror();
  }
  ~Compiled() {
    if (library_) ::dlclose(library_);
    std::filesystem::remove_all(folder_);
  }

  void run(const std::string& name, const TenonLaunch& launch) const {
    const auto kernel = reinterpret_cast<void (*)(const uint64_t*, uint64_t, uint64_t)>(
        library_ ? ::dlsym(library_, name.c_str()) : nullptr);
    ASSERT_NE(kernel, nullptr) << name;
    const std::vector<uint64_t> words =
        abi::kernel_words(launch, [](const TenonOperand& operand) { return operand.address; });
    // In two parts, as two threads would.
    kernel(words.data(), 0, 5);
    kernel(words.data(), 5, words[0]);
  }

 private:
  std::filesystem::path folder_;
  void* library_ = nullptr;
};

using Launches = std::vector<std::unique_ptr<Launched>>;

void compare(const Launches& launches) {
  std::string source = abi::print_prelude(abi::Language::C);
  for (size_t i = 0; i < launches.size(); ++i) {
    ASSERT_TRUE(abi::prints(launches[i]->launch(), {}));
    source += abi::print_kernel(abi::Language::C, "kernel_" + std::to_string(i), launches[i]->launch());
  }
  const Compiled compiled(source);
  for (size_t i = 0; i < launches.size(); ++i) {
    compiled.run("kernel_" + std::to_string(i), launches[i]->launch());
    ASSERT_EQ(launches[i]->differing(), 0) << "number " << i << "\n" << launches[i]->text();
  }
}

// The compiler takes most of the time: TENON_EXPRESSIONS=500 has five times as many compiled.
void compare(Type type) {
  Launches launches;
  const auto count = static_cast<uint64_t>(tenon::testing::count_of("TENON_EXPRESSIONS", 100));
  for (uint64_t i = 0; i < count; ++i) launches.push_back(std::make_unique<RandomLaunch>(i, type, 6));
  compare(launches);
}

TEST(PrintC, HasTheBitsOfTheInterpreterFloat32) { compare(Type::F32); }
TEST(PrintC, HasTheBitsOfTheInterpreterFloat64) { compare(Type::F64); }
TEST(PrintC, HasTheBitsOfTheInterpreterInt32) { compare(Type::I32); }
TEST(PrintC, HasTheBitsOfTheInterpreterInt64) { compare(Type::I64); }

TEST(PrintC, HasTheBitsOfTheInterpreterForTypedExpressions) {
  Launches launches;
  for (uint64_t seed = 1; seed <= 100; ++seed)
    launches.push_back(std::make_unique<DenseLaunch>(*RandomTyped(seed).make(8), 40, seed));
  compare(launches);
}

TEST(PrintC, HasTheBitsOfTheInterpreterForEveryOperationOnSpecialValues) {
  Launches launches = special_launches();
  EXPECT_GT(launches.size(), 120u);
  compare(launches);
}

TEST(PrintC, NeedsNoDoublesWhereTheProgramHasNone) {
  const RandomLaunch floats(0, Type::F64, 3);
  EXPECT_FALSE(abi::prints(floats.launch(), {.f64 = false}));
  EXPECT_TRUE(abi::prints(floats.launch(), {}));
  const std::string prelude = abi::print_prelude(abi::Language::OpenCL, {.f64 = false});
  EXPECT_EQ(prelude.find("f64"), std::string::npos);
  EXPECT_EQ(prelude.find("double"), std::string::npos);
  EXPECT_NE(abi::print_prelude(abi::Language::OpenCL).find("f64"), std::string::npos);
}

TEST(PrintC, DeclinesOperationsThatItDoesNotKnow) {
  const RandomLaunch random(0, Type::I32, 3);
  TenonProgram later = *random.launch().program;
  later.ops_used |= uint64_t{1} << 50;
  TenonLaunch launch = random.launch();
  launch.program = &later;
  EXPECT_TRUE(abi::prints(random.launch(), {}));
  EXPECT_FALSE(abi::prints(launch, {}));
}

}  // namespace
}  // namespace tenon::expr::testing
