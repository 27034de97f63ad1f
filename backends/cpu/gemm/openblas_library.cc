#include "backends/cpu/gemm/openblas_library.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <sys/auxv.h>

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <tuple>

namespace tenon::cpu {
namespace {

struct Found {
  OpenBlas functions;
  bool usable = false;
  std::string description;
};

#ifdef TENON_HAVE_OPENBLAS

// The builds that share OpenMP's threads, by the names that distributions give them, then the plain name.
// Debian's has the plain name in a folder of its own, which the loader passes over.
constexpr const char* kCandidates[] = {
    "/usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so.0",
    "/usr/lib/aarch64-linux-gnu/openblas-openmp/libopenblas.so.0",
    "libopenblaso.so.0",
    "libopenblas_openmp.so.0",
    "libopenblas.so.0",
};
// The oldest whose products several threads may call at once.
constexpr int kOldest[] = {0, 3, 10};
constexpr int kOpenMp = 2;  // openblas_get_parallel(): 0 sequential, 1 threads of its own

struct Version {
  int part[3] = {};
  bool operator<(const int (&other)[3]) const {
    return std::tie(part[0], part[1], part[2]) < std::tie(other[0], other[1], other[2]);
  }
};

/// From "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."; older than 0.3.4 does not say.
std::optional<Version> version_of(std::string_view config) {
  constexpr std::string_view kName = "OpenBLAS ";
  if (!config.starts_with(kName)) return std::nullopt;
  Version version;
  const char *at = config.data() + kName.size(), *end = config.data() + config.size();
  for (int& part : version.part) {
    const auto [next, error] = std::from_chars(at, end, part);
    if (error != std::errc()) return std::nullopt;
    at = next != end && *next == '.' ? next + 1 : next;
  }
  return version;
}

template <class F>
bool take(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

/// The file that the loader chose.
std::string path_of(const void* function, const char* asked) {
  Dl_info place{};
  return dladdr(function, &place) != 0 && place.dli_fname != nullptr ? place.dli_fname : asked;
}

Found inspect(void* library, const char* file) {
  Found found;
  OpenBlas& f = found.functions;
  char* (*config)() = nullptr;
  int (*parallel)() = nullptr;
  if (!take(library, "openblas_get_config", config) || !take(library, "openblas_get_parallel", parallel) ||
      !take(library, "cblas_sgemm", f.sgemm) || !take(library, "cblas_dgemm", f.dgemm) ||
      !take(library, "openblas_get_num_threads", f.get_num_threads) ||
      !take(library, "openblas_set_num_threads", f.set_num_threads)) {
    found.description = fmt::format("{} lacks functions of OpenBLAS ({})", file, dlerror());
    return found;
  }
  const std::string_view says = config();
  const std::string path = path_of(reinterpret_cast<const void*>(config), file);
  const std::optional<Version> version = version_of(says);
  const auto number = [](const auto& v) { return fmt::format("{}.{}.{}", v[0], v[1], v[2]); };
  if (!version || *version < kOldest) {
    found.description = fmt::format("{} is OpenBLAS {}; Tenon needs {} or newer", path,
                                    version ? number(version->part) : "older than 0.3.4", number(kOldest));
  } else if (says.find("USE64BITINT") != says.npos) {
    found.description = fmt::format("{} takes 64-bit integers; Tenon needs the build with 32-bit ones", path);
  } else if (parallel() != kOpenMp) {
    found.description =
        fmt::format("{} is a build {}; Tenon needs the one for OpenMP (Debian: libopenblas0-openmp)", path,
                    parallel() == 0 ? "without threads" : "with threads of its own");
  } else {
    found.usable = true;
    found.description = fmt::format("OpenBLAS {} ({})", number(version->part), path);
  }
  return found;
}

Found find() {
  Found result;
  const char* asked = std::getenv("TENON_OPENBLAS");
  if (asked != nullptr && std::string_view(asked) == "none") {
    result.description = "TENON_OPENBLAS=none";
    return result;
  }
  // A program without a dynamic loader could only load a second C library beside its own.
  if (getauxval(AT_BASE) == 0) {
    result.description = "the program is linked statically";
    return result;
  }
  const auto attempt = [&](const char* file) {
    void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const std::string_view error = dlerror();
      // One that is there and cannot be loaded is worth a word.
      if (!error.starts_with(std::string(file) + ": cannot open shared object file: No such file"))
        result.description = error;
      return;
    }
    Found found = inspect(library, file);
    if (!found.usable) dlclose(library);
    if (found.usable || result.description.empty()) result = std::move(found);
  };
  if (asked != nullptr && *asked != '\0') {
    attempt(asked);
    if (result.description.empty())
      result.description = fmt::format("TENON_OPENBLAS: there is no file {}", asked);
    return result;
  }
  for (const char* file : kCandidates) {
    attempt(file);
    if (result.usable) return result;
  }
  if (result.description.empty())
    result.description = "libopenblas.so.0 was not found (Debian: libopenblas0-openmp)";
  return result;
}

#else

Found find() {
  Found result;
  result.description = "this build does not look for it (TENON_OPENBLAS=OFF)";
  return result;
}

#endif

const Found& found() {
  static const Found kFound = [] {
    Found f = find();
    if (!f.usable) f.description = "Tenon's own, without OpenBLAS: " + f.description;
    return f;
  }();
  return kFound;
}

}  // namespace

const OpenBlas* openblas() { return found().usable ? &found().functions : nullptr; }

const std::string& openblas_description() { return found().description; }

}  // namespace tenon::cpu
