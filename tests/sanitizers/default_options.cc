// How every test program runs under a sanitizer: an allocation that is too large fails as it does without
// one.
extern "C" const char* __asan_default_options();
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __ubsan_default_options();

extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __ubsan_default_options() { return "print_stacktrace=1:halt_on_error=1"; }

// Memory that the loader allocates and frees for itself is guarded by the loader's own lock, which
// ThreadSanitizer does not see: it would report a library's name that one thread allocated in dlopen and
// another reads in dl_iterate_phdr or frees in dlclose.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:ld-linux\n"
         "race:tenon::detail::(anonymous namespace)::path_of\n";
}
