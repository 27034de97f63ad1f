#include "tenon/onnx/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

#include "tenon/core/error.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/io/utf8.h"
#include "tenon/onnx/finish.h"
#include "tenon/onnx/protobuf.h"
#include "tenon/onnx/tensor_reader.h"
#include "tenon/onnx/types.h"

namespace tenon::onnx {

void detail::throw_wrong_wire_type() {
  struct WrongWireType : protozero::exception {
    const char* what() const noexcept override {
      return "a field has another type than the standard gives it";
    }
  };
  throw WrongWireType();
}

namespace {

using Kind = Program::Constant::Kind;

constexpr int kDeepest = 32;            // graphs in graphs, functions in functions
constexpr size_t kMostNodes = 100'000;  // of small files: functions that call functions multiply them

/// The versions of the operators of each domain, as a file or one of its functions has them.
using Opsets = std::map<std::string, int, std::less<>>;

std::string domain_of(std::string name) { return name == "ai.onnx" ? "" : name; }

void add_opset(pbf_reader message, Opsets& to) {
  std::string domain;
  int64_t version = 0;
  while (message.next()) switch (message.tag()) {
      case 1:
        domain = domain_of(message.get_string());
        break;
      case 2:
        version = message.get_int64();
        break;
      default:
        message.skip();
    }
  to[domain] = static_cast<int>(std::clamp<int64_t>(version, 0, INT32_MAX));
}

/// The names that the nodes of a graph see: its own, and those of the graphs around it.
struct Names {
  const Names* outer = nullptr;
  std::unordered_map<std::string, Slot> own = {};

  const Slot* find(const std::string& name) const {
    for (const Names* at = this; at; at = at->outer)
      if (const auto found = at->own.find(name); found != at->own.end()) return &found->second;
    return nullptr;
  }
};

/// What nodes are decoded inside of: the file, or a function for one of its calls.
struct Body {
  const Opsets& opsets;
  const std::vector<Attribute>* given = nullptr;  // attributes of the call
  int depth = 0;
};

struct NodeFields {
  std::string name, op, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<pbf_reader> attributes;
};
struct GraphFields {
  std::vector<pbf_reader> nodes, constants, sparse_constants, inputs, outputs;
};
struct Function {
  std::vector<std::string> inputs, outputs;
  std::vector<pbf_reader> nodes, defaults;
  Opsets opsets;
};

NodeFields node_fields(pbf_reader message) {
  NodeFields out;
  while (message.next()) switch (message.tag()) {
      case 1:
        out.inputs.push_back(message.get_string());
        break;
      case 2:
        out.outputs.push_back(message.get_string());
        break;
      case 3:
        out.name = message.get_string();
        break;
      case 4:
        out.op = message.get_string();
        break;
      case 5:
        out.attributes.push_back(message.get_message());
        break;
      case 7:
        out.domain = domain_of(message.get_string());
        break;
      case 8:
        out.overload = message.get_string();
        break;
      default:
        message.skip();
    }
  return out;
}
GraphFields graph_fields(pbf_reader message) {
  GraphFields out;
  while (message.next()) switch (message.tag()) {
      case 1:
        out.nodes.push_back(message.get_message());
        break;
      case 5:
        out.constants.push_back(message.get_message());
        break;
      case 11:
        out.inputs.push_back(message.get_message());
        break;
      case 12:
        out.outputs.push_back(message.get_message());
        break;
      case 15:
        out.sparse_constants.push_back(message.get_message());
        break;
      default:
        message.skip();
    }
  return out;
}

class Decoder {
 public:
  Decoder(const Source& source, Contents& contents)
      : contents_(contents), program_(std::make_shared<Program>()), tensors_(source.input, source.folder) {
    program_->file = source.input.name();
  }
  std::shared_ptr<Program> model();

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw_error(ErrorKind::Value, fmt::format("onnx.load: {}: {}", program_->file, what));
  }
  void miss(std::string what) {
    if (missing_.insert(what).second) contents_.missing.push_back(std::move(what));
  }
  static std::string function_name(const NodeFields& call) {
    return fmt::format("{}:{}:{}", call.domain, call.op, call.overload);
  }
  void add_function(pbf_reader message);

  Port port(pbf_reader message);
  void add_type(pbf_reader message, Port& port, int depth);

