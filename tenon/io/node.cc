#include "tenon/io/node.h"

namespace tenon::io {

Node* add(Nodes& nodes, Value::Kind kind, decltype(Node::value) value, bool special) {
  Node& node = nodes.all.emplace_back();
  node.kind = kind;
  node.special = special;
  node.number = static_cast<uint32_t>(nodes.all.size() - 1);
  node.value = std::move(value);
  return &node;
}

Node* add_text(Nodes& nodes, Value::Kind kind, std::string text, bool special) {
  nodes.texts.push_back(std::move(text));
  return add(nodes, kind, std::string_view(nodes.texts.back()), special);
}

}  // namespace tenon::io
