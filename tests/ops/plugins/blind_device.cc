// "blind" and "deaf": devices that the host cannot look into, for Python: byte copies, and everything else by
// their fallback.
#include "tests/ops/blind_device.h"

#include "tenon/ops/fallback/cpu_fallback.h"

namespace {

using namespace tenon;

[[maybe_unused]] const bool registered = [] {
  set_cpu_fallback(testing::BlindDevice::make("blind", "Blind").backend(), {FallbackPolicy::Kind::All});
  set_cpu_fallback(testing::BlindDevice::make("deaf", "Deaf").backend(), {FallbackPolicy::Kind::All});
  return true;
}();

}  // namespace
