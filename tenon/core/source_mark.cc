#include "tenon/core/source_mark.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <mutex>

#if __has_include(<elfutils/libdwfl.h>)
#include <elfutils/libdwfl.h>
#define TENON_LIBDWFL 1
#else
#define TENON_LIBDWFL 0
#endif

// Put there by the linker around what TENON_CALL_SITE marks; weak, because a program may link none of it.
extern "C" {
[[gnu::weak, gnu::visibility("hidden")]] extern const char __start_tenon_call_sites[];
[[gnu::weak, gnu::visibility("hidden")]] extern const char __stop_tenon_call_sites[];
}

namespace tenon {
namespace {

std::atomic<const SourceLanguage*> source_language{nullptr};

#if TENON_LIBDWFL
/// libdw, loaded when the first line is asked for: programs that meet no error do not need it.
struct Libdw {
  decltype(&::dwfl_begin) begin = nullptr;
  decltype(&::dwfl_end) end = nullptr;
  decltype(&::dwfl_linux_proc_report) report = nullptr;
  decltype(&::dwfl_report_end) report_end = nullptr;
  decltype(&::dwfl_linux_proc_find_elf) find_elf = nullptr;
  decltype(&::dwfl_standard_find_debuginfo) find_debuginfo = nullptr;
  decltype(&::dwfl_getsrc) getsrc = nullptr;
  decltype(&::dwfl_lineinfo) lineinfo = nullptr;
  bool loaded = false;

  Libdw() {
    void* library = dlopen("libdw.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (!library) return;
    loaded = find(library, "dwfl_begin", begin) && find(library, "dwfl_end", end) &&
             find(library, "dwfl_linux_proc_report", report) &&
             find(library, "dwfl_report_end", report_end) &&
             find(library, "dwfl_linux_proc_find_elf", find_elf) &&
             find(library, "dwfl_standard_find_debuginfo", find_debuginfo) &&
             find(library, "dwfl_getsrc", getsrc) && find(library, "dwfl_lineinfo", lineinfo);
  }
  template <class F>
  static bool find(void* library, const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(library, name));
    return function;
  }
};

/// "trainer.cc:40"; empty without debug information.
std::string line_of(uint64_t address) {
  // libdw keeps state of its own; errors are rare enough to take turns.
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  static const Libdw& dw = *new Libdw;
  if (!dw.loaded) return "";
  const Dwfl_Callbacks callbacks = {.find_elf = dw.find_elf,
                                    .find_debuginfo = dw.find_debuginfo,
                                    .section_address = nullptr,
                                    .debuginfo_path = nullptr};
  const std::unique_ptr<Dwfl, decltype(&::dwfl_end)> session(dw.begin(&callbacks), dw.end);
  if (!session || dw.report(session.get(), getpid()) != 0 ||
      dw.report_end(session.get(), nullptr, nullptr) != 0)
    return "";
  Dwfl_Line* line = dw.getsrc(session.get(), address);
  int number = 0;
  const char* file = line ? dw.lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr) : nullptr;
  return file ? fmt::format("{}:{}", file, number) : "";
}
#else
std::string line_of(uint64_t) { return ""; }
#endif

std::string symbol_of(uint64_t address) {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void*>(address), &info)) return fmt::format("address {:#x}", address);
  if (info.dli_sname) {
    const std::unique_ptr<char, void (*)(void*)> name(
        abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, nullptr), &std::free);
    return name ? name.get() : info.dli_sname;
  }
  const std::string_view file = info.dli_fname ? info.dli_fname : "the program";
  return fmt::format("{}+{:#x}", file.substr(file.rfind('/') + 1),
                     address - reinterpret_cast<uint64_t>(info.dli_fbase));
}

}  // namespace

void set_source_language(const SourceLanguage* language) noexcept {
  source_language.store(language, std::memory_order_release);
}

SourceMark note_caller(void* return_address) noexcept {
  SourceMark mark;
  const SourceLanguage* language = source_language.load(std::memory_order_acquire);
  if (!language || !language->note(mark)) mark.place = reinterpret_cast<uint64_t>(return_address);
  return mark;
}

SourceMark note_source([[maybe_unused]] void* frame) noexcept {
  if (!frame) return note_caller(nullptr);
#if defined(__x86_64__) || defined(__aarch64__)
  // A frame starts with the caller's frame and the return address. Only functions known to keep the former
  // are stepped over.
  auto* const* at = static_cast<void* const*>(frame);
  const auto* back = static_cast<const char*>(at[1]);
  while (back >= __start_tenon_call_sites && back < __stop_tenon_call_sites) {
    at = static_cast<void* const*>(at[0]);
    back = static_cast<const char*>(at[1]);
  }
  return note_caller(const_cast<char*>(back));
#else
  return note_caller(nullptr);
#endif
}

std::string describe_source(const SourceMark& mark) {
  if (!mark) return "an unknown place";
  if (mark.detail >= 0) {
    const SourceLanguage* language = source_language.load(std::memory_order_acquire);
    return language ? language->describe(mark) : "an unknown place";
  }
  // The call, not what follows it.
  const std::string line = line_of(mark.place - 1);
  return line.empty() ? symbol_of(mark.place - 1) + " (no debug information)" : line;
}

}  // namespace tenon
