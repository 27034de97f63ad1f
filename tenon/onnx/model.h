// Model: a network in an ONNX file as a module that runs, trains and is saved.
// Used by programs; in Python it is tenon.onnx.
//
//     tenon::onnx::Model model = tenon::onnx::load("classifier.onnx");
//     Tensor scores = model(image);                           // one input, one output
//     std::vector<Tensor> both = model.run({image, mask});    // in the order of model.inputs()
//
// What its operators compute is what the standard says (onnx.ai, "Operators"), opsets 7 to kNewestOpset.
// Its floating-point weights are parameters, under the names that they have in the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tenon/core/tensor.h"
#include "tenon/nn/module.h"

namespace tenon::onnx {

/// The newest version of the standard's operators that is read.
inline constexpr int kNewestOpset = 28;

struct Program;

/// What a model takes or returns.
struct Port {
  /// A number, a name that several may share ("batch"), or nothing where any number fits.
  using Dim = std::variant<std::monostate, int64_t, std::string>;

  std::string name;
  std::optional<DType> dtype;             ///< Absent if the file does not say.
  std::optional<std::vector<Dim>> shape;  ///< Absent if the file does not say how many dimensions there are.
  bool is_sequence = false;               ///< Of such tensors.
  bool is_optional = false;

  /// "float32[batch, 3, 224, 224]".
  std::string text() const;
};

/// A value that a model takes or returns: a tensor, a sequence of tensors, or nothing.
struct Item {
  Tensor tensor;
  std::shared_ptr<const std::vector<Tensor>> sequence = nullptr;

  bool is_absent() const noexcept { return !tensor.defined() && !sequence; }
};

class Model : public nn::Module {
 public:
  explicit Model(std::shared_ptr<const Program> program);
  Model(Model&&) = default;
  Model& operator=(Model&&) = default;

  const std::vector<Port>& inputs() const noexcept;
  const std::vector<Port>& outputs() const noexcept;

  /// Computes the outputs from the inputs, each in the order of the file. Inputs have the dtypes and the
  /// numbers of dimensions that the file says. Optional inputs at the end may be left out. Throws
  /// Error{Value}, {Type} or {Shape} naming the input, or the node of the file that fails.
  std::vector<Tensor> run(std::span<const Tensor> inputs) const;
  std::vector<Tensor> run(std::initializer_list<Tensor> inputs) const {
    return run(std::span(inputs.begin(), inputs.size()));
  }
  /// The same with sequences and with inputs that are absent.
  std::vector<Item> run_items(std::vector<Item> inputs) const;
  /// The same with other tensors for the weights: parameters and buffers in the order of
  /// named_parameters() and then named_buffers().
  std::vector<Item> run_items(std::vector<Item> inputs, std::span<const Tensor> weights) const;

  /// Of a model with one input and one output. Throws Error{Value} for others.
  Tensor forward(const Tensor& input) override;

  std::string extra_repr() const override;

 private:
  std::shared_ptr<const Program> program_;
  std::vector<Tensor> weights_;
};

/// Reads a model. The file is mapped: weights at a multiple of their element's size stay in it.
/// External data must be in the file's folder or below. Throws Error{Value} for a file that is damaged or
/// of another kind, Error{NotImplemented} that lists all operators and types that Tenon lacks, and
/// io::SystemError.
Model load(const std::string& path);
/// Reads a model in memory, which has no external data.
Model load(std::span<const std::byte> bytes);

/// What a model is made of, whether or not Tenon can run it.
struct Contents {
  struct Operator {
    std::string domain, name;
    int opset = 0;  ///< The version that the file asks for.
    int64_t num_nodes = 0;
    std::string first_node;  ///< The name of one of them, or of its first output.
    bool is_known = false;   ///< Tenon computes it.
  };
  std::string producer;
  int64_t ir_version = 0;
  std::vector<std::pair<std::string, std::string>> metadata;  ///< Keys and values that the file brings.
  std::vector<Port> inputs, outputs;
  std::vector<Operator> operators;   ///< By domain and name.
  int64_t num_weights = 0;           ///< Elements of all parameters and buffers.
  std::vector<std::string> missing;  ///< All that keeps the model from running, a sentence each.
};
Contents contents(const std::string& path);
Contents contents(std::span<const std::byte> bytes);

}  // namespace tenon::onnx
