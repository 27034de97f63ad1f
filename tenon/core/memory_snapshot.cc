#include "tenon/core/memory_snapshot.h"

#include <fmt/core.h>

#include <map>
#include <string_view>

namespace tenon {
namespace {

using State = MemorySnapshot::Block::State;

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

/// Finding a line costs milliseconds, and most blocks were made by a few.
class Frames {
 public:
  const std::string& of(const std::shared_ptr<const MemoryStack>& stack) {
    std::string& text = known_[stack.get()];
    if (!text.empty()) return text;
    text += '[';
    if (stack) {
      for (const SourceMark& mark : stack->marks) {
        if (text.size() > 1) text += ", ";
        std::string& line = lines_[{mark.place, mark.detail}];
        if (line.empty()) line = quoted(describe_source(mark));
        text += line;
      }
    }
    return text += ']';
  }

 private:
  std::map<const MemoryStack*, std::string> known_;
  std::map<std::pair<uint64_t, int32_t>, std::string> lines_;
};

const char* name(State state) {
  switch (state) {
    case State::Allocated:
      return "active_allocated";
    case State::AwaitingFree:
      return "active_awaiting_free";
    case State::Inactive:
      break;
  }
  return "inactive";
}

}  // namespace

std::string segments_as_json(const MemorySnapshot& snapshot) {
  Frames frames;
  std::string out = "[";
  for (const auto& segment : snapshot.segments) {
    size_t allocated = 0, active = 0, requested = 0;
    std::string blocks;
    for (const auto& block : segment.blocks) {
      if (block.state == State::Allocated) allocated += block.size;
      if (block.state != State::Inactive) active += block.size;
      requested += block.requested;
      blocks += fmt::format(
          "{}{{\"address\": {}, \"size\": {}, \"requested_size\": {}, \"state\": \"{}\", \"frames\": {}}}",
          blocks.empty() ? "" : ", ", block.address, block.size, block.requested, name(block.state),
          frames.of(block.stack));
    }
    out += fmt::format(
        "{}{{\"device\": {}, \"address\": {}, \"total_size\": {}, \"allocated_size\": {}, \"active_size\": "
        "{}, \"requested_size\": {}, \"stream\": {}, \"segment_type\": \"{}\", \"segment_pool_id\": [0, {}], "
        "\"is_expandable\": {}, \"blocks\": [{}]}}",
        out.size() > 1 ? ", " : "", segment.stream.device.index, segment.address, segment.size, allocated,
        active, requested, segment.stream.id, segment.small ? "small" : "large", segment.pool,
        segment.expandable, blocks);
  }
  return out + "]";
}

std::string events_as_json(const MemorySnapshot& snapshot) {
  Frames frames;
  std::string out = "[";
  for (const MemoryEvent& event : snapshot.events)
    out += fmt::format(
        "{}{{\"action\": \"{}\", \"addr\": {}, \"size\": {}, \"stream\": {}, \"time_us\": {}, \"frames\": "
        "{}}}",
        out.size() > 1 ? ", " : "", name(event.action), event.address, event.size, event.stream.id,
        event.time_us, frames.of(event.stack));
  return out + "]";
}

}  // namespace tenon
