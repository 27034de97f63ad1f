// Waiting for pipes and devices, which may take for ever, so that Ctrl-C ends it. Of this room alone.
#pragma once

#include <string>

#include "tenon/core/descriptor.h"

namespace tenon::io {

/// Waits until `file` is ready for `events` (POLLIN, POLLOUT), or has an end or an error. Throws SystemError,
/// and what an interrupt's answer throws (core/interrupt.h).
void wait_for(int file, short events, const std::string& path);

/// Opens a pipe or a device for writing, so that writing never waits. The reader of a pipe is waited for.
/// Errors name the path `given`. Throws as wait_for does.
Descriptor open_for_writing(const std::string& path, bool is_pipe, const std::string& given);

}  // namespace tenon::io
