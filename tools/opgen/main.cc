// opgen YAML_FOLDER OUTPUT_FOLDER: prints everything that follows from the operators' YAML. A file whose text
// has not changed is left alone, so that nothing that depends on it is compiled again.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tenon/core/error.h"
#include "tools/opgen/files.h"
#include "tools/opgen/printers.h"

namespace tenon::opgen {

namespace {

constexpr auto kPrinters = {&print_functions, &print_bodies, &print_register, &print_pointwise,
                            &print_docs,      &print_python, &print_stubs,    &print_index};

// Primitives are split by the expression room; the build knows kPrimitiveFiles names.
std::vector<GeneratedFile> print_primitives() {
  std::vector<GeneratedFile> files = expr::print_interpreter_primitives("");
  const size_t tables = files.size() - 2;  // without primitives_narrow and primitives_table
  TENON_CHECK(
      tables <= kPrimitiveFiles, Internal,
      fmt::format("there are {} files of primitives; raise kPrimitiveFiles in tools/opgen/files.h", tables));
  for (size_t i = tables; i < kPrimitiveFiles; ++i) {
    files.push_back({fmt::format("primitives_{}.cc", i), "// No primitives here.\n"});
  }
  return files;
}

void write_if_changed(const std::filesystem::path& path, const std::string& text) {
  std::stringstream old;
  old << std::ifstream(path, std::ios::binary).rdbuf();
  if (std::filesystem::exists(path) && old.str() == text) return;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  TENON_CHECK(out, Runtime, fmt::format("cannot write {}", path.string()));
}

void run(const std::string& yaml, const std::filesystem::path& output) {
  const std::vector<OpDef> defs = read_operators(yaml);
  for (const auto printer : kPrinters) {
    for (const GeneratedFile& file : printer(defs)) write_if_changed(output / file.name, file.text);
  }
  for (const GeneratedFile& file : print_primitives()) write_if_changed(output / file.name, file.text);
}

}  // namespace

}  // namespace tenon::opgen

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: opgen YAML_FOLDER OUTPUT_FOLDER\n");
    return 2;
  }
  try {
    tenon::opgen::run(argv[1], argv[2]);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "opgen: %s\n", e.what());
    return 1;
  }
}
