// What the tests of this room share: tensors to call with, and the text of what was thrown.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>

#include "tenon/dispatch/library.h"

// Where the build puts tests/dispatch/plugins.
#ifndef TENON_TEST_PLUGINS
#define TENON_TEST_PLUGINS ""
#endif

namespace tenon {

inline std::string plugin(const char* name) { return fmt::format("{}/{}.so", TENON_TEST_PLUGINS, name); }

inline Tensor one(float value = 1.0f) {
  Tensor t = make_empty({1}, kFloat32);
  *t.data_ptr<float>() = value;
  return t;
}
inline Tensor same(const Tensor& a) { return a; }
inline float value_of(const Tensor& t) { return *t.data_ptr<float>(); }

/// A tensor that takes part in autograd as far as dispatch can see.
inline Tensor tracked(float value = 1.0f) {
  Tensor t = one(value);
  t.impl()->set_keys(t.impl()->own_keys() | kAutogradKeys);
  return t;
}

struct Thrown {
  ErrorKind kind = ErrorKind::Internal;
  std::string text;
};

template <class F>
Thrown thrown_by(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return {e.kind(), e.what()};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

#define EXPECT_CONTAINS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << (text)

inline Library declare(const char* ns) {
  return Library(Library::Kind::Fragment, ns, "", SourceLocation::here());
}
inline Library implement(const char* ns, const char* key) {
  return Library(Library::Kind::Impl, ns, key, SourceLocation::here());
}
inline OperatorHandle find(const char* name, const char* overload = "") {
  return Dispatcher::singleton().find_schema_or_throw(name, overload);
}

}  // namespace tenon
