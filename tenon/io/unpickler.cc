#include "tenon/io/unpickler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tenon/io/unpickled_shape.h"
#include "tenon/io/utf8.h"

namespace tenon::io {
namespace {

using Kind = Value::Kind;

[[noreturn]] void refuse(std::string what) { refuse_pickle(std::move(what)); }
[[noreturn]] void refuse_end(std::string what) { throw PickleError{std::move(what), true}; }

class Machine {
 public:
  Machine(std::string_view pickle, size_t& at, Nodes& nodes, Objects& objects)
      : pickle_(pickle), at_(at), nodes_(nodes), objects_(objects) {
    none_ = add(nodes_, Kind::None);
    for (size_t i = 0; i < 2; ++i) bools_[i] = add(nodes_, Kind::Bool, i == 1);
  }

  Node* run() {
    for (;;) {
      opcode_at_ = at_;
      const auto opcode = static_cast<unsigned char>(take(1)[0]);
      if (opcode == '.') {
        Node* const result = pop();
        if (!stack_.empty() || !marks_.empty()) refuse("values are left over at its end");
        return result;
      }
      step(opcode);
    }
  }

 private:
  void frame(uint64_t size) {
    const size_t left = pickle_.size() - at_;
    if (size > left) refuse_end(fmt::format("a frame of {} bytes is announced, and {} follow", size, left));
  }
  std::string_view take(uint64_t size) {
    if (size > pickle_.size() - at_)
      refuse_end(fmt::format("{} bytes are expected, and the pickle ends", size));
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
    if (end == pickle_.npos) refuse_end("a line without an end");
    const std::string_view out = take(end - at_);
    ++at_;
    return out;
  }

  void push(Node* node) { stack_.push_back(node); }
  void push(Kind kind, decltype(Node::value) value = {}, bool special = false) {
    push(add(nodes_, kind, std::move(value), special));
  }
  void push_text(std::string_view text) {
    if (const size_t bad = first_not_utf8(text); bad != text.size()) {
      at_ -= text.size() - bad;
      refuse("a text is not UTF-8");
    }
    push(Kind::Text, text);
  }
  /// Of a tuple or frozenset, whose elements are whole: what nests too deep is refused before more is made.
  void push_nested(Node* node) {
    node->depth = 1;
    for (const Node* element : node->list())
      node->depth = std::max(node->depth, static_cast<uint16_t>(element->depth + 1));
    if (node->depth > kMostDepth) refuse_depth();
    push(node);
  }
  void push_tuple(Node::List elements) { push_nested(add(nodes_, Kind::Tuple, std::move(elements))); }
  /// Small numbers are the most frequent values; one node serves all that are equal.
  void push_byte(uint8_t value) {
    Node*& node = bytes_[value];
    if (!node) node = add(nodes_, Kind::Int, int64_t{value});
    push(node);
  }
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
    if (node.kind != kind || !std::holds_alternative<Node::List>(node.value) ||
        (kind == Kind::Set && node.special))
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
    if (bytes.size() > 8) return push(Kind::LargeInt, bytes);
    int64_t out = 0;
    for (size_t i = 0; i < bytes.size(); ++i)
      out |= static_cast<int64_t>(uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i));
    if (!bytes.empty() && bytes.size() < 8 && (bytes.back() & 0x80))
      out |= -(int64_t{1} << (8 * bytes.size()));
    push(Kind::Int, out);
  }
  void memoize(uint64_t key) {
    // Writers count up, and each number takes bytes: a larger one would only take memory.
    if (key >= at_) refuse(fmt::format("it keeps a value as number {}, and has kept fewer", key));
    if (key >= memo_.size()) memo_.resize(key + 1);
    kept_ += memo_[key] == nullptr;
    memo_[key] = &top();
  }
  void recall(uint64_t key) {
    if (key >= memo_.size() || !memo_[key])
      refuse(fmt::format("it recalls value {}, which it has not kept", key));
    push(memo_[key]);
  }
  void name(std::string_view module, std::string_view name) {
    // Long names are not known, and would be copied for nothing.
    constexpr size_t kMostName = 200;
    if (module.size() + name.size() > kMostName)
      refuse(fmt::format("it names {}.{}", shown(module), shown(name)));
    push(objects_.named(nodes_, fmt::format("{}.{}", module, name)));
  }
  void call() {
    const Node* const arguments = pop();
    const Node* const function = pop();
    if (arguments->kind != Kind::Tuple || !std::holds_alternative<Node::List>(arguments->value))
      refuse("a call without a tuple of arguments");
    const auto* const named = std::get_if<Named>(&function->value);
    if (!named) refuse(fmt::format("it calls {}", name_of(*function)));
    push(objects_.call(nodes_, named->name, arguments->list()));
  }
  /// Attributes of a dict or a tensor; nothing else has any, names least of all.
  void build() {
    Node* const state = pop();
    Node& node = top();
    if ((node.kind != Kind::Dict && node.kind != Kind::Tensor) || !node.is_plain())
      refuse(fmt::format("it sets the state of {}", name_of(node)));
    if (state->kind == Kind::None && state->is_plain()) return;
    if (state->kind != Kind::Dict || !state->is_plain())
      refuse(fmt::format("the state of {} is {}, and no dict", name_of(node), name_of(*state)));
    node.attributes = state;
  }

