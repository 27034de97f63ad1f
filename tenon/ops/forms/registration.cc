#include "tenon/ops/forms/registration.h"

#include <fmt/core.h>

namespace tenon::detail {

bool stubs_serve(const void* data, Backend backend) noexcept {
  if (backend == kMetaBackend) return true;
  const auto* stub = static_cast<const StubBase* const*>(data);
  while (*stub && (*stub)->has(backend)) ++stub;
  return *stub == nullptr;
}

void AliasCheck::check_one(char alias, const Tensor& result) const {
  if (!result.defined()) return;
  bool shared = false, claimed = false;
  for (const Argument& a : arguments_) {
    if (a.tensor->storage() != result.storage()) continue;
    shared = true;
    claimed |= a.position == static_cast<size_t>(alias - 'a');
  }
  TENON_CHECK(
      alias == '-' || claimed, Internal,
      fmt::format("{}: by its schema the result is an alias of argument {}, but it shares no storage with it",
                  body_.name, alias - 'a'));
  TENON_CHECK(alias != '-' || !shared, Internal,
              fmt::format("{}: by its schema the result is new, but it shares the storage of an argument",
                          body_.name));
}

}  // namespace tenon::detail
