// Two functions in the versions that glibc 2.34 and the libstdc++ of GCC 11 have. The linker sends the
// library's calls here (--wrap); the compiler's own choice would need newer systems.
#include <condition_variable>
#include <mutex>

#define TENON_OLDER(name, symbol, version) __asm__(".symver " #name "," symbol "@" version)

extern "C" {

TENON_OLDER(older_hypot, "hypot", "GLIBC_2.2.5");
double older_hypot(double x, double y);
[[gnu::visibility("hidden")]] double __wrap_hypot(double x, double y) { return older_hypot(x, y); }

TENON_OLDER(older_wait, "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE", "GLIBCXX_3.4.11");
void older_wait(std::condition_variable* self, std::unique_lock<std::mutex>& lock);
[[gnu::visibility("hidden")]] void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(
    std::condition_variable* self, std::unique_lock<std::mutex>& lock) {
  older_wait(self, lock);
}

}  // extern "C"