  void step(unsigned char opcode);

  std::string_view pickle_;
  size_t& at_;
  size_t opcode_at_ = 0;
  Nodes& nodes_;
  Objects& objects_;
  Node::List stack_;
  std::vector<size_t> marks_;  // sizes of the stack
  Node::List memo_;
  uint64_t kept_ = 0;
  Node* none_;
  std::array<Node*, 2> bools_;
  std::array<Node*, 256> bytes_{};
};

void Machine::step(unsigned char opcode) {
  switch (opcode) {
    case 0x80:  // PROTO
      if (const uint64_t protocol = number(1); protocol < 2 || protocol > 5)
        refuse(fmt::format("protocol {} is not one of 2 to 5", protocol));
      return;
    case 0x95:  // FRAME
      return frame(number(8));
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
      return push(none_);
    case 0x88:
    case 0x89:
      return push(bools_[opcode == 0x88]);
    case 'J':
      return push(Kind::Int, int64_t{static_cast<int32_t>(number(4))});
    case 'K':
      return push_byte(static_cast<uint8_t>(number(1)));
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
    case 'T':  // Python 2's str
      return push_text(take(number(4)));
    case 0x8c:
    case 'U':
      return push_text(take(number(1)));
    case 0x8d:
      return push_text(take(number(8)));
    case 'B':
      return push(Kind::Bytes, take(number(4)));
    case 'C':
      return push(Kind::Bytes, take(number(1)));
    case 0x8e:
      return push(Kind::Bytes, take(number(8)));
    case 0x96:
      return push(Kind::Bytes, take(number(8)), true);

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
      return push_tuple({});
    case 't':
      return push_tuple(pop_mark());
    case 0x85:
    case 0x86:
    case 0x87:
      return push_tuple(pop_several(opcode - 0x84));
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
    case 0x91:  // FROZENSET
      return push_nested(objects_.frozenset(nodes_, pop_mark()));

    case 'h':
      return recall(number(1));
    case 'j':
      return recall(number(4));
    case 'q':
      return memoize(number(1));
    case 'r':
      return memoize(number(4));
    case 0x94:
      return memoize(kept_);

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

}  // namespace

void refuse_pickle(std::string what) { throw PickleError{std::move(what)}; }

void Allowance::use(uint64_t count) {
  if (count > left_)
    refuse(fmt::format(
        "its calls copy more than the {} bytes that the whole pickle has: they use one value many "
        "times over",
        whole_));
  left_ -= count;
}

Node* unpickle(std::string_view pickle, size_t& at, Nodes& nodes, Objects& objects) {
  at = 0;
  Node* const out = Machine(pickle, at, nodes, objects).run();
  check_shape(out, nodes);
  return out;
}

}  // namespace tenon::io
