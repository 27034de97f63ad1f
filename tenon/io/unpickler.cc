#include "tenon/io/unpickler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace tenon::io {
namespace {

using Kind = Value::Kind;

constexpr size_t kMostDepth = 500;

[[noreturn]] void refuse(std::string what) { throw PickleError{std::move(what)}; }

class Machine {
 public:
  Machine(std::string_view pickle, size_t& at, Nodes& nodes, Objects& objects)
      : pickle_(pickle), at_(at), nodes_(nodes), objects_(objects) {}

  Node* run() {
    for (;;) {
      opcode_at_ = at_;
      const auto opcode = static_cast<unsigned char>(take(1)[0]);
      if (opcode == '.') {
        Node* const result = pop();
        if (!stack_.empty() || !marks_.empty()) refuse("values are left over at its end");
        if (at_ != pickle_.size()) refuse("bytes follow its end");
        return result;
      }
      step(opcode);
    }
  }

 private:
  std::string_view take(uint64_t size) {
    if (size > pickle_.size() - at_) refuse(fmt::format("{} bytes are expected, and the pickle ends", size));
    const std::string_view out = pickle_.substr(at_, size);
    at_ += size;
    return out;
  }
  uint64_t number(size_t size) {
    uint64_t out = 0;
    const std::string_view bytes = take(size);
    for (size_t i = 0; i < size; ++i) out |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    return out;
  }
  std::string_view line() {
    const size_t end = pickle_.find('\n', at_);
    if (end == pickle_.npos) refuse("a line without an end");
    const std::string_view out = take(end - at_);
    ++at_;
    return out;
  }

  void push(Node* node) { stack_.push_back(node); }
  void push(Kind kind, decltype(Node::value) value = {}) { push(add(nodes_, kind, std::move(value))); }
  Node* pop() {
    Node* const out = &top();
    stack_.pop_back();
    return out;
  }
  Node& top() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse("a value is missing");
    return *stack_.back();
  }
  /// The values since the last mark.
  Node::List pop_mark() {
    if (marks_.empty()) refuse("a mark is missing");
    Node::List out(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return out;
  }
  Node::List pop_several(size_t count) {
    Node::List out(count);
    for (size_t i = count; i > 0; --i) out[i - 1] = pop();
    return out;
  }
  Node::List& container(Kind kind, const char* what) {
    Node& node = top();
    if (node.kind != kind || !std::holds_alternative<Node::List>(node.value))
      refuse(fmt::format("{} is expected", what));
    return node.list();
  }
  void append(Kind kind, const char* what, const Node::List& values) {
    Node::List& list = container(kind, what);
    list.insert(list.end(), values.begin(), values.end());
  }
  void set_items(const Node::List& values) {
    if (values.size() % 2 != 0) refuse("a key without a value");
    append(Kind::Dict, "a dict", values);
  }
  void integer(std::string_view bytes) {
    if (bytes.size() > 8) return push(Kind::LargeInt, std::string(bytes));
    int64_t out = 0;
    for (size_t i = 0; i < bytes.size(); ++i)
      out |= static_cast<int64_t>(uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i));
    if (!bytes.empty() && bytes.size() < 8 && (bytes.back() & 0x80))
      out |= -(int64_t{1} << (8 * bytes.size()));
    push(Kind::Int, out);
  }
  void memoize(uint64_t key) { memo_[key] = &top(); }
  void recall(uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) refuse(fmt::format("it recalls value {}, which it has not kept", key));
    push(found->second);
  }
  void name(std::string_view module, std::string_view name) {
    push(objects_.named(nodes_, fmt::format("{}.{}", module, name)));
  }
  void call() {
    const Node* const arguments = pop();
    const Node* const function = pop();
    if (arguments->kind != Kind::Tuple || !std::holds_alternative<Node::List>(arguments->value))
      refuse("a call without a tuple of arguments");
    const auto* const named = std::get_if<Named>(&function->value);
    if (!named) refuse(fmt::format("it calls {}", Value(nullptr, function).kind_name()));
    push(objects_.call(nodes_, named->name, arguments->list()));
  }
  /// Attributes of a dict or a tensor, which have no place here.
  void build() {
    pop();
    if (top().kind != Kind::Dict && top().kind != Kind::Tensor) refuse("it sets the state of what has none");
  }

  void step(unsigned char opcode);

  std::string_view pickle_;
  size_t& at_;
  size_t opcode_at_ = 0;
  Nodes& nodes_;
  Objects& objects_;
  Node::List stack_;
  std::vector<size_t> marks_;  // sizes of the stack
  std::unordered_map<uint64_t, Node*> memo_;
};

