// The structs of the plug-in interface lie in memory as they did when they were released: layout_v1.txt.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tenon/abi/tenon_program.h"

namespace {

struct Field {
  const char* name;
  size_t offset, size;
};

// "TenonDevice 2: backend 0+1, index 1+1"
std::string layout(const char* name, size_t size, std::initializer_list<Field> fields) {
  std::ostringstream line;
  line << name << ' ' << size << ':';
  const char* separator = " ";
  for (const Field& f : fields) {
    line << separator << f.name << ' ' << f.offset << '+' << f.size;
    separator = ", ";
  }
  return line.str() + "\n";
}

#define FIELD(member) \
  Field { #member, offsetof(Struct, member), sizeof(Struct::member) }

template <class Struct>
std::string layout_of();

template <>
std::string layout_of<TenonDevice>() {
  using Struct = TenonDevice;
  return layout("TenonDevice", sizeof(Struct), {FIELD(backend), FIELD(index)});
}
template <>
std::string layout_of<TenonStream>() {
  using Struct = TenonStream;
  return layout("TenonStream", sizeof(Struct), {FIELD(id), FIELD(device), FIELD(reserved)});
}
template <>
std::string layout_of<TenonNode>() {
  using Struct = TenonNode;
  return layout("TenonNode", sizeof(Struct),
                {FIELD(op), FIELD(type), FIELD(arity), FIELD(flags), FIELD(args), FIELD(bits)});
}
template <>
std::string layout_of<TenonProgram>() {
  using Struct = TenonProgram;
  return layout(
      "TenonProgram", sizeof(Struct),
      {FIELD(struct_size), FIELD(num_inputs), FIELD(num_scalars), FIELD(num_outputs), FIELD(num_nodes),
       FIELD(types_used), FIELD(ops_used), FIELD(nodes), FIELD(outputs), FIELD(hash), FIELD(text)});
}
template <>
std::string layout_of<TenonOperand>() {
  using Struct = TenonOperand;
  return layout("TenonOperand", sizeof(Struct),
                {FIELD(address), FIELD(strides), FIELD(dtype), FIELD(place), FIELD(reserved)});
}
template <>
std::string layout_of<TenonLaunch>() {
  using Struct = TenonLaunch;
  return layout("TenonLaunch", sizeof(Struct),
                {FIELD(struct_size), FIELD(ndim), FIELD(name), FIELD(program), FIELD(stream), FIELD(sizes),
                 FIELD(operands), FIELD(results), FIELD(scalars), FIELD(variant), FIELD(form),
                 FIELD(reserved), FIELD(slot)});
}

TEST(Layout, OfProgramsIsThatOfVersion1) {
  const std::string now = layout_of<TenonDevice>() + layout_of<TenonStream>() + layout_of<TenonNode>() +
                          layout_of<TenonProgram>() + layout_of<TenonOperand>() + layout_of<TenonLaunch>();
  std::ifstream file(TENON_SOURCE "/tests/abi/layout_v1.txt");
  std::ostringstream released;
  released << file.rdbuf();
  EXPECT_EQ(now, released.str());
}

// What may grow says first how large it is.
TEST(Layout, OfWhatMayGrowBeginsWithItsSize) {
  EXPECT_EQ(offsetof(TenonProgram, struct_size), 0u);
  EXPECT_EQ(offsetof(TenonLaunch, struct_size), 0u);
}

::testing::AssertionResult compiles(const std::string& compiler, const std::string& header) {
  std::string command = compiler;
  command.append(" -Wall -Wextra -pedantic -Werror -fsyntax-only -I " TENON_SOURCE " -include tenon/abi/");
  command.append(header).append(" /dev/null");
  if (std::system(command.c_str()) == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << command;
}

TEST(Layout, HeadersArePlainC) {
  for (const char* header : {"tenon_types.h", "tenon_program.h"})
    EXPECT_TRUE(compiles(TENON_C_COMPILER " -std=c11", header));
}

// Tools for plug-ins need no more than C++17, and nothing of Tenon but its C headers.
TEST(Layout, ToolsAreCpp17) {
  for (const char* header : {"program.h", "print_c.h"})
    EXPECT_TRUE(compiles(TENON_CXX_COMPILER " -x c++ -std=c++17", header));
}

}  // namespace
