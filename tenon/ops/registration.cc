#include "tenon/ops/registration.h"

namespace tenon::detail {

bool stubs_serve(const void* data, Backend backend) noexcept {
  if (backend == kMetaBackend) return true;
  const auto* stub = static_cast<const StubBase* const*>(data);
  while (*stub && (*stub)->has(backend)) ++stub;
  return *stub == nullptr;
}

}  // namespace tenon::detail
