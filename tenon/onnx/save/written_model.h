// WrittenModel: a model that is being written, before its bytes. Of `save` alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "tenon/core/source_mark.h"
#include "tenon/core/tensor.h"
#include "tenon/onnx/model.h"

namespace tenon::onnx {

struct WrittenAttribute {
  using Value =
      std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<std::string>, Tensor>;
  std::string name;
  Value value;
};
using WrittenAttributes = std::vector<WrittenAttribute>;

struct WrittenNode {
  std::string op;
  std::vector<std::string> inputs, outputs;  // empty: absent
  WrittenAttributes attributes;
  std::string call;  // what it is part of: "aten::relu (model.py:12)"
};

struct WrittenModel {
  /// An initializer. Weights have a place among those that have names.
  struct Constant {
    static constexpr size_t kNoWeight = ~size_t{0};
    std::string name;
    Tensor value;
    size_t place = kNoWeight;
  };
  /// An initializer of int64 that follows from sizes, and so may differ between traces.
  struct Sizes {
    std::string name;
    std::vector<int64_t> values;
    bool is_scalar = false;
    bool is_shape = false;  // of a Reshape, which can find one of them itself
  };
  std::vector<WrittenNode> nodes;
  std::vector<Constant> constants;
  std::vector<Sizes> sizes;
  std::vector<Port> inputs, outputs;
};

/// Leaves out what no output follows from, and what is there twice.
void simplify(WrittenModel& model);
/// The file's bytes. Throws Error{Value} for more than 2 GB.
std::string bytes_of(const WrittenModel& model, int opset);

}  // namespace tenon::onnx
