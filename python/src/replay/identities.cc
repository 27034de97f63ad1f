#include "python/src/replay/identities.h"

#include <algorithm>
#include <functional>

namespace tenon::python::replay {
namespace {

size_t first_of(std::span<PyObject* const> given, size_t i) noexcept {
  return static_cast<size_t>(std::ranges::find(given, given[i]) - given.begin());
}

}  // namespace

Identities::Identities(std::span<PyObject* const> given, PyObject* captured) {
  if (given.empty()) return;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(captured); ++i)
    captured_.push_back(Ref::borrow(PyList_GET_ITEM(captured, i)));
  std::ranges::sort(captured_, std::less<PyObject*>(), &Ref::get);
  for (size_t i = 0; i < given.size(); ++i)
    given_.push_back({.same_as = first_of(given, i), .captured = find(given[i])});
}

bool Identities::hold(std::span<PyObject* const> given) const noexcept {
  for (size_t i = 0; i < given.size(); ++i) {
    if (first_of(given, i) != given_[i].same_as || find(given[i]) != given_[i].captured) return false;
  }
  return true;
}

PyObject* Identities::find(PyObject* o) const noexcept {
  return std::ranges::binary_search(captured_, o, std::less<PyObject*>(), &Ref::get) ? o : nullptr;
}

int Identities::traverse(visitproc visit, void* arg) const {
  for (const Ref& o : captured_) Py_VISIT(o.get());
  return 0;
}

}  // namespace tenon::python::replay
