#include "tenon/graph/engine/slot_number.h"

namespace tenon::graph {

SlotNumber::SlotNumber(const Graph& g, const Region& region, const NumberSource& source)
    : rule_(source.from.rule), op_(region.members[source.member].op.name().data()) {
  if (source.from.argument == kNone) {
    constant_ = source.from.constant;
    return;
  }
  const Argument& argument = g.arguments(region.members[source.member])[source.from.argument];
  if (const auto numbers = g.numbers_of(argument); !numbers.empty()) {
    number_ = numbers[0];
    return;
  }
  const Stack& attributes = g.attributes();
  const size_t at = argument.range.first;
  switch (attributes.tag(at)) {
    case CellTag::Scalar:
      constant_ = attributes.at<Scalar>(at);
      break;
    case CellTag::Float:
      constant_ = attributes.at<double>(at);
      break;
    case CellTag::Bool:
      constant_ = attributes.at<bool>(at);
      break;
    default:
      constant_ = attributes.at<int64_t>(at);
  }
}

}  // namespace tenon::graph
