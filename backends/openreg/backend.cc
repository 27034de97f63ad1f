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

}  // namespace

Backend::Backend(abi::Options options)
    : queues(mode_of(options.text("mode", "thread")), options.number("seed", 0)) {
  const uint64_t devices = options.number("devices", 2), limit = options.number("memory", uint64_t{1} << 30);
  failures.plan(Failures::How::Status, "fail", options.text("fail", ""));
  failures.plan(Failures::How::Exception, "throw", options.text("throw", ""));
  failures.plan(Failures::How::Int, "throw_int", options.text("throw_int", ""));
  options.finish();
  if (devices < 1 || devices > 16) throw abi::Error(TENON_ERROR_VALUE, "option devices: expected 1 to 16");
  if (limit < Memory::kGranularity)
    throw abi::Error(TENON_ERROR_VALUE, "option memory: expected 4096 bytes or more");
  for (uint64_t i = 0; i < devices; ++i) memories.push_back(std::make_unique<Memory>(limit));
}

}  // namespace openreg
