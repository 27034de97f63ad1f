// Programs in files: trained modules that were planned for inference, with their weights, to be run elsewhere
// without the lines that define them, and without Python.
//
//     tenon::save_program(tenon::Inference({image}, net), "classifier.tenon");
//     const tenon::Inference run = tenon::load_program("classifier.tenon");
//     std::vector<Tensor> scores = run({image});
//
// A file is a safetensors file: `program` holds the calls as bytes, the same on every machine, `constant.N`
// the weights. Nothing is planned in it: a program is planned for the machine that loads it.
#pragma once

#include <string>

#include "tenon/builder/inference.h"

namespace tenon {

/// Replaces the file at `path`, completely or not at all. Throws io::SystemError.
void save_program(const Inference& program, const std::string& path);
/// Weights stay in the file, which is mapped. Throws Error{Value} for a file that is damaged, of another
/// kind or of a newer version, and io::SystemError.
Inference load_program(const std::string& path);

}  // namespace tenon