void Machine::step(unsigned char opcode) {
  switch (opcode) {
    case 0x80:  // PROTO
      if (const uint64_t protocol = number(1); protocol < 2 || protocol > 5)
        refuse(fmt::format("protocol {} is not one of 2 to 5", protocol));
      return;
    case 0x95:  // FRAME
      number(8);
      return;
    case '(':
      return marks_.push_back(stack_.size());
    case '0':  // POP
      pop();
      return;
    case '1':  // POP_MARK
      pop_mark();
      return;
    case '2':  // DUP
      return push(&top());

    case 'N':
      return push(Kind::None);
    case 0x88:
    case 0x89:
      return push(Kind::Bool, opcode == 0x88);
    case 'J':
      return push(Kind::Int, int64_t{static_cast<int32_t>(number(4))});
    case 'K':
      return push(Kind::Int, static_cast<int64_t>(number(1)));
    case 'M':
      return push(Kind::Int, static_cast<int64_t>(number(2)));
    case 0x8a:  // LONG1
      return integer(take(number(1)));
    case 0x8b:  // LONG4
      return integer(take(number(4)));
    case 'G': {
      uint64_t bits = 0;  // high byte first
      for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
      double value;
      std::memcpy(&value, &bits, 8);
      return push(Kind::Float, value);
    }
    case 'X':
      return push(Kind::Text, std::string(take(number(4))));
    case 0x8c:
      return push(Kind::Text, std::string(take(number(1))));
    case 0x8d:
      return push(Kind::Text, std::string(take(number(8))));
    case 'T':  // Python 2's str
      return push(Kind::Text, std::string(take(number(4))));
    case 'U':
      return push(Kind::Text, std::string(take(number(1))));
    case 'B':
      return push(Kind::Bytes, std::string(take(number(4))));
    case 'C':
      return push(Kind::Bytes, std::string(take(number(1))));
    case 0x8e:
      return push(Kind::Bytes, std::string(take(number(8))));
    case 0x96:
      return push(add(nodes_, Kind::Bytes, std::string(take(number(8))), true));

    case ']':
      return push(Kind::List, Node::List());
    case 'l':
      return push(Kind::List, pop_mark());
    case 'a': {
      const Node::List value = pop_several(1);
      return append(Kind::List, "a list", value);
    }
    case 'e': {
      const Node::List values = pop_mark();
      return append(Kind::List, "a list", values);
    }
    case ')':
      return push(Kind::Tuple, Node::List());
    case 't':
      return push(Kind::Tuple, pop_mark());
    case 0x85:
    case 0x86:
    case 0x87:
      return push(Kind::Tuple, pop_several(opcode - 0x84));
    case '}':
      return push(Kind::Dict, Node::List());
    case 'd': {
      Node::List values = pop_mark();
      push(Kind::Dict, Node::List());
      return set_items(values);
    }
    case 's': {
      const Node::List values = pop_several(2);
      return set_items(values);
    }
    case 'u': {
      const Node::List values = pop_mark();
      return set_items(values);
    }
    case 0x8f:
      return push(Kind::Set, Node::List());
    case 0x90: {
      const Node::List values = pop_mark();
      return append(Kind::Set, "a set", values);
    }

    case 'h':
      return recall(number(1));
    case 'j':
      return recall(number(4));
    case 'q':
      return memoize(number(1));
    case 'r':
      return memoize(number(4));
    case 0x94:
      return memoize(memo_.size());

    case 'c': {
      const std::string_view module = line();
      return name(module, line());
    }
    case 0x93: {  // STACK_GLOBAL
      const Node::List both = pop_several(2);
      if (both[0]->kind != Kind::Text || both[1]->kind != Kind::Text || !both[0]->is_plain() ||
          !both[1]->is_plain())
        refuse("a name that is no text");
      return name(both[0]->text(), both[1]->text());
    }
    case 'R':
    case 0x81:  // NEWOBJ
      return call();
    case 'b':
      return build();
    case 'Q':
      return push(objects_.persistent(nodes_, *pop()));
    default:
      at_ = opcode_at_;
      refuse(fmt::format("opcode {:#04x}, which a checkpoint does not need", opcode));
  }
}

/// Refuses what Value cannot show: names and stored bytes, values that contain themselves, and deep ones.
void check_shape(const Node* root) {
  constexpr size_t kOpen = 0;
  std::unordered_map<const Node*, size_t> heights;  // how deep values nest inside, themselves included
  struct Step {
    const Node* node;
    size_t next, height;
  };
  std::vector<Step> path;
  const auto enter = [&](const Node* node) {
    if (const auto* const named = std::get_if<Named>(&node->value))
      refuse(fmt::format("the name {} stands where a value is expected", named->name));
    if (!node->is_plain()) refuse("a storage stands where a value is expected");
    if (!std::holds_alternative<Node::List>(node->value)) return;
    const auto [known, first] = heights.try_emplace(node, kOpen);
    if (!first && known->second == kOpen)
      refuse(fmt::format("{} contains itself", Value(nullptr, node).kind_name()));
    if (path.size() + std::max<size_t>(known->second, 1) > kMostDepth)
      refuse(fmt::format("its values nest more than {} deep", kMostDepth));
    if (first)
      path.push_back({node, 0, 1});
    else
      path.back().height = std::max(path.back().height, known->second + 1);
  };
  enter(root);
  while (!path.empty()) {
    Step& step = path.back();
    const Node::List& list = step.node->list();
    if (step.next < list.size()) {
      const size_t i = step.next++;
      const bool is_key = step.node->kind == Kind::Set || (step.node->kind == Kind::Dict && i % 2 == 0);
      if (is_key &&
          (list[i]->kind == Kind::List || list[i]->kind == Kind::Dict || list[i]->kind == Kind::Set))
        refuse(fmt::format("{} stands where a key is expected", Value(nullptr, list[i]).kind_name()));
      enter(list[i]);
    } else {
      const size_t height = step.height;
      heights[step.node] = height;
      path.pop_back();
      if (!path.empty()) path.back().height = std::max(path.back().height, height + 1);
    }
  }
}

}  // namespace

Node* add(Nodes& nodes, Kind kind, decltype(Node::value) value, bool special) {
  Node& node = nodes.all.emplace_back();
  node.kind = kind;
  node.special = special;
  node.value = std::move(value);
  return &node;
}

Node* unpickle(std::string_view pickle, size_t& at, Nodes& nodes, Objects& objects) {
  at = 0;
  Node* const out = Machine(pickle, at, nodes, objects).run();
  check_shape(out);
  return out;
}

}  // namespace tenon::io
