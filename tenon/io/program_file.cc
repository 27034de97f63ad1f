#include "tenon/io/program_file.h"

#include <fmt/format.h>

#include <cstring>

#include "tenon/core/error.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/io/safetensors.h"

namespace tenon {
namespace {

constexpr const char* kProgram = "program";

std::string constant_name(size_t i) { return fmt::format("constant.{}", i); }

}  // namespace

void save_program(const Inference& program, const std::string& path) {
  const Inference::Parts parts = program.parts();
  StateDict state;
  Tensor bytes = empty({static_cast<int64_t>(parts.program.size())}, TensorOptions(kUInt8));
  std::memcpy(bytes.data_ptr(), parts.program.data(), parts.program.size());
  state.set(kProgram, std::move(bytes));
  for (size_t i = 0; i < parts.constants.size(); ++i)
    state.set(constant_name(i), parts.constants[i].detach());
  safetensors::save_file(state, path, {{"format", "tenon.program"}});
}

Inference load_program(const std::string& path) {
  const StateDict state = safetensors::load_file(path, {.mmap = true});
  const Tensor* const bytes = state.find(kProgram);
  TENON_CHECK(bytes && bytes->dtype() == kUInt8 && bytes->is_contiguous(), Value,
              fmt::format("load_program: {}: it is no program that save_program has written", path));
  Inference::Parts parts;
  parts.program.resize(static_cast<size_t>(bytes->numel()));
  std::memcpy(parts.program.data(), bytes->data_ptr(), parts.program.size());
  for (size_t i = 0; const Tensor* const constant = state.find(constant_name(i)); ++i)
    parts.constants.push_back(*constant);
  try {
    return Inference::from_parts(parts);
  } catch (Error& error) {
    error.append(fmt::format(" (in {})", path));
    throw;
  }
}

}  // namespace tenon
