// Writing a function as an ONNX file, for what ONNX can say. Used by programs; in Python it is
// tenon.onnx.save.
//
//     const tenon::Inference run({image}, classifier, {.exact = true});
//     tenon::onnx::save(run, "classifier.onnx", {.input_names = {"image"}, .weights = named_tensors});
//
// The file has the calls of the traced function as nodes of the standard's own operators, and its constants,
// each under the name that `weights` gives it. Sizes are those of the trace, unless there are dynamic axes.
#pragma once

#include "tenon/core/require_cxx20.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tenon/builder/inference.h"

namespace tenon::onnx {

/// Versions of the standard's operators that `save` writes.
inline constexpr int kOldestSavedOpset = 18, kNewestSavedOpset = 24;

struct SaveOptions {
  int opset = kOldestSavedOpset;
  std::vector<std::string> input_names, output_names;  ///< None: input_0, ... and output_0, ...
  /// Names of constants. What is no constant of the function is passed over.
  std::vector<std::pair<std::string, Tensor>> weights = {};
  /// A size that runs of the file may choose. Axes of one name have one size.
  struct DynamicAxis {
    size_t input;
    int64_t axis;
    std::string name;
  };
  std::vector<DynamicAxis> dynamic_axes = {};
};

/// Replaces the file at `path`, completely or not at all. Throws Error{NotImplemented}, which lists all calls
/// that ONNX has no operators for; Error{Value} for names that are not one for each input and output, an
/// opset that is not written, and for more than 2 GB, which an ONNX file cannot have; and io::SystemError.
void save(const Inference& function, const std::string& path, const SaveOptions& options = {});
/// The same with dynamic axes: the function was traced for several sizes of them, so that each size differs
/// from the first's in some trace. All else that follows from them is found by comparison: the numbers that
/// differ are written as computed from the sizes. Throws Error{NotImplemented}, too, where a call, an
/// attribute or a constant depends on them.
void save(std::span<const Inference* const> traces, const std::string& path, const SaveOptions& options);

}  // namespace tenon::onnx
