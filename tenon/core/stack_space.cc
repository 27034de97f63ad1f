#include "tenon/core/stack_space.h"

#include <pthread.h>

#include <cstdint>

namespace tenon {

#if defined(__GLIBC__)
namespace {

uintptr_t end_of_stack() noexcept {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* end = nullptr;
  size_t size = 0;
  pthread_attr_getstack(&attributes, &end, &size);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<uintptr_t>(end);
}

}  // namespace

size_t stack_left() noexcept {
  thread_local const uintptr_t end = end_of_stack();
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return end == 0 || here < end ? SIZE_MAX : here - end;
}
#else
size_t stack_left() noexcept { return SIZE_MAX; }
#endif

}  // namespace tenon