  void add_graph(const GraphFields& fields, const Body& body, Names& names, Graph& graph, bool is_main);
  void add_nodes(std::span<const pbf_reader> messages, const Body& body, Names& names, Graph& graph);
  void add_node(const NodeFields& fields, const Body& body, Names& names, Graph& graph);
  void add_call(const Function& function, const NodeFields& call, std::vector<Attribute> given,
                const Body& body, Names& names, Graph& graph);
  bool add_constant_node(const NodeFields& fields, const std::vector<Attribute>& attributes, Names& names);
  /// Absent for one that refers to an attribute which the call does not have.
  std::optional<Attribute> attribute(pbf_reader message, const Body& body, const Names& names);
  void count(const NodeFields& fields, int opset, bool is_known);

  void define(Names& names, const std::string& name, Slot slot, std::string_view where);
  Slot add_constant(std::string name, Tensor value, Kind kind) {
    program_->constants.push_back({std::move(name), std::move(value), kind});
    return ~static_cast<Slot>(program_->constants.size() - 1);
  }
  Slot next_slot() { return static_cast<Slot>(program_->num_slots++); }

  Contents& contents_;
  std::shared_ptr<Program> program_;
  TensorReader tensors_;
  Opsets opsets_;
  std::map<std::string, Function> functions_;  // by domain, name and overload
  std::set<std::string> missing_;
  size_t num_nodes_ = 0;
};

void Decoder::add_function(pbf_reader message) {
  Function function;
  NodeFields name;
  while (message.next()) switch (message.tag()) {
      case 1:
        name.op = message.get_string();
        break;
      case 4:
        function.inputs.push_back(message.get_string());
        break;
      case 5:
        function.outputs.push_back(message.get_string());
        break;
      case 7:
        function.nodes.push_back(message.get_message());
        break;
      case 9:
        add_opset(message.get_message(), function.opsets);
        break;
      case 10:
        name.domain = domain_of(message.get_string());
        break;
      case 11:
        function.defaults.push_back(message.get_message());
        break;
      case 13:
        name.overload = message.get_string();
        break;
      default:
        message.skip();
    }
  functions_.insert_or_assign(function_name(name), std::move(function));
}

void Decoder::add_type(pbf_reader message, Port& port, int depth) {
  if (depth > kDeepest) refuse(fmt::format("the type of '{}' is nested too deeply", io::shown(port.name)));
  while (message.next()) switch (message.tag()) {
      case 1:  // a tensor
        for (pbf_reader tensor = message.get_message(); tensor.next();) {
          if (tensor.tag() == 1) {
            const int64_t type = tensor.get_int32();
            port.dtype = type_of(type);
            if (type != 0 && !port.dtype)
              miss(fmt::format("'{}' is of {}, which Tenon does not have", io::shown(port.name),
                               type_name(type)));
          } else if (tensor.tag() == 2) {
            port.shape.emplace();
            for (pbf_reader shape = tensor.get_message(); shape.next();) {
              if (shape.tag() != 1) {
                shape.skip();
                continue;
              }
              Port::Dim dim;
              for (pbf_reader field = shape.get_message(); field.next();) {
                if (field.tag() == 1) {
                  const int64_t size = field.get_int64();
                  if (size >= 0) dim = size;
                } else if (field.tag() == 2) {
                  // Some exporters write "?" for every size that they do not know.
                  if (std::string name = field.get_string(); !name.empty() && name != "?")
                    dim = std::move(name);
                } else {
                  field.skip();
                }
              }
              port.shape->push_back(std::move(dim));
            }
          } else {
            tensor.skip();
          }
        }
        break;
      case 4:  // a sequence
      case 9:  // optional
        (message.tag() == 4 ? port.is_sequence : port.is_optional) = true;
        for (pbf_reader inner = message.get_message(); inner.next();)
          if (inner.tag() == 1)
            add_type(inner.get_message(), port, depth + 1);
          else
            inner.skip();
        break;
      case 5:
      case 8:
        miss(fmt::format("'{}' is a {}, which Tenon does not have", io::shown(port.name),
                         message.tag() == 5 ? "map" : "sparse tensor"));
        message.skip();
        break;
      default:
        message.skip();
    }
}

Port Decoder::port(pbf_reader message) {
  Port out;
  for (pbf_reader look = message; look.next();)
    if (look.tag() == 1)
      out.name = look.get_string();
    else
      look.skip();
  while (message.next())
    if (message.tag() == 2)
      add_type(message.get_message(), out, 0);
    else
      message.skip();
  return out;
}

void Decoder::define(Names& names, const std::string& name, Slot slot, std::string_view where) {
  if (!names.own.emplace(name, slot).second)
    refuse(fmt::format("two values are called '{}'; the second is {}", io::shown(name), where));
}

void Decoder::add_graph(const GraphFields& fields, const Body& body, Names& names, Graph& graph,
                        bool is_main) {
  if (body.depth > kDeepest) refuse(fmt::format("graphs are nested more than {} deep", kDeepest));
  const auto add = [&](TensorReader::Named named) {
    if (!named.tensor.defined()) {
      miss(fmt::format("'{}' is of {}, which Tenon does not have", io::shown(named.name), named.type));
      named.tensor = Tensor();
    }
    const bool is_weight =
        named.tensor.defined() && is_floating_point(named.tensor.dtype()) && !named.tensor.sizes().empty();
    define(names, named.name,
           add_constant(named.name, named.tensor, is_weight ? Kind::Parameter : Kind::Unnamed), "a constant");
  };
  for (const pbf_reader& message : fields.constants) add(tensors_.read(message));
  for (const pbf_reader& message : fields.sparse_constants) add(tensors_.read_sparse(message));
  for (const pbf_reader& message : fields.inputs) {
    Port input = port(message);
    // Before version 4 of the format, constants were inputs as well, which a run may give.
    const auto constant = names.own.find(input.name);
    const bool has_default = constant != names.own.end() && constant->second < 0;
    if (has_default && is_main) {
      continue;
    }
    const Slot slot = next_slot();
    define(names, input.name, slot, "an input");
    graph.inputs.push_back(slot);
    if (is_main) program_->inputs.push_back(std::move(input));
  }
  add_nodes(fields.nodes, body, names, graph);
  for (const pbf_reader& message : fields.outputs) {
    Port output = port(message);
    const Slot* const slot = names.find(output.name);
    if (!slot) refuse(fmt::format("no node makes the output '{}'", io::shown(output.name)));
    graph.outputs.push_back(*slot);
    (is_main ? program_->outputs : graph.results).push_back(std::move(output));
  }
}

void Decoder::add_nodes(std::span<const pbf_reader> messages, const Body& body, Names& names, Graph& graph) {
  for (const pbf_reader& message : messages) add_node(node_fields(message), body, names, graph);
}

void Decoder::count(const NodeFields& fields, int opset, bool is_known) {
  for (Contents::Operator& op : contents_.operators)
    if (op.name == fields.op && op.domain == fields.domain && op.opset == opset) {
      ++op.num_nodes;
      return;
    }
  const std::string& first = !fields.name.empty() || fields.outputs.empty() ? fields.name : fields.outputs[0];
  contents_.operators.push_back({fields.domain, fields.op, opset, 1, first, is_known});
}

void Decoder::add_node(const NodeFields& fields, const Body& body, Names& names, Graph& graph) {
  const size_t most = kMostNodes + tensors_.bytes().size() / 8;
  if (++num_nodes_ > most) refuse(fmt::format("its functions make more than {} nodes", most));
  const std::string where = fmt::format("node '{}' ({})", io::shown(fields.name), io::shown(fields.op));
  std::vector<Attribute> attributes;
  for (const pbf_reader& message : fields.attributes)
    if (auto one = attribute(message, body, names)) attributes.push_back(std::move(*one));
  if (const auto function = functions_.find(function_name(fields)); function != functions_.end())
    return add_call(function->second, fields, std::move(attributes), body, names, graph);
  if (fields.domain.empty() && fields.op == "Constant" && add_constant_node(fields, attributes, names))
    return;

  const auto opset = body.opsets.find(fields.domain);
  if (opset == body.opsets.end())
    refuse(fmt::format("{} is of the domain '{}', and the file gives no version of it", where,
                       io::shown(fields.domain)));
  Node node;
  node.name = fields.name;
  node.op = fields.op;
  node.domain = fields.domain;
  node.opset = opset->second;
  node.row = find_row(node.domain, node.op, node.opset);
  node.attributes = std::move(attributes);
  count(fields, node.opset, node.row != nullptr);
  for (const std::string& name : fields.inputs) {
    if (name.empty()) {
      node.inputs.push_back(kAbsent);
      continue;
    }
    const Slot* const slot = names.find(name);
    if (!slot)
      refuse(
          fmt::format("{} reads '{}', which is no input, no constant, and no output of a node before it; "
                      "nodes stand in the order in which they run",
                      where, io::shown(name)));
    node.inputs.push_back(*slot);
  }
  for (const std::string& name : fields.outputs) {
    node.outputs.push_back(name.empty() ? kAbsent : next_slot());
    if (!name.empty()) define(names, name, node.outputs.back(), "an output of " + where);
  }
  graph.nodes.push_back(std::move(node));
}

void Decoder::add_call(const Function& function, const NodeFields& call, std::vector<Attribute> given,
                       const Body& body, Names& names, Graph& graph) {
  if (body.depth > kDeepest)
    refuse(fmt::format("function '{}' calls itself, or functions are nested more than {} deep",
                       io::shown(call.op), kDeepest));
  Opsets opsets = opsets_;
  for (const auto& [domain, version] : function.opsets) opsets[domain] = version;
  Names inner;
  for (size_t i = 0; i < function.inputs.size() && i < call.inputs.size(); ++i) {
    const Slot* const slot = call.inputs[i].empty() ? nullptr : names.find(call.inputs[i]);
    if (!slot && !call.inputs[i].empty())
      refuse(fmt::format("a call of function '{}' reads '{}', which no node before it makes",
                         io::shown(call.op), io::shown(call.inputs[i])));
    define(inner, function.inputs[i], slot ? *slot : kAbsent, "an input of a function");
  }
  // The rest of the inputs are absent.
  for (const std::string& name : function.inputs) inner.own.emplace(name, kAbsent);
  for (const pbf_reader& message : function.defaults) {
    const Body bare{opsets, nullptr, body.depth + 1};
    std::optional<Attribute> one = attribute(message, bare, inner);
    if (one && std::ranges::none_of(given, [&](const Attribute& a) { return a.name == one->name; }))
      given.push_back(std::move(*one));
  }
  add_nodes(function.nodes, Body{opsets, &given, body.depth + 1}, inner, graph);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i].empty()) continue;
    const Slot* const slot = i < function.outputs.size() ? inner.find(function.outputs[i]) : nullptr;
    if (!slot) refuse(fmt::format("function '{}' does not make its output {}", io::shown(call.op), i));
    define(names, call.outputs[i], *slot, "an output of a function");
  }
}

