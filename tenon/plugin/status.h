// Statuses: errors on their way across the border to plug-ins, and back. Used by this room alone.
#pragma once

#include <new>
#include <string>
#include <utility>

#include "tenon/abi/tenon_abi.h"
#include "tenon/core/error.h"

struct TenonStatus {
  tenon::ErrorKind kind;
  std::string message;
};

namespace tenon::plugin {

static_assert(static_cast<int>(ErrorKind::Internal) == TENON_ERROR_INTERNAL);
static_assert(static_cast<int>(ErrorKind::OutOfMemory) == TENON_ERROR_OUT_OF_MEMORY);

/// Takes a status over and throws it as an Error whose text begins with `what`.
[[noreturn]] void raise(TenonStatus* status, const std::string& what);

/// What the exception says that is being handled, for a message of ours.
std::string text_of_current_exception();

/// Runs `f` as the body of a function that plug-ins call: what it throws becomes a status.
template <class F>
TenonStatus* as_status(F&& f) noexcept {
  try {
    std::forward<F>(f)();
    return nullptr;
  } catch (const Error& e) {
    return new TenonStatus{e.kind(), e.what()};
  } catch (const std::bad_alloc& e) {
    return new TenonStatus{ErrorKind::OutOfMemory, e.what()};
  } catch (const std::exception& e) {
    return new TenonStatus{ErrorKind::Runtime, e.what()};
  } catch (...) {
    return new TenonStatus{ErrorKind::Internal, "an exception of unknown type"};
  }
}

}  // namespace tenon::plugin
