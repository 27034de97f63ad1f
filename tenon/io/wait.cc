#include "tenon/io/wait.h"

#include <fcntl.h>
#include <poll.h>

#include <cerrno>

#include "tenon/core/interrupt.h"
#include "tenon/io/replace_file.h"

namespace tenon::io {
namespace {

constexpr int kPatience = 100;  // milliseconds
constexpr int kPause = 10;      // between two tries to open a pipe that nothing reads

/// Asks whether the program is interrupted, be it by a signal that came before the wait and was noted
/// elsewhere.
void ask_for_interrupt() {
  request_interrupt();
  check_interrupt();
}

}  // namespace

void wait_for(int file, short events, const std::string& path) {
  for (;;) {
    pollfd wanted{file, events, 0};
    const int ready = poll(&wanted, 1, kPatience);
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) throw SystemError(errno, path);
    ask_for_interrupt();
  }
}

Descriptor open_for_writing(const std::string& path, bool is_pipe, const std::string& given) {
  for (;;) {
    Descriptor file(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    if (file) return file;
    const bool lacks_reader = is_pipe && errno == ENXIO;
    if (!lacks_reader && errno != EINTR) throw SystemError(errno, given);
    if (lacks_reader) poll(nullptr, 0, kPause);
    ask_for_interrupt();
  }
}

}  // namespace tenon::io
