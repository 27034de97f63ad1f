#include "backend.h"

namespace openreg {
namespace {

namespace abi = tenon::abi;

Mode mode_of(const std::string& name) {
  if (name == "thread") return Mode::Thread;
  if (name == "sync") return Mode::Sync;
  if (name == "lazy") return Mode::Lazy;
  if (name == "random") return Mode::Random;
  throw abi::Error(TENON_ERROR_VALUE, "option mode=" + name + ": expected thread, sync, lazy or random");
}

/// "float64,complex64": dtypes, separated by commas.
std::vector<TenonDType> dtypes_of(const std::string& text) {
  static const std::pair<const char*, TenonDType> kNames[] = {
      {"bool", TENON_DTYPE_BOOL},       {"uint8", TENON_DTYPE_UINT8},       {"int8", TENON_DTYPE_INT8},
      {"int16", TENON_DTYPE_INT16},     {"int32", TENON_DTYPE_INT32},       {"int64", TENON_DTYPE_INT64},
      {"float16", TENON_DTYPE_FLOAT16}, {"bfloat16", TENON_DTYPE_BFLOAT16}, {"float32", TENON_DTYPE_FLOAT32},
      {"float64", TENON_DTYPE_FLOAT64}};
  std::vector<TenonDType> dtypes;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string name = text.substr(at, end - at);
    const auto found = std::find_if(std::begin(kNames), std::end(kNames),
                                    [&](const auto& known) { return name == known.first; });
    if (found == std::end(kNames))
      throw abi::Error(TENON_ERROR_VALUE,
                       "option missing: there is no dtype '" + name + "' that could be missing");
    dtypes.push_back(found->second);
    at = end + 1;
  }
  return dtypes;
}

}  // namespace

Backend::Backend(abi::Options options)
    : queues(mode_of(options.text("mode", "thread")), options.number("seed", 0)) {
  const uint64_t devices = options.number("devices", 2), limit = options.number("memory", uint64_t{1} << 30);
  failures.plan(Failures::How::Status, "fail", options.text("fail", ""));
  failures.plan(Failures::How::Exception, "throw", options.text("throw", ""));
  failures.plan(Failures::How::Int, "throw_int", options.text("throw_int", ""));
  missing = dtypes_of(options.text("missing", ""));
  const std::string kernels = options.text("kernels", "some");
  options.finish();
  if (kernels != "some" && kernels != "network")
    throw abi::Error(TENON_ERROR_VALUE, "option kernels=" + kernels + ": expected some or network");
  network = kernels == "network";
  if (devices < 1 || devices > 16) throw abi::Error(TENON_ERROR_VALUE, "option devices: expected 1 to 16");
  if (limit < Memory::kGranularity)
    throw abi::Error(TENON_ERROR_VALUE, "option memory: expected 4096 bytes or more");
  for (uint64_t i = 0; i < devices; ++i) memories.push_back(std::make_unique<Memory>(limit));
}

}  // namespace openreg
