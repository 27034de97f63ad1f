#include <algorithm>
#include <numeric>
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

namespace {

std::string_view name_of(uint16_t number) noexcept { return functions()[number].name; }

}  // namespace

uint16_t find_function(std::string_view name) noexcept {
  static const auto& by_name = *new const std::vector<uint16_t>([] {
    std::vector<uint16_t> numbers(functions().size());
    std::iota(numbers.begin(), numbers.end(), uint16_t{0});
    std::ranges::sort(numbers, {}, name_of);
    return numbers;
  }());
  const auto found = std::ranges::lower_bound(by_name, name, {}, name_of);
  return found != by_name.end() && name_of(*found) == name ? *found : kNoFunction;
}

}  // namespace tenon::expr
