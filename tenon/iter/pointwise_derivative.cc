// Derivatives of pointwise operators as pointwise operators, and operators that are known only at run time.
#include <fmt/core.h>

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/expr/complex.h"
#include "tenon/iter/pointwise_state.h"

namespace tenon {

namespace detail {
const PointwiseDerivative kNoDerivative{nullptr, {}, {}};
}

namespace {

// A PointwiseInfo with everything that it points to.
struct OwnedInfo {
  explicit OwnedInfo(std::string op, std::string expression, std::vector<std::string> tensors,
                     std::vector<std::string> scalars)
      : name(std::move(op)), text(std::move(expression)), strings(std::move(tensors)) {
    const size_t num_tensors = strings.size();
    strings.insert(strings.end(), scalars.begin(), scalars.end());
    for (const std::string& s : strings) pointers.push_back(s.c_str());
    info.name = name.c_str();
    info.text = text.c_str();
    info.tensor_names = std::span(pointers).first(num_tensors);
    info.scalar_names = std::span(pointers).subspan(num_tensors);
  }

  std::string name, text;
  std::vector<std::string> strings;
  std::vector<const char*> pointers;
  expr::ExpressionPtr written;
  PointwiseInfo info{};
};

struct OwnedDerivative {
  std::unique_ptr<OwnedInfo> owned;
  std::vector<int8_t> tensors, scalars;
  PointwiseDerivative derivative{};
};

// `wanted`, or the first of wanted_1, wanted_2, ... that no operand has: derivatives of derivatives have a
// `grad` of their own among their operands.
std::string free_name(const PointwiseInfo& info, const std::string& wanted) {
  const auto taken = [&](const std::string& s) {
    const auto is_s = [&](const char* name) { return s == name; };
    return std::any_of(info.tensor_names.begin(), info.tensor_names.end(), is_s) ||
           std::any_of(info.scalar_names.begin(), info.scalar_names.end(), is_s);
  };
  std::string name = wanted;
  for (int i = 1; taken(name); ++i) name = fmt::format("{}_{}", wanted, i);
  return name;
}

std::unique_ptr<OwnedDerivative> make_derivative(const PointwiseInfo& info, int operand) {
  if (info.result == ResultRule::Bool || ((info.mask_tensors >> operand) & 1u)) return nullptr;
  expr::Builder g;
  const detail::ParsedPointwise parsed = detail::parse_pointwise(g, info);
  const std::string grad_name = free_name(info, "grad"), result_name = free_name(info, "result");
  const expr::NodeId grad = g.symbol(grad_name), result = g.symbol(result_name);
  expr::NodeId d = expr::derivative(g, parsed.root, parsed.tensors[static_cast<size_t>(operand)],
                                    {.grad = grad, .result = result});
  if (d == expr::kNoNode) return nullptr;
  d = expr::simplify(g, d);

  auto made = std::make_unique<OwnedDerivative>();
  std::vector<std::string> tensors{grad_name}, scalars;
  made->tensors.push_back(PointwiseDerivative::kGrad);
  uint32_t masks = 0;
  for (size_t i = 0; i < parsed.tensors.size(); ++i) {
    if (!expr::uses(g, d, parsed.tensors[i])) continue;
    if ((info.mask_tensors >> i) & 1u) masks |= 1u << tensors.size();
    tensors.push_back(info.tensor_names[i]);
    made->tensors.push_back(static_cast<int8_t>(i));
  }
  if (expr::uses(g, d, result)) {
    tensors.push_back(result_name);
    made->tensors.push_back(PointwiseDerivative::kResult);
  }
  for (size_t i = 0; i < parsed.scalars.size(); ++i) {
    if (!expr::uses(g, d, parsed.scalars[i])) continue;
    scalars.push_back(info.scalar_names[i]);
    made->scalars.push_back(static_cast<int8_t>(i));
  }
  TENON_CHECK(tensors.size() <= PointwiseInfo::kMaxTensors, NotImplemented,
              fmt::format("{}: its derivative by `{}` has {} operands, more than {}", info.name,
                          info.tensor_names[static_cast<size_t>(operand)], tensors.size(),
                          PointwiseInfo::kMaxTensors));
  made->owned = std::make_unique<OwnedInfo>(
      fmt::format("{}_backward_{}", info.name, info.tensor_names[static_cast<size_t>(operand)]),
      expr::to_string(g, d), std::move(tensors), std::move(scalars));
  made->owned->info.mask_tensors = masks;
  detail::set_what_it_asks(made->owned->info, *g.finish({d}));
  // u = K(T(K_i(x_i)...)), each K the identity or conj. By x_i that is conj(grad) * du/dconj(x_i) or
  // grad * conj(du/dx_i), whichever is not zero.
  const auto conjugated = [&](int8_t from) {
    if (from == PointwiseDerivative::kResult)
      return (info.conjugates & PointwiseInfo::kConjugatedResult) != 0;
    if (from == PointwiseDerivative::kGrad) return (info.conjugates & PointwiseInfo::kConjugatedResult) == 0;
    return ((info.conjugates >> from) & 1u) != 0;
  };
  uint32_t& conjugates = made->owned->info.conjugates;
  for (size_t i = 0; i < made->tensors.size(); ++i) conjugates |= conjugated(made->tensors[i]) ? 1u << i : 0u;
  if (!conjugated(static_cast<int8_t>(operand))) conjugates |= PointwiseInfo::kConjugatedResult;
  made->derivative = {&made->owned->info, made->tensors, made->scalars, expr::factor_of(g, d, grad)};
  return made;
}

// What make_pointwise has made, by everything that it was made from.
struct Cache {
  std::mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<OwnedInfo>> entries;
};
Cache& cache() {
  static Cache& c = *new Cache;
  return c;
}

}  // namespace

const PointwiseDerivative* derivative_of(const PointwiseInfo& info, int operand) {
  const auto i = static_cast<size_t>(operand);
  TENON_CHECK(operand >= 0 && i < info.tensor_names.size(), Index,
              fmt::format("derivative_of: {} has no tensor operand {}", info.name, operand));
  if (i < info.derivatives.size() && info.derivatives[i]) return info.derivatives[i];
  auto& slot = detail::state_of(info).derivatives[i];
  const PointwiseDerivative* known = slot.load(std::memory_order_acquire);
  if (!known) {
    auto made = make_derivative(info, operand);
    const PointwiseDerivative* fresh = made ? &made->derivative : &detail::kNoDerivative;
    // Another thread may have been first; then this one's is dropped.
    if (slot.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) {
      known = fresh;
      static_cast<void>(made.release());  // lives as long as the process
    }
  }
  return known == &detail::kNoDerivative ? nullptr : known;
}

const PointwiseInfo& make_pointwise(std::string_view text, std::span<const std::string_view> tensors,
                                    std::span<const std::string_view> scalars, ComputeRule compute,
                                    ResultRule result) {
  std::string key(text);
  std::vector<std::string> tensor_names, scalar_names;
  for (const std::string_view t : tensors) {
    key.append(1, '\0').append("t").append(t);
    tensor_names.emplace_back(t);
  }
  for (const std::string_view s : scalars) {
    key.append(1, '\0').append("s").append(s);
    scalar_names.emplace_back(s);
  }
  key.append(1, '\0').append(
      1, static_cast<char>('0' + static_cast<int>(compute) * 3 + static_cast<int>(result)));

  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  const auto found = c.entries.find(key);
  if (found != c.entries.end()) return found->second->info;

  TENON_CHECK(
      !tensors.empty() && tensors.size() <= PointwiseInfo::kMaxTensors, Value,
      fmt::format("pointwise: expected 1 to {} tensors, got {}", PointwiseInfo::kMaxTensors, tensors.size()));
  TENON_CHECK(scalars.size() <= PointwiseInfo::kMaxScalars, Value,
              fmt::format("pointwise: expected at most {} numbers, got {}", PointwiseInfo::kMaxScalars,
                          scalars.size()));
  auto owned = std::make_unique<OwnedInfo>("pointwise", std::string(text), std::move(tensor_names),
                                           std::move(scalar_names));
  owned->info.compute = compute;
  owned->info.result = result;
  owned->info.promoting_scalars = (1u << scalars.size()) - 1;
  // Text that does not parse is the caller's error now, not at the first call.
  expr::Builder g;
  const expr::NodeId root = detail::parse_pointwise(g, owned->info).root;
  owned->info.holomorphic = expr::is_holomorphic(g, root);
  owned->written = g.finish({root});
  owned->info.written = owned->written.get();
  detail::set_what_it_asks(owned->info, *owned->written);
  return c.entries.emplace(std::move(key), std::move(owned)).first->second->info;
}

}  // namespace tenon
