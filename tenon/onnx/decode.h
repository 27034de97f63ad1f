// Decoder: a model's bytes as a program. Of this room alone.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tenon/io/input.h"
#include "tenon/onnx/model.h"
#include "tenon/onnx/program.h"

namespace tenon::onnx {

/// A model's bytes, and where they come from.
struct Source {
  io::Input input;
  std::optional<std::string> folder;  ///< Of external data.
};

/// The program in `source`, which may share its memory, and what it is made of. Throws Error{Value} for
/// damaged bytes; where contents.missing is not empty, the program cannot be run.
std::shared_ptr<Program> decode(const Source& source, Contents& contents);

}  // namespace tenon::onnx
