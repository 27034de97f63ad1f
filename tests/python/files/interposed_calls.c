// Preloaded into a process that saves: ends the process, or fails, at the call of the system that it is told.
// Counts the calls that change files of one folder.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char folder[4096];
static int countdown = -1, code, no_nameless, calls;

// From now on the call with number `n` (0: the next) of those below kills the process before it is made, or
// fails with `error` if that is not 0; none for n < 0.
void plan_end(const char* in_folder, int n, int error) {
  strncpy(folder, in_folder, sizeof folder - 1);
  countdown = n;
  code = error;
  calls = 0;
}
void refuse_nameless_files(int on) { no_nameless = on; }
int calls_so_far(void) { return calls; }

static int fails(void) {
  ++calls;
  if (countdown < 0 || countdown-- != 0) return 0;
  if (code == 0) kill(getpid(), SIGKILL);
  errno = code;
  return 1;
}
static int in_folder_at(const char* path) { return folder[0] && strncmp(path, folder, strlen(folder)) == 0; }
static int is_inside(int file) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < 0) return 0;
  path[n] = 0;
  return in_folder_at(path);
}

#define ORIGINAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int opened(__typeof__(&open) original, const char* path, int flags, mode_t mode) {
  const int nameless = (flags & O_TMPFILE) == O_TMPFILE;
  if (in_folder_at(path) && nameless && no_nameless) {
    errno = EOPNOTSUPP;
    return -1;
  }
  if (in_folder_at(path) && (nameless || (flags & O_CREAT)) && fails()) return -1;
  return original(path, flags, mode);
}
#define OPEN(name)                                    \
  int name(const char* path, int flags, ...) {        \
    va_list more;                                     \
    va_start(more, flags);                            \
    const mode_t mode = va_arg(more, mode_t);         \
    va_end(more);                                     \
    return opened(ORIGINAL(name), path, flags, mode); \
  }
OPEN(open)
OPEN(open64)

ssize_t write(int file, const void* bytes, size_t n) {
  return is_inside(file) && fails() ? -1 : ORIGINAL(write)(file, bytes, n);
}
int fsync(int file) { return is_inside(file) && fails() ? -1 : ORIGINAL(fsync)(file); }
int linkat(int from, const char* source, int to, const char* target, int flags) {
  return in_folder_at(target) && fails() ? -1 : ORIGINAL(linkat)(from, source, to, target, flags);
}
int rename(const char* from, const char* to) {
  return in_folder_at(to) && fails() ? -1 : ORIGINAL(rename)(from, to);
}
