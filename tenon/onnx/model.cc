#include "tenon/onnx/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>

#include "tenon/core/error.h"
#include "tenon/io/utf8.h"
#include "tenon/onnx/decode.h"
#include "tenon/onnx/program.h"
#include "tenon/onnx/run.h"

namespace tenon::onnx {
namespace {

using Kind = Program::Constant::Kind;

std::string dim_text(const Port::Dim& dim) {
  if (const auto* size = std::get_if<int64_t>(&dim)) return fmt::format("{}", *size);
  if (const auto* name = std::get_if<std::string>(&dim)) return io::shown(*name);
  return "?";
}

/// Throws unless `given` is what the file says of the input; `sizes` are those that names have had so far.
void check_input(const Program& program, const Port& port, const Item& given,
                 std::map<std::string_view, int64_t>& sizes) {
  const auto refuse = [&](ErrorKind kind, const std::string& what) {
    throw_error(kind, fmt::format("onnx.Model: {}: input '{}' is {}, expected {}", program.file,
                                  io::shown(port.name), what, port.text()));
  };
  if (given.is_absent()) {
    if (!port.is_optional) refuse(ErrorKind::Value, "missing");
    return;
  }
  if (port.is_sequence != (given.sequence != nullptr))
    refuse(ErrorKind::Type, port.is_sequence ? "a tensor" : "a sequence");
  if (port.is_sequence) return;
  const Tensor& tensor = given.tensor;
  if (port.dtype && tensor.dtype() != *port.dtype) refuse(ErrorKind::Type, std::string(name(tensor.dtype())));
  if (!port.shape) return;
  const auto of_shape = [&] { return fmt::format("of shape [{}]", fmt::join(tensor.sizes(), ", ")); };
  if (tensor.sizes().size() != port.shape->size()) refuse(ErrorKind::Shape, of_shape());
  for (size_t i = 0; i < port.shape->size(); ++i) {
    const int64_t size = tensor.sizes()[i];
    if (const auto* fixed = std::get_if<int64_t>(&(*port.shape)[i]); fixed && *fixed != size)
      refuse(ErrorKind::Shape, of_shape());
    if (const auto* symbol = std::get_if<std::string>(&(*port.shape)[i])) {
      const auto [known, is_new] = sizes.try_emplace(*symbol, size);
      if (known->second != size)
        refuse(ErrorKind::Shape, fmt::format("{}, and '{}' is {} in an input before it", of_shape(),
                                             io::shown(*symbol), known->second));
    }
  }
}

Source source_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return {io::Input::file(path, true), folder.empty() ? "." : folder.string()};
}
Source source_of(std::span<const std::byte> bytes) {
  return {io::Input::memory(bytes, "a model in memory"), {}};
}

Model load(const Source& source) {
  Contents contents;
  auto program = decode(source, contents);
  TENON_CHECK(contents.missing.empty(), NotImplemented,
              fmt::format("onnx.load: {}: Tenon does not have all that it needs:\n  {}", program->file,
                          fmt::join(contents.missing, "\n  ")));
  return Model(std::move(program));
}
Contents contents(const Source& source) {
  Contents out;
  decode(source, out);
  return out;
}

}  // namespace

std::string Port::text() const {
  std::string out = dtype ? std::string(tenon::name(*dtype)) : "a tensor";
  if (shape) {
    std::vector<std::string> dims;
    for (const Dim& dim : *shape) dims.push_back(dim_text(dim));
    out += fmt::format("[{}]", fmt::join(dims, ", "));
  }
  if (is_sequence) out = "a sequence of " + out;
  return is_optional ? out + " or nothing" : out;
}

Model::Model(std::shared_ptr<const Program> program) : program_(std::move(program)) {
  for (size_t i = 0; i < program_->num_weights; ++i) {
    const Program::Constant& constant = program_->constants[i];
    weights_.push_back(constant.value.detach());
    if (constant.kind == Kind::Parameter)
      add_parameter(constant.name, weights_.back());
    else
      add_buffer(constant.name, weights_.back());
  }
}

const std::vector<Port>& Model::inputs() const noexcept { return program_->inputs; }
const std::vector<Port>& Model::outputs() const noexcept { return program_->outputs; }

std::vector<Item> Model::run_items(std::vector<Item> inputs, std::span<const Tensor> weights) const {
  const Program& program = *program_;
  TENON_CHECK(inputs.size() <= program.inputs.size(), Value,
              fmt::format("onnx.Model: {} takes {} inputs, and got {}", program.file, program.inputs.size(),
                          inputs.size()));
  TENON_CHECK(weights.size() == program.num_weights, Value,
              fmt::format("onnx.Model: {} has {} weights, and got {}", program.file, program.num_weights,
                          weights.size()));
  inputs.resize(program.inputs.size());
  Frame frame(program, weights);
  std::map<std::string_view, int64_t> sizes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_input(program, program.inputs[i], inputs[i], sizes);
    frame.set(program.graph.inputs[i], std::move(inputs[i]));
  }
  return frame.run(program.graph);
}
std::vector<Item> Model::run_items(std::vector<Item> inputs) const {
  return run_items(std::move(inputs), weights_);
}

std::vector<Tensor> Model::run(std::span<const Tensor> inputs) const {
  std::vector<Item> items;
  for (const Tensor& input : inputs) items.push_back({input});
  std::vector<Tensor> out;
  for (Item& item : run_items(std::move(items))) {
    TENON_CHECK(!item.sequence, Value,
                fmt::format("onnx.Model: {} returns a sequence; run_items takes it", program_->file));
    out.push_back(std::move(item.tensor));
  }
  return out;
}

Tensor Model::forward(const Tensor& input) {
  TENON_CHECK(inputs().size() == 1 && outputs().size() == 1, Value,
              fmt::format("onnx.Model: {} has {} inputs and {} outputs; run() takes them", program_->file,
                          inputs().size(), outputs().size()));
  return run({input})[0];
}

std::string Model::extra_repr() const {
  const auto all = [](const std::vector<Port>& ports) {
    std::vector<std::string> texts;
    for (const Port& port : ports) texts.push_back(fmt::format("{}: {}", io::shown(port.name), port.text()));
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  return fmt::format("{} -> {}", all(inputs()), all(outputs()));
}

Model load(const std::string& path) { return load(source_of(path)); }
Model load(std::span<const std::byte> bytes) { return load(source_of(bytes)); }
Contents contents(const std::string& path) { return contents(source_of(path)); }
Contents contents(std::span<const std::byte> bytes) { return contents(source_of(bytes)); }

}  // namespace tenon::onnx
