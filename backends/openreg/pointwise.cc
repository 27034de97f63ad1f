#include "pointwise.h"

#include "backend.h"
#include "tenon/abi/program.h"

namespace openreg {
namespace {

namespace abi = tenon::abi;

/// Whether the device computes in every dtype of a launch, and in what the program computes in.
bool computes_all(const Backend& backend, const TenonLaunch& launch) {
  if (backend.missing.empty()) return true;
  const TenonProgram& p = *launch.program;
  if (!backend.computes(TENON_DTYPE_FLOAT64) && (p.types_used >> TENON_TYPE_F64 & 1u) != 0) return false;
  for (uint32_t k = 0; k < p.num_outputs + p.num_inputs; ++k) {
    if (!backend.computes(launch.operands[k].dtype)) return false;
  }
  return true;
}

}  // namespace

/// By the definition of the operations themselves, so that every pointwise operator runs on the device.
TenonStatus* pointwise(void* self, const TenonLaunch* launch) {
  return abi::guarded([&] {
    Backend& backend = *static_cast<Backend*>(self);
    if (!abi::evaluates(*launch->program) || !computes_all(backend, *launch)) throw abi::Declined();
    backend.launches.fetch_add(1, std::memory_order_relaxed);
    const Memory& memory = backend.memory(launch->stream.device.index);
    backend.queues.give(key_of(launch->stream), [kept = abi::KeptLaunch(*launch), &memory] {
      abi::run(*kept, [&](const TenonOperand& operand) -> void* {
        return operand.place == TENON_PLACE_HOST ? reinterpret_cast<void*>(operand.address)
                                                 : memory.seen_by_device(operand.address);
      });
    });
  });
}

uint64_t known_operations() noexcept { return abi::kKnownOps; }

}  // namespace openreg
