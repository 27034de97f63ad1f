#include "tenon/expr/definition.h"

#include <fmt/format.h>

#include <atomic>
#include <vector>

#include "tenon/core/error.h"
#include "tenon/expr/definition_constants.h"
#include "tenon/expr/function.h"
#include "tenon/expr/instantiate.h"
#include "tenon/expr/parse.h"

namespace tenon::expr {

namespace {

ExpressionPtr define(const Function& f, Type type) {
  TENON_CHECK(f.runs_in(type), Type,
              fmt::format("expression: `{}` needs {}, got {}", f.name,
                          is_floating(type) ? "an integer type" : "a floating type", name(type)));
  Builder g;
  static constexpr std::string_view kNames[] = {"x", "y", "z"};
  std::vector<Binding> names;
  for (int i = 0; i < f.arity; ++i) names.push_back({kNames[i], g.symbol(kNames[i])});
  for (const DefinitionConstant& c : definition_constants()) {
    if (is_floating(type)) names.push_back({c.name, g.literal(type == Type::F32 ? c.f32 : c.f64)});
  }
  const DType result[] = {f.mask ? DType::Bool : dtype(type)};
  const std::vector<DType> inputs(f.arity, dtype(type));
  return instantiate(*g.finish({parse_bound(g, f.body_for(type), names)}),
                     {.compute = type, .inputs = inputs, .results = result, .definition = true});
}

}  // namespace

const Expression& definition(uint16_t function, Type type) {
  using Slot = std::atomic<const Expression*>;
  static std::vector<Slot>& known = *new std::vector<Slot>(functions().size() * kNumComputeTypes);
  TENON_CHECK(is_compute_type(type), Internal, "definition: no compute type");
  Slot& slot =
      known[static_cast<size_t>(function) * kNumComputeTypes + static_cast<size_t>(compute_index(type))];
  const Expression* e = slot.load(std::memory_order_acquire);
  if (e) return *e;
  ExpressionPtr fresh = define(functions()[function], type);
  if (slot.compare_exchange_strong(e, fresh.get(), std::memory_order_acq_rel)) e = fresh.release();
  return *e;  // for the life of the process; where another thread was first, that one's
}

}  // namespace tenon::expr
