// The nanoseconds of a step of a program that decodes, for compare.py --models:
//   run_program FILE STEPS
// The program takes a token, a position and caches, and returns logits and the caches that the next step
// gets.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "tenon/core/parallel.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/io/program_file.h"

namespace {

using tenon::Address;
using tenon::Tensor;

Address address_of(const Tensor& t) { return reinterpret_cast<Address>(t.data_ptr()); }

double nanoseconds_of_a_step(const tenon::Inference& run, int64_t steps) {
  Tensor token = tenon::full({1}, 7, tenon::kInt64), position = tenon::zeros({1}, tenon::kInt64);
  std::vector<Tensor> made;
  std::vector<Address> from{address_of(token), address_of(position)}, to;
  const auto add = [&](const tenon::Inference::Port& port, std::vector<Address>& list) {
    made.push_back(tenon::zeros(port.sizes, tenon::TensorOptions(port.dtype)));
    list.push_back(address_of(made.back()));
  };
  for (size_t i = 2; i < run.inputs().size(); ++i) add(run.inputs()[i], from);
  for (const auto& port : run.outputs()) add(port, to);
  auto* const place = static_cast<int64_t*>(position.data_ptr());
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < steps; ++i) {
    *place = i;
    run.execute(from, to);
    for (size_t c = 1; c < to.size(); ++c) std::swap(from[c + 1], to[c]);
  }
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / static_cast<double>(steps);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    tenon::set_num_threads(1);
    const tenon::Inference run = tenon::load_program(argv[1]);
    const int64_t steps = std::atoll(argv[2]);
    double best = nanoseconds_of_a_step(run, steps);
    for (int i = 0; i < 10; ++i) best = std::min(best, nanoseconds_of_a_step(run, steps));
    std::printf("%f\n", best);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
