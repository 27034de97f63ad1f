#include "tenon/dispatch/key.h"

#include "tests/dispatch/testing.h"

namespace tenon {
namespace {

TEST(Key, NamesParseBackToThemselves) {
  for (const char* name : {"CPU", "Meta", "AutogradCPU", "AutogradMeta", "SparseCPU", "SparseCsrMeta",
                           "QuantizedCPU", "BlockedCPU", "BackendSelect", "Python", "Record", "Autocast",
                           "Profiler", "Autograd", "CompositeImplicit", "CompositeExplicit"}) {
    EXPECT_EQ(key_name(key_parse(name)), name);
  }
  EXPECT_EQ(key_parse("CompositeImplicitAutograd"), kCompositeImplicit);
  EXPECT_EQ(key_parse("CatchAll"), kCompositeImplicit);
  EXPECT_EQ(key_parse("CompositeExplicitAutograd"), kCompositeExplicit);
}

TEST(Key, UnknownBackendReservesAPlace) {
  const DispatchKey key = key_parse("AutogradFancyChip");
  EXPECT_EQ(key.functionality, Functionality::Autograd);
  EXPECT_EQ(key_parse("FancyChip").backend, key.backend);
  EXPECT_EQ(find_backend("fancychip"), key.backend);
}

TEST(Key, MalformedNamesAreRefused) {
  for (const char* name : {"", "cpu", "C-P-U", "Autograd CPU", "1CPU"}) {
    EXPECT_EQ(thrown_by([&] { key_parse(name); }).kind, ErrorKind::Value) << name;
  }
}

TEST(Key, AliasesIncludeWhatTheyStandFor) {
  EXPECT_TRUE(is_alias_key(kCompositeImplicit));
  EXPECT_TRUE(is_alias_key(kAutogradAlias));
  EXPECT_FALSE(is_alias_key(key_parse("AutogradCPU")));
  EXPECT_TRUE(is_included_in_alias(key_parse("AutogradCPU"), kAutogradAlias));
  EXPECT_FALSE(is_included_in_alias(key_parse("CPU"), kAutogradAlias));
  EXPECT_TRUE(is_included_in_alias(key_parse("CPU"), kCompositeExplicit));
  EXPECT_FALSE(is_included_in_alias(key_parse("AutogradCPU"), kCompositeExplicit));
  EXPECT_TRUE(is_included_in_alias(key_parse("AutogradCPU"), kCompositeImplicit));
  EXPECT_FALSE(is_included_in_alias(key_parse("Profiler"), kCompositeImplicit));
}

TEST(Key, DeviceHasItsDenseKey) {
  EXPECT_EQ(key_for_device("cpu"), key_parse("CPU"));
  EXPECT_EQ(key_for_device("meta"), key_parse("Meta"));
  EXPECT_THROW(key_for_device("nowhere"), Error);
}

TEST(KeySet, PrintsInRisingPriority) {
  EXPECT_EQ(to_string(tracked().key_set()), "DispatchKeySet(CPU, AutogradCPU)");
  EXPECT_EQ(to_string(DispatchKeySet()), "DispatchKeySet()");
  EXPECT_EQ(to_string(DispatchKeySet(Functionality::Profiler) | DispatchKeySet(Functionality::BackendSelect)),
            "DispatchKeySet(BackendSelect, Profiler)");
}

TEST(KeySet, HighestFunctionalityAndBackendWin) {
  const DispatchKeySet set =
      DispatchKeySet(Functionality::Sparse, 3) | DispatchKeySet(Functionality::Autograd, kCpuBackend);
  EXPECT_EQ(set.backend(), 3);
  EXPECT_EQ(set.functionality(), Functionality::Autograd);
  EXPECT_EQ(set.below(Functionality::Autograd).functionality(), Functionality::Sparse);
  EXPECT_EQ(set.below(Functionality::Autograd).backend(), 3);
  EXPECT_EQ(DispatchKeySet().functionality(), Functionality::Dense);
  EXPECT_EQ(DispatchKeySet().backend(), kCpuBackend);
  EXPECT_FALSE((set - kAutogradKeys).has(Functionality::Autograd));
}

}  // namespace
}  // namespace tenon