bool Decoder::add_constant_node(const NodeFields& fields, const std::vector<Attribute>& attributes,
                                Names& names) {
  if (fields.outputs.size() != 1 || attributes.size() != 1) return false;
  const auto one = [&]<class T>(const std::vector<T>& values, DType dtype, bool is_list) {
    Tensor out = empty(is_list ? Dims{std::ssize(values)} : Dims{}, TensorOptions(dtype));
    std::ranges::copy(values, static_cast<T*>(out.data_ptr()));
    return out;
  };
  Tensor value;
  if (const auto* tensor = std::get_if<Tensor>(&attributes[0].value)) value = *tensor;
  if (const auto* i = std::get_if<int64_t>(&attributes[0].value)) value = one(std::vector{*i}, kInt64, false);
  if (const auto* f = std::get_if<float>(&attributes[0].value)) value = one(std::vector{*f}, kFloat32, false);
  if (const auto* i = std::get_if<std::vector<int64_t>>(&attributes[0].value)) value = one(*i, kInt64, true);
  if (const auto* f = std::get_if<std::vector<float>>(&attributes[0].value)) value = one(*f, kFloat32, true);
  if (!value.defined()) return false;
  count(fields, 0, true);
  define(names, fields.outputs[0], add_constant(fields.outputs[0], std::move(value), Kind::Unnamed),
         "an output of a node");
  return true;
}

