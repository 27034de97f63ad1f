// What the tests of memory share.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>

namespace tenon::testing {

inline constexpr size_t kMiB = size_t{1} << 20;

/// What a forked child returns from `body`; it runs no destructors and no exit handlers.
template <class F>
int in_child(F&& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace tenon::testing
