#include "tenon/schema/tags.h"

#include <gtest/gtest.h>

#include "tenon/core/error.h"
#include "tenon/schema/schema.h"

namespace tenon {
namespace {

TEST(Tags, ASetHasWhatItWasGiven) {
  const Tags tags{Tag::pointwise, Tag::core};
  EXPECT_TRUE(tags.has(Tag::core) && tags.has(Tag::pointwise) && !tags.has(Tag::out) && !tags.empty());
  EXPECT_TRUE(Tags().empty());
  EXPECT_EQ(tags, (Tags{Tag::core, Tag::pointwise}));
}

TEST(Tags, EveryNameIsRead) {
  for (uint32_t i = 0; i < kNumTags; ++i) EXPECT_EQ(parse_tag(kTagNames[i]), static_cast<Tag>(i));
  EXPECT_EQ(name(Tag::nondeterministic_seeded), "nondeterministic_seeded");
}

std::string error_of(Tags tags, const char* schema) {
  try {
    check_tags(tags, schema::parse_schema(schema));
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Value);
    return e.what();
  }
}

TEST(Tags, ThoseThatContradictTheSchemaAreRefused) {
  EXPECT_EQ(error_of({Tag::pointwise, Tag::core}, "a::f(Tensor x) -> Tensor"), "");
  EXPECT_EQ(error_of({Tag::inplace}, "a::f_(Tensor(a!) x) -> Tensor(a!)"), "");
  EXPECT_EQ(error_of({Tag::out}, "a::f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)"), "");
  EXPECT_EQ(error_of({Tag::inplace}, "a::f(Tensor x) -> Tensor"),
            "a::f: the tag 'inplace' is for an operator that writes its first argument, and its schema is "
            "a::f(Tensor x) -> Tensor");
  EXPECT_NE(error_of({Tag::view_copy}, "a::f(Tensor(a) x) -> Tensor(a)"), "");
}

}  // namespace
}  // namespace tenon
