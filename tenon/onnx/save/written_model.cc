#include "tenon/onnx/save/written_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "tenon/core/error.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/onnx/protobuf.h"
#include "tenon/onnx/types.h"

// After protobuf.h, which says what its assertions do.
#include <protozero/pbf_writer.hpp>

namespace tenon::onnx {
namespace {

using protozero::pbf_writer;

Tensor tensor_of(const WrittenModel::Sizes& sizes) {
  const auto count = static_cast<int64_t>(sizes.values.size());
  Tensor out = empty(sizes.is_scalar ? Dims{} : Dims{count}, TensorOptions(kInt64));
  if (count > 0) std::memcpy(out.data_ptr(), sizes.values.data(), out.nbytes());
  return out;
}

void write(pbf_writer& to, const std::string& name, const Tensor& t) {
  for (const int64_t size : t.sizes()) to.add_int64(1, size);
  to.add_int32(2, static_cast<int32_t>(*number_of(t.dtype())));
  if (!name.empty()) to.add_string(8, name);
  to.add_bytes(9, static_cast<const char*>(t.nbytes() > 0 ? t.data_ptr() : nullptr), t.nbytes());
}

struct AttributeWriter {
  pbf_writer& to;

  void type(int number) const { to.add_int32(20, number); }
  void operator()(int64_t v) const { to.add_int64(3, v), type(2); }
  void operator()(float v) const { to.add_float(2, v), type(1); }
  void operator()(const std::string& v) const { to.add_string(4, v), type(3); }
  void operator()(const std::vector<int64_t>& all) const {
    for (const int64_t v : all) to.add_int64(8, v);
    type(7);
  }
  void operator()(const std::vector<std::string>& all) const {
    for (const std::string& v : all) to.add_string(9, v);
    type(8);
  }
  void operator()(const Tensor& t) const {
    {
      pbf_writer tensor(to, 5);
      write(tensor, "", t);
    }
    type(4);
  }
};

void write(pbf_writer& to, const WrittenNode& node, size_t number) {
  for (const std::string& name : node.inputs) to.add_string(1, name);
  for (const std::string& name : node.outputs) to.add_string(2, name);
  to.add_string(3, fmt::format("{}_{}", node.op, number));
  to.add_string(4, node.op);
  for (const WrittenAttribute& attribute : node.attributes) {
    pbf_writer message(to, 5);
    message.add_string(1, attribute.name);
    std::visit(AttributeWriter{message}, attribute.value);
  }
}

void write(pbf_writer& to, const Port& port) {
  to.add_string(1, port.name);
  pbf_writer type(to, 2), tensor(type, 1);
  tensor.add_int32(1, static_cast<int32_t>(*number_of(*port.dtype)));
  // Messages without fields say something here: no dimensions, and a size that is not known.
  std::string shape;
  pbf_writer dims(shape);
  for (const Port::Dim& dim : *port.shape) {
    std::string text;
    pbf_writer message(text);
    if (const auto* size = std::get_if<int64_t>(&dim)) message.add_int64(1, *size);
    if (const auto* name = std::get_if<std::string>(&dim)) message.add_string(2, *name);
    dims.add_message(1, text);
  }
  tensor.add_message(2, shape);
}

void write(pbf_writer& graph, const WrittenModel& model) {
  size_t number = 0;
  for (const WrittenNode& node : model.nodes) {
    pbf_writer message(graph, 1);
    write(message, node, number++);
  }
  graph.add_string(2, "tenon");
  for (const auto& constant : model.constants) {
    pbf_writer message(graph, 5);
    write(message, constant.name, constant.value);
  }
  for (const auto& sizes : model.sizes) {
    pbf_writer message(graph, 5);
    write(message, sizes.name, tensor_of(sizes));
  }
  for (const Port& port : model.inputs) {
    pbf_writer message(graph, 11);
    write(message, port);
  }
  for (const Port& port : model.outputs) {
    pbf_writer message(graph, 12);
    write(message, port);
  }
}

void remove_dead(WrittenModel& model) {
  std::unordered_set<std::string> used;
  for (const Port& port : model.outputs) used.insert(port.name);
  std::vector<WrittenNode> kept;
  for (size_t i = model.nodes.size(); i-- > 0;) {
    WrittenNode& node = model.nodes[i];
    bool is_used = false;
    for (std::string& name : node.outputs) {
      const bool here = used.contains(name);
      is_used |= here;
      if (!here) name.clear();
    }
    if (!is_used) continue;
    while (node.outputs.back().empty()) node.outputs.pop_back();
    for (const std::string& name : node.inputs) used.insert(name);
    kept.push_back(std::move(node));
  }
  model.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  std::erase_if(model.constants, [&](const auto& constant) { return !used.contains(constant.name); });
  std::erase_if(model.sizes, [&](const auto& sizes) { return !used.contains(sizes.name); });
}

/// Equal lists of sizes and equal small constants become one.
void share_constants(WrittenModel& model) {
  constexpr size_t kSmall = 64;
  std::map<std::string, std::string> names;  // of contents
  std::unordered_map<std::string, std::string> renamed;
  const auto share = [&](const std::string& name, const Tensor& t) {
    if (t.nbytes() > kSmall) return false;
    std::string key = fmt::format("{} {} ", static_cast<int>(t.dtype()), to_string(t.sizes()));
    if (t.nbytes() > 0) key.append(static_cast<const char*>(t.data_ptr()), t.nbytes());
    const auto [found, is_new] = names.try_emplace(key, name);
    if (!is_new) renamed.emplace(name, found->second);
    return !is_new;
  };
  std::erase_if(model.sizes, [&](const auto& sizes) { return share(sizes.name, tensor_of(sizes)); });
  std::erase_if(model.constants, [&](const WrittenModel::Constant& c) {
    return c.place == WrittenModel::Constant::kNoWeight && share(c.name, c.value);
  });
  for (WrittenNode& node : model.nodes)
    for (std::string& name : node.inputs)
      if (const auto found = renamed.find(name); found != renamed.end()) name = found->second;
}

/// A result that a node has made gets the output's name, in place of a node that copies it.
void name_outputs(WrittenModel& model) {
  std::unordered_map<std::string, std::string> renamed;
  std::unordered_set<std::string> made;
  for (const WrittenNode& node : model.nodes) made.insert(node.outputs.begin(), node.outputs.end());
  const auto is_output = [&](const std::string& name) {
    return std::ranges::find(model.outputs, name, &Port::name) != model.outputs.end();
  };
  std::erase_if(model.nodes, [&](const WrittenNode& node) {
    if (node.op != "Identity" || !is_output(node.outputs[0]) || !made.contains(node.inputs[0])) return false;
    return renamed.emplace(node.inputs[0], node.outputs[0]).second;
  });
  for (WrittenNode& node : model.nodes)
    for (auto* names : {&node.inputs, &node.outputs})
      for (std::string& name : *names)
        if (const auto found = renamed.find(name); found != renamed.end()) name = found->second;
}

/// The versions of the file's format that have the operators.
int ir_version_of(int opset) {
  return opset < 19 ? 8 : opset < 21 ? 9 : opset < 23 ? 10 : opset < 24 ? 11 : 12;
}

}  // namespace

void simplify(WrittenModel& model) {
  remove_dead(model);
  std::ranges::stable_sort(model.constants, {}, &WrittenModel::Constant::place);
  share_constants(model);
  name_outputs(model);
}

std::string bytes_of(const WrittenModel& model, int opset) {
  constexpr size_t kMost = size_t{2'000'000'000};
  size_t total = 0;
  for (const auto& constant : model.constants) total += constant.value.nbytes();
  TENON_CHECK(total < kMost, Value,
              fmt::format("onnx.save: the weights have {} bytes, and an ONNX file at most {}; save_program "
                          "writes larger ones",
                          total, kMost));
  std::string out;
  pbf_writer file(out);
  file.add_int64(1, ir_version_of(opset));
  file.add_string(2, "tenon");
  {
    pbf_writer graph(file, 7);
    write(graph, model);
  }
  pbf_writer operators(file, 8);
  operators.add_string(1, "");
  operators.add_int64(2, opset);
  operators.commit();
  return out;
}

}  // namespace tenon::onnx
