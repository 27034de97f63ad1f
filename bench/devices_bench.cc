// What calls on devices cost the host: native pointwise calls and operators on host copies, beside the CPU's.
// Of openreg, whose tasks run before a call returns (mode sync), and of opencl, which queues them: time is
// that of the calling thread. Run pinned: taskset -c 3 build/release/bench/devices_bench
#include <benchmark/benchmark.h>

#include <filesystem>

#include "tenon/plugin/load.h"
#include "tenon/tenon.h"

namespace tenon {
namespace {

/// More calls are not queued before the queue is emptied.
constexpr int kQueued = 256;

void measure(benchmark::State& state, Device device, auto&& call) {
  const Tensor x = ones({4}, TensorOptions().device(device)), y = ones({4}, TensorOptions().device(device));
  const auto finish = [device] {
    if (!device.is_cpu()) synchronize_device(device);
  };
  call(x, y);
  finish();
  int queued = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(call(x, y));
    if (++queued == kQueued) {
      finish();
      queued = 0;
    }
  }
  finish();
}

void add_rows(const std::string& name, Device device) {
  const auto row = [&](const std::string& what, auto call) {
    benchmark::RegisterBenchmark((what + ", " + name).c_str(),
                                 [device, call](benchmark::State& state) { measure(state, device, call); });
  };
  row("add", [](const Tensor& x, const Tensor& y) { return add(x, y); });
  row("add of a number", [](const Tensor& x, const Tensor&) { return add(x, 1.5); });
  row("add, strided", [](const Tensor& x, const Tensor& y) { return add(x.flip(0), y); });
  row("silu", [](const Tensor& x, const Tensor&) { return silu(x); });
  row("cumsum", [](const Tensor& x, const Tensor&) { return cumsum(x, 0); });
  row("matmul", [](const Tensor& x, const Tensor& y) { return dot(x, y); });
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  tenon::add_rows("cpu", tenon::kCPU);
  const std::string openreg = TENON_BACKENDS "/openreg/openreg.so",
                    opencl = TENON_BACKENDS "/opencl/opencl.so";
  if (std::filesystem::exists(openreg))
    tenon::add_rows("openreg", tenon::load_device(openreg, "", {{"mode", "sync"}}));
  if (std::filesystem::exists(opencl)) tenon::add_rows("opencl", tenon::load_device(opencl));
  benchmark::RunSpecifiedBenchmarks();
}