std::optional<Attribute> Decoder::attribute(pbf_reader message, const Body& body, const Names& names) {
  Attribute out;
  std::string reference;
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> strings;
  int64_t type = 0;
  while (message.next()) switch (message.tag()) {
      case 1:
        out.name = message.get_string();
        break;
      case 2:
        out.value = message.get_float();
        break;
      case 3:
        out.value = message.get_int64();
        break;
      case 4:
        out.value = message.get_string();
        break;
      case 5:
      case 22: {
        const bool is_sparse = message.tag() == 22;
        TensorReader::Named named =
            is_sparse ? tensors_.read_sparse(message.get_message()) : tensors_.read(message.get_message());
        if (!named.tensor.defined())
          miss(fmt::format("an attribute '{}' is of {}, which Tenon does not have", io::shown(out.name),
                           named.type));
        out.value = std::move(named.tensor);
        break;
      }
      case 6: {
        auto graph = std::make_shared<Graph>();
        Names inner{&names};
        add_graph(graph_fields(message.get_message()), Body{body.opsets, body.given, body.depth + 1}, inner,
                  *graph, false);
        out.value = std::move(graph);
        break;
      }
      case 7:
        each_float(message, [&](float value) { floats.push_back(value); });
        break;
      case 8:
        each_int64(message, [&](int64_t value) { ints.push_back(value); });
        break;
      case 9:
        strings.push_back(message.get_string());
        break;
      case 20:
        type = message.get_int32();
        break;
      case 21:
        reference = message.get_string();
        break;
      default:
        message.skip();
    }
  if (!reference.empty()) {
    if (!body.given) return std::nullopt;
    const auto found = std::ranges::find(*body.given, reference, &Attribute::name);
    if (found == body.given->end()) return std::nullopt;
    return Attribute{out.name, found->value};
  }
  // The type tells an empty list, or a number that is zero and was left out, from nothing.
  constexpr int64_t kFloat = 1, kInt = 2, kString = 3, kFloats = 6, kInts = 7, kStrings = 8;
  const bool is_bare = std::holds_alternative<std::monostate>(out.value);
  if (type == kFloat && is_bare) out.value = 0.0f;
  if (type == kInt && is_bare) out.value = int64_t{0};
  if (type == kString && is_bare) out.value = std::string();
  if (!ints.empty() || type == kInts) out.value = std::move(ints);
  if (!floats.empty() || type == kFloats) out.value = std::move(floats);
  if (!strings.empty() || type == kStrings) out.value = std::move(strings);
  return out;
}

