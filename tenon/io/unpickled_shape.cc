#include "tenon/io/unpickled_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tenon/io/unpickler.h"

namespace tenon::io {
namespace {

using Kind = Value::Kind;

// Steps of hashing all keys: some for each node, and many where there are few.
constexpr uint64_t kStepsPerNode = 64, kLeastSteps = uint64_t{1} << 22;
constexpr uint64_t kEndless = uint64_t{1} << 60;

/// What is known of a node once all that it holds is known.
struct Summary {
  uint64_t steps = 1;   // of hashing it
  uint32_t height = 0;  // how deep values nest inside, itself included; 0: not known yet
  bool is_open = false;
  bool can_be_key = true;
};

class Check {
 public:
  explicit Check(Nodes& nodes)
      : nodes_(nodes),
        summaries_(nodes.all.size()),
        steps_left_(kLeastSteps + kStepsPerNode * nodes.all.size()) {}

  void run(Node* root) {
    enter(root);
    while (!path_.empty()) {
      Step& step = path_.back();
      if (step.next < size_of(*step.node))
        enter(child(*step.node, step.next++));
      else
        leave();
    }
  }

 private:
  struct Step {
    Node* node;
    size_t next = 0;
  };

  static bool is_container(const Node& node) {
    return std::holds_alternative<Node::List>(node.value) || node.attributes;
  }
  static const Node::List& elements_of(const Node& node) {
    static const Node::List kNone;
    const auto* const list = std::get_if<Node::List>(&node.value);
    return list ? *list : kNone;
  }
  /// Elements, and the attributes last.
  static size_t size_of(const Node& node) { return elements_of(node).size() + (node.attributes != nullptr); }
  static Node* child(const Node& node, size_t i) {
    const Node::List& elements = elements_of(node);
    return i < elements.size() ? elements[i] : node.attributes;
  }
  Summary& summary(const Node& node) { return summaries_[node.number]; }

  void enter(Node* node) {
    if (!node->is_plain()) refuse_as_value(*node);
    node->reached = true;
    Summary& known = summary(*node);
    if (path_.size() + std::max(known.height, uint32_t{1}) > kMostDepth && is_container(*node))
      refuse_depth();
    if (known.is_open) {
      nodes_.is_circular = true;
    } else if (known.height == 0) {
      known.height = 1;
      if (is_container(*node)) {
        known.is_open = true;
        path_.push_back({node});
      } else {
        known.can_be_key = node->kind != Kind::Bytes || !node->special;
        if (node->kind == Kind::LargeInt) known.steps += node->text().size() / 8;
      }
    }
  }

  [[noreturn]] static void refuse_as_value(const Node& node) {
    refuse_pickle(fmt::format("it holds {} as a value; save {}", name_of(node),
                              std::holds_alternative<StoredBytes>(node.value)
                                  ? "a tensor over the storage instead"
                                  : "tensors, numbers and text without types and functions"));
  }

  void leave() {
    const Node& node = *path_.back().node;
    path_.pop_back();
    Summary& found = summary(node);
    const Node::List& elements = elements_of(node);
    uint32_t height = 0;
    uint64_t steps = 1;
    for (const Node* element : elements) {
      const Summary& inner = summary(*element);
      height = std::max(height, inner.height);
      steps = std::min(steps + inner.steps, kEndless);
      found.can_be_key &= can_be_key(*element);
    }
    if (node.attributes) {
      height = std::max(height, summary(*node.attributes).height);
      check_attributes(*node.attributes);
    }
    found.height = height + 1;
    if (node.kind == Kind::Tuple) {
      found.steps = steps;
    } else if (node.kind == Kind::Set) {
      use_keys(elements, 1);
      found.steps = 1 + elements.size();
      found.can_be_key = node.special;
    } else if (node.kind == Kind::Dict) {
      use_keys(elements, 2);
      found.can_be_key = false;
    } else {
      found.can_be_key = node.kind == Kind::Tensor;
    }
    found.is_open = false;
  }

  /// A container that is open holds what asks, and cannot be hashed for it. Tensors are hashed by identity.
  bool can_be_key(const Node& node) {
    const Summary& known = summary(node);
    return known.can_be_key && (!known.is_open || node.kind == Kind::Tensor);
  }

  void use_keys(const Node::List& elements, size_t stride) {
    for (size_t i = 0; i < elements.size(); i += stride) {
      const Summary& key = summary(*elements[i]);
      if (!can_be_key(*elements[i]))
        refuse_pickle(fmt::format("it holds {} as a key{}, which cannot be hashed", name_of(*elements[i]),
                                  elements[i]->kind == Kind::Tuple ? ", with a list or dict inside" : ""));
      if (key.steps > steps_left_)
        refuse_pickle("its keys take too many steps to hash: they hold one tuple or number many times over");
      steps_left_ -= key.steps;
    }
  }

  static void check_attributes(const Node& attributes) {
    for (size_t i = 0; i < attributes.list().size(); i += 2)
      if (attributes.list()[i]->kind != Kind::Text)
        refuse_pickle(fmt::format("an attribute's name is {}, and no text", name_of(*attributes.list()[i])));
  }

  Nodes& nodes_;
  std::vector<Summary> summaries_;
  std::vector<Step> path_;
  uint64_t steps_left_;
};

}  // namespace

std::string name_of(const Node& node) {
  if (const auto* const named = std::get_if<Named>(&node.value))
    return fmt::format("the name {}", named->name);
  if (!node.is_plain()) return "a storage";
  return Value(nullptr, &node).kind_name();
}

void refuse_depth() { refuse_pickle(fmt::format("its values nest more than {} deep", kMostDepth)); }

void check_shape(Node* root, Nodes& nodes) { Check(nodes).run(root); }

}  // namespace tenon::io
