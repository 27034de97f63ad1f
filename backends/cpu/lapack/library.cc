#include "backends/cpu/lapack/library.h"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cpu::lapack {
namespace {

/// How builds name their functions: NumPy's and SciPy's OpenBLAS, distributions' and Intel's.
struct Naming {
  const char *prefix, *suffix;
  bool wide;
};
constexpr Naming kNamings[] = {{"scipy_", "_64_", true},
                               {"", "_64_", true},
                               {"", "64_", true},
                               {"scipy_", "_", false},
                               {"", "_", false}};

/// OpenBLAS of NumPy's wheel, where this library is .../site-packages/tenon/lib/libtenon.so.
std::vector<std::string> files_of_numpy() {
  Dl_info here{};
  if (!dladdr(reinterpret_cast<const void*>(&files_of_numpy), &here) || !here.dli_fname) return {};
  const std::string own = here.dli_fname;
  const size_t folder = own.rfind("/tenon/lib/");
  if (folder == std::string::npos) return {};
  std::vector<std::string> files;
  glob_t found{};
  if (glob((own.substr(0, folder) + "/numpy.libs/libscipy_openblas*.so").c_str(), 0, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i) files.emplace_back(found.gl_pathv[i]);
  globfree(&found);
  return files;
}

Library open(const std::string& file) {
  Library made;
  // Not to be unloaded: OpenBLAS has threads.
  made.handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!made.handle) return made;
  for (const Naming& naming : kNamings) {
    made.prefix = naming.prefix;
    made.suffix = naming.suffix;
    made.wide = naming.wide;
    if (!made.function("dsyevd")) continue;
    made.set_threads = reinterpret_cast<int (*)(int)>(dlsym(made.handle, "openblas_set_num_threads_local"));
    return made;
  }
  return {};
}

Library find() {
  std::vector<std::string> files;
  if (const char* const given = std::getenv("TENON_LAPACK"); given && *given) {
    if (std::string_view(given) == "off") return {};
    files = {given};
  } else {
    files = files_of_numpy();
    files.insert(files.end(), {"libopenblas.so.0", "liblapack.so.3"});
  }
  for (const std::string& file : files)
    if (Library made = open(file); made.handle) return made;
  return {};
}

}  // namespace

void* Library::function(const char* name) const {
  return dlsym(handle, (std::string(prefix) + name + suffix).c_str());
}

const Library& library() {
  static const Library& found = *new Library(find());
  return found;
}

}  // namespace tenon::cpu::lapack
