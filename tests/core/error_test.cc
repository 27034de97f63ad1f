#include "tenon/core/error.h"

#include <gtest/gtest.h>

#include <exception>

namespace tenon {
namespace {

TEST(Error, HasAKindAnOperatorAndAMessage) {
  const Error e(ErrorKind::Shape, "add_: sizes [2] and [3]: they differ");
  EXPECT_EQ(e.kind(), ErrorKind::Shape);
  EXPECT_EQ(e.operator_name(), "add_");
  EXPECT_EQ(e.message(), "sizes [2] and [3]: they differ");
  EXPECT_STREQ(e.what(), "add_: sizes [2] and [3]: they differ");
}

TEST(Error, ATextWithoutANameIsAllMessage) {
  for (const char* text : {"no", "", "Could not run: it failed", "a b: c", "aten::add: x", "add:x", "add"}) {
    Error e(ErrorKind::Value, text);
    EXPECT_EQ(e.operator_name(), "");
    EXPECT_EQ(e.message(), text);
    e.set_operator("sum");
    EXPECT_STREQ(e.what(), text);
  }
}

TEST(Error, TheOperatorIsTheOneThatWasCalled) {
  Error e(ErrorKind::Value, "empty: negative size");
  e.set_operator("zeros");
  EXPECT_EQ(e.operator_name(), "zeros");
  EXPECT_EQ(e.message(), "negative size");
  EXPECT_STREQ(e.what(), "zeros: negative size");
  e.set_operator("zeros_like");
  EXPECT_STREQ(e.what(), "zeros_like: negative size");
  EXPECT_EQ(e.kind(), ErrorKind::Value);
}

TEST(Error, APlaceForTheOperatorIsFilledIn) {
  Error e(ErrorKind::Index, std::string(kThisCall) + ": no elements");
  EXPECT_EQ(e.operator_name(), "");
  EXPECT_STREQ(e.what(), "no elements");
  EXPECT_EQ(e.message(), "no elements");
  e.set_operator("amin");
  EXPECT_STREQ(e.what(), "amin: no elements");
  EXPECT_EQ(e.message(), "no elements");
}

struct Derived : Error {
  using Error::Error;
};

TEST(Error, WhatACallerDerivedKeepsItsText) {
  Derived e(ErrorKind::Value, "mine: text");
  e.set_operator("sum");
  EXPECT_STREQ(e.what(), "mine: text");
  EXPECT_EQ(e.operator_name(), "mine");
}

TEST(Error, CopiesAndRethrownOnesKeepIt) {
  std::exception_ptr kept;
  try {
    try {
      throw_error(ErrorKind::Type, "empty: no");
    } catch (Error& e) {
      e.set_operator("ones");
      throw;
    }
  } catch (...) {
    kept = std::current_exception();
  }
  try {
    std::rethrow_exception(kept);
  } catch (const Error& e) {
    const Error copy = e;
    EXPECT_STREQ(copy.what(), "ones: no");
    EXPECT_EQ(copy.operator_name(), "ones");
    EXPECT_EQ(copy.kind(), ErrorKind::Type);
  }
}

}  // namespace
}  // namespace tenon
