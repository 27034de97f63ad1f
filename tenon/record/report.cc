#include "tenon/record/report.h"

#include <fmt/core.h>

namespace tenon::record {
namespace {

// Beyond this many different events there is nothing more to learn from them.
constexpr size_t kMaxEvents = 1000;

std::string shown(const Dims& dims) { return to_string(IntArrayRef(dims)); }

std::string difference(const Operand& call, const Operand& known, const std::string& name) {
  const Geometry &a = call.geometry, &b = known.geometry;
  if ((call.storage == kNoSlot) != (known.storage == kNoSlot))
    return fmt::format("whether `{}` is given", name);
  if (a.dtype != b.dtype)
    return fmt::format("dtype of `{}`: {}, known {}", name, tenon::name(a.dtype), tenon::name(b.dtype));
  if (a.sizes != b.sizes)
    return fmt::format("sizes of `{}`: {}, known {}", name, shown(a.sizes), shown(b.sizes));
  if (a.strides != b.strides)
    return fmt::format("strides of `{}`: {}, known {}", name, shown(a.strides), shown(b.strides));
  if (a.offset != b.offset)
    return fmt::format("offset of `{}` in what is used of its memory: {}, known {}", name, a.offset,
                       b.offset);
  if (call.storage != known.storage)
    return fmt::format("memory of `{}`: storage {} of the segment, known {}", name, call.storage,
                       known.storage);
  return "";
}

}  // namespace

std::string difference(const TrieNode& call, const TrieNode& known) {
  if (call.info != known.info)
    return fmt::format("the operator: {}, known {}", call.info->op.full_name(), known.info->op.full_name());
  const auto& arguments = call.info->schema->arguments;
  for (size_t i = 0; i < call.arguments.size() && i < known.arguments.size(); ++i) {
    const ArgumentSource &a = call.arguments[i], &b = known.arguments[i];
    const std::string& name = arguments[i].name;
    if (a.tag != b.tag)
      return fmt::format("what `{}` is: {}, known {}", name, tenon::name(a.tag), tenon::name(b.tag));
    if (a.count != b.count)
      return fmt::format("how many tensors `{}` has: {}, known {}", name, a.count, b.count);
    if (a.kind == ArgumentSource::Kind::Attribute || a.kind == ArgumentSource::Kind::Number) continue;
    const size_t count = a.kind == ArgumentSource::Kind::Tensor ? 1 : a.count;
    for (size_t k = 0; k < count; ++k) {
      std::string text = difference(call.operands[a.first + k], known.operands[b.first + k], name);
      if (!text.empty()) return text;
    }
  }
  return "the value of an argument, the kind of a number, or a process-wide setting";
}

void ProgramReport::add(std::vector<Event>& events, const OperatorInfo* info, std::string what,
                        SourceMark line) {
  for (Event& e : events) {
    if (e.info == info && e.line.place == line.place && e.line.detail == line.detail && e.what == what) {
      ++e.count;
      return;
    }
  }
  if (events.size() < kMaxEvents) events.push_back({info, std::move(what), line, 1});
}

}  // namespace tenon::record
