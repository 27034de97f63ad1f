// save and load: weights in files, whatever their format.
//
//     tenon::save(model.state_dict(), "model.safetensors");
//     model.load_state_dict(tenon::load("model.safetensors"));
//     tenon::save(tensor, "tensor.tenon");
//     tensor = tenon::load("tensor.tenon").to_tensor();
//     other.load_state_dict(tenon::load("checkpoint.pt")["model"]);
#pragma once

#include <string>

#include "tenon/io/safetensors.h"
#include "tenon/io/value.h"

namespace tenon {

/// Writes tensors to a file, which is replaced completely or not at all. A path that ends in .safetensors
/// gets the format that other programs read, any other one Tenon's own, as Python's tenon.save does. Throws
/// as safetensors::save_file does, and Error{Device} for a tensor on meta.
void save(const StateDict& tensors, const std::string& path);
/// Writes one tensor, which `load(path).to_tensor()` gives back. Throws Error{Value} for a path that ends in
/// .safetensors, where tensors have names.
void save(const Tensor& tensor, const std::string& path);
/// Writes what `load` has read.
void save(const Value& value, const std::string& path);

/// Reads a file of weights; its first bytes say which format it has:
///  - safetensors: a dict of tensors;
///  - PyTorch's checkpoints (.pt, .pth), also those from before 1.6: whatever was saved, as long as it
///    consists of tensors, numbers, text, dicts, lists and what else Value::Kind names. Nothing in them is
///    executed;
///  - what tenon.save wrote, in C++ or in Python.
///
/// Tensors are in host memory; those that share a storage in a PyTorch file share it here. Throws
/// Error{Value} for a file that is damaged or of another kind, or names anything else; the message has the
/// file, the place and what was expected. Throws io::SystemError.
Value load(const std::string& path, LoadOptions options = {});

}  // namespace tenon
