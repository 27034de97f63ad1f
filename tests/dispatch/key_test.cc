#include "tenon/dispatch/key.h"

#include "tenon/core/stream.h"
#include "tests/core/immediate_runtime.h"
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

TEST(Key, RegistrationForAnUnknownBackendReservesAPlace) {
  const DispatchKey key = key_to_register("AutogradFancyChip");
  EXPECT_EQ(key.functionality, Functionality::Autograd);
  EXPECT_EQ(key_parse("FancyChip").backend, key.backend);
  EXPECT_EQ(find_backend("fancychip"), key.backend);
}

TEST(Key, AQuestionTakesNoPlace) {
  const int before = live_backends();
  for (const char* name : {"NoSuchChip", "AutogradNoSuchChip", "SparseNoSuchChip"}) {
    const Thrown t = thrown_by([&] { key_parse(name); });
    EXPECT_EQ(t.kind, ErrorKind::Value) << name;
    EXPECT_CONTAINS(t.text, name);
    EXPECT_FALSE(find_key(name)) << name;
  }
  EXPECT_EQ(live_backends(), before);
}

TEST(Key, MalformedNamesAreRefused) {
  for (const char* name : {"", "cpu", "C-P-U", "Autograd CPU", "1CPU", "Sparsegpu", "Autogradcpu"}) {
    EXPECT_EQ(thrown_by([&] { key_parse(name); }).kind, ErrorKind::Value) << name;
    EXPECT_EQ(thrown_by([&] { key_to_register(name); }).kind, ErrorKind::Value) << name;
  }
}

TEST(Key, ABackendsKeyDoesNotBeginAsThoseOfAnotherKind) {
  const int before = live_backends();
  for (const char* key : {"SparseGpu", "Sparsegpu", "AutogradGpu", "QuantizedX", "BlockedX", "Profiler",
                          "Python1", "CompositeChip", "CatchAll", "gpu", "", "G-P-U"}) {
    const Thrown t = thrown_by([&] { register_backend("keytest", key); });
    EXPECT_EQ(t.kind, ErrorKind::Value) << key;
    EXPECT_CONTAINS(t.text, "cannot be a key of 'keytest'");
  }
  const Thrown taken = thrown_by([] { register_backend("keytest", "CPU"); });
  EXPECT_EQ(taken.kind, ErrorKind::Device);
  EXPECT_EQ(taken.text, "register_backend: the key CPU that 'keytest' asks for is that of 'cpu'");
  EXPECT_EQ(live_backends(), before);
}

TEST(Device, ANameBelongsToTheFirstThatRegistersIt) {
  for (const char* name : {"cpu", "meta"}) {
    const Thrown t = thrown_by([&] { register_device(name, "Mine", "libmine.so"); });
    EXPECT_EQ(t.kind, ErrorKind::Device);
    EXPECT_EQ(t.text, std::string("register_device: '") + name +
                          "' is a device of Tenon itself already; libmine.so must choose another name");
  }
  const Backend owned = register_device("ownedchip", "OwnedChip", "libfirst.so");
  EXPECT_EQ(find_backend("ownedchip"), owned);
  const Thrown t = thrown_by([] { register_device("ownedchip", "OwnedChip", "libsecond.so"); });
  EXPECT_EQ(t.text,
            "register_device: 'ownedchip' is a device of libfirst.so already; libsecond.so must choose "
            "another name");
  EXPECT_EQ(register_backend("ownedchip", "OwnedChip"), owned);
}

TEST(Device, TakesThePlaceThatKernelsHaveReserved) {
  const Backend reserved = key_to_register("AutogradEarlyChip").backend;
  EXPECT_EQ(thrown_by([] { register_device("earlychip", "Early", "libearly.so"); }).kind, ErrorKind::Device);
  EXPECT_EQ(register_device("earlychip", "EarlyChip", "libearly.so"), reserved);
}

TEST(Device, OneOfOneIsTheSameWithAndWithoutItsIndex) {
  EXPECT_TRUE(same_device(kCPU, Device("cpu:0")));
  EXPECT_FALSE(same_device(kCPU, kMeta));
  const Backend many = register_device("manychip", "ManyChip", "the test");
  static testing::ImmediateRuntime runtime(3);
  set_device_runtime(many, &runtime);
  const DeviceGuard guard(Device(many, 2));
  EXPECT_TRUE(same_device(Device(many), Device(many, 2)));
  EXPECT_FALSE(same_device(Device(many), Device(many, 0)));
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
