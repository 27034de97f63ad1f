#include <vector>

#include "tenon/expr/function_rows.h"

namespace tenon::expr {

std::string_view Function::body_for(Type t) const noexcept {
  const std::string_view own = t == Type::F32 ? body_f32 : t == Type::F64 ? body_f64 : body_int;
  if (!own.empty()) return own;
  return is_floating(t) && !body_float.empty() ? body_float : body;
}

std::span<const Function> functions() noexcept {
  static const auto& all = *new const std::vector<Function>([] {
    std::vector<Function> rows;
    for (const auto family :
         {basic_functions(), exponential_functions(), logarithm_functions(), power_functions(),
          trigonometric_functions(), special_functions(), probability_functions(), gamma_functions(),
          bessel_functions(), hankel_functions()}) {
      rows.insert(rows.end(), family.begin(), family.end());
    }
    return rows;
  }());
  return all;
}

uint16_t find_function(std::string_view name) noexcept {
  const auto all = functions();
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == name) return static_cast<uint16_t>(i);
  }
  return kNoFunction;
}

}  // namespace tenon::expr
