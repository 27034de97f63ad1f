// dynamic_cast for objects whose class may come from a program without type information.
// Used where a node of the graph is asked whether it is one of this module's.
#pragma once

namespace tenon::python {

/// `object` as a To, or null if it is none. A class that was compiled with -fno-rtti has a null pointer where
/// the type information is (Itanium C++ ABI, 2.5.2), which dynamic_cast would follow.
template <class To, class From>
const To* as(const From& object) noexcept {
  const void* const* table = *reinterpret_cast<const void* const* const*>(&object);
  return table[-1] == nullptr ? nullptr : dynamic_cast<const To*>(&object);
}

}  // namespace tenon::python
