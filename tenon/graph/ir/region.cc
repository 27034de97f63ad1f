#include "tenon/graph/ir/region.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tenon/core/error.h"
#include "tenon/dispatch/dispatcher.h"

namespace tenon::graph {

std::string_view name(RegionKind kind) noexcept {
  constexpr std::string_view kNames[kNumRegionKinds] = {"flat", "rows", "matmul", "convolution"};
  return kNames[static_cast<size_t>(kind)];
}

OperatorHandle region_operator(RegionKind kind) {
  // Defined when first needed, and listed with no other operators: no program calls them.
  static const auto kOperators = [] {
    const auto define = [](RegionKind k) {
      schema::FunctionSchema schema = schema::parse_schema("tenon::region_" + std::string(name(k)) +
                                                           "(Tensor[] inputs, Scalar[] numbers) -> Tensor[]");
      const std::string full_name = schema.full_name();
      Dispatcher::singleton().define(std::move(schema), SourceLocation::here(), Dispatcher::Listed::No);
      return Dispatcher::singleton().find_schema_or_throw_full(full_name);
    };
    return std::array{define(RegionKind::Flat), define(RegionKind::Rows), define(RegionKind::Matmul),
                      define(RegionKind::Convolution)};
  }();
  return kOperators[static_cast<size_t>(kind)];
}

std::optional<RegionKind> region_kind(OperatorHandle op) {
  for (int k = 0; k < kNumRegionKinds; ++k) {
    if (op == region_operator(static_cast<RegionKind>(k))) return static_cast<RegionKind>(k);
  }
  return std::nullopt;
}

std::optional<OperatorHandle> find_operator(std::string_view full_name) {
  region_operator(RegionKind::Flat);  // those of regions are there from now on
  const size_t dot = full_name.find('.');
  const std::string_view overload = dot == std::string_view::npos ? "" : full_name.substr(dot + 1);
  return Dispatcher::singleton().find_op(full_name.substr(0, dot), overload);
}

int64_t knob(const Region& region, std::string_view name, int64_t otherwise) {
  const auto found = std::ranges::find(region.knobs, name, &Knobs::value_type::first);
  return found == region.knobs.end() ? otherwise : found->second;
}

void check_knobs(const Region& region, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : region.knobs) {
    TENON_CHECK(std::ranges::find(known, name) != known.end(), NotImplemented,
                fmt::format("{}: engine '{}' has no knob '{}'", region.name, region.engine, name));
  }
}

void RegionDeleter::operator()(Region* region) const noexcept { delete region; }

RegionPart RegionPart::copy() const {
  RegionPart result;
  if (expression) result.expression = expr::make_expression(expr::parts_of(*expression));
  result.inputs = inputs;
  result.numbers = numbers;
  result.outputs = outputs;
  return result;
}

RegionPtr Region::copy() const {
  RegionPtr result(new Region);
  result->name = name;
  result->kind = kind;
  result->anchor_member = anchor_member;
  result->over = over;
  for (const RegionPart& part : prologue) result->prologue.push_back(part.copy());
  result->body = body.copy();
  result->epilogue = epilogue.copy();
  result->numbers = numbers;
  result->engine = engine;
  result->knobs = knobs;
  for (const Node& member : members) result->members.push_back(member.copy());
  return result;
}

}  // namespace tenon::graph