std::shared_ptr<Program> Decoder::model() {
  pbf_reader message(tensors_.bytes());
  std::optional<pbf_reader> graph;
  std::vector<pbf_reader> functions;
  while (message.next()) switch (message.tag()) {
      case 1:
        contents_.ir_version = message.get_int64();
        break;
      case 2:
        contents_.producer = message.get_string();
        break;
      case 3:
        contents_.producer += ' ' + message.get_string();
        break;
      case 7:
        graph = message.get_message();
        break;
      case 8:
        add_opset(message.get_message(), opsets_);
        break;
      case 14:
        contents_.metadata.push_back(key_and_value(message.get_message()));
        break;
      case 25:
        functions.push_back(message.get_message());
        break;
      default:
        message.skip();
    }
  if (!graph || contents_.ir_version < 1)
    refuse("it is no ONNX model: it has no graph, or no version of the format");
  // Files without versions are older than them.
  if (opsets_.empty()) opsets_[""] = 1;
  const auto opset = opsets_.find("");
  if (opset != opsets_.end() && opset->second > kNewestOpset)
    miss(fmt::format("its operators are of version {} of the standard; the newest that is read is {}",
                     opset->second, kNewestOpset));
  for (const pbf_reader& function : functions) add_function(function);
  Names names;
  add_graph(graph_fields(*graph), Body{opsets_}, names, program_->graph, true);
  for (const Contents::Operator& op : contents_.operators) {
    if (op.is_known) continue;
    miss(fmt::format("{}{}{} (version {}, {} {}, the first is '{}')", op.domain, op.domain.empty() ? "" : ":",
                     io::shown(op.name), op.opset, op.num_nodes, op.num_nodes == 1 ? "node" : "nodes",
                     io::shown(op.first_node)));
  }
  std::ranges::sort(contents_.operators, {},
                    [](const Contents::Operator& op) { return std::tie(op.domain, op.name); });
  finish(*program_);
  contents_.inputs = program_->inputs;
  contents_.outputs = program_->outputs;
  for (size_t i = 0; i < program_->num_weights; ++i)
    contents_.num_weights += program_->constants[i].value.numel();
  return program_;
}

}  // namespace

std::shared_ptr<Program> decode(const Source& source, Contents& contents) {
  try {
    return Decoder(source, contents).model();
  } catch (const protozero::exception& error) {
    throw Error(ErrorKind::Value, fmt::format("onnx.load: {}: it is no ONNX model, or it is damaged: {}",
                                              source.input.name(), error.what()));
  }
}

}  // namespace tenon::onnx
