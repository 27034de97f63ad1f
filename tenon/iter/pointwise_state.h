// PointwiseState: caches what one pointwise operator has computed: typed expressions, kernels, derivatives.
// Internal to tenon/iter. Made at the operator's first call and never freed; every member is read without a
// lock.
#pragma once

#include <atomic>
#include <iterator>

#include "tenon/expr/instantiate.h"
#include "tenon/expr/program.h"
#include "tenon/iter/device_slots.h"
#include "tenon/iter/host.h"
#include "tenon/iter/pointwise.h"

namespace tenon {
class TensorIterator;
}

namespace tenon::detail {

/// The properties of a call that decide which typed expression runs, packed: the compute type, the dtypes of
/// the operands and of the computed result, which numbers are complex. Calls with equal bindings run the same
/// instance.
struct Binding {
  expr::Type type;
  DType inputs[PointwiseInfo::kMaxTensors];
  DType computed;
  uint32_t complex_numbers = 0;

  uint64_t packed(size_t num_inputs) const noexcept {
    uint64_t bits = static_cast<uint64_t>(compute_index(type)) | static_cast<uint64_t>(computed) << 2;
    for (size_t i = 0; i < num_inputs; ++i) bits |= static_cast<uint64_t>(inputs[i]) << (8 + 6 * i);
    return bits | static_cast<uint64_t>(complex_numbers) << 56;
  }
};
static_assert(kNumDTypes <= 64 && PointwiseInfo::kMaxTensors <= 8 && PointwiseInfo::kMaxScalars <= 8);

/// The typed expression for calls of one binding, and the host's kernel for it. Its slots are dense and have
/// the compute type. Kept in a list that only grows.
struct Instance {
  uint64_t binding;
  expr::ExpressionPtr expression;
  HostKernel host;
  /// Of complex operands alone, where both parts of the result are what real ones would give: the kernel for
  /// these, which takes parts side by side as elements. Else null.
  const HostKernel* of_parts = nullptr;
  /// Of complex operands alone: the kernel takes whole elements, not their parts as operands of their own.
  bool whole = false;
  const Instance* next = nullptr;
};

/// The most numbers of an instance: each may have two parts, or be needed in two types.
inline constexpr size_t kMaxNumbers = 2 * PointwiseInfo::kMaxScalars;

/// What devices run for calls of one kind, and the places where they keep what they make of it.
struct DevicePointwise {
  const Instance* instance;  ///< Null for calls that bring nothing but a compute type.
  uint32_t complex_results;  ///< Bit i: result i is real, and stored as a complex number.
  expr::DeviceProgram program;
  DeviceSlots slots = {};
  DevicePointwise* next = nullptr;
};

/// The dtypes that a kernel may take as they are stored, though it computes in a wider type.
inline constexpr DType kStoredDTypes[] = {DType::Float16, DType::BFloat16, DType::Bool, DType::UInt8,
                                          DType::Int8};
inline constexpr size_t kNumStoredDTypes = std::size(kStoredDTypes);
/// The place in the list; kNumStoredDTypes for any other.
constexpr size_t stored_index(DType t) noexcept {
  size_t i = 0;
  while (i < kNumStoredDTypes && kStoredDTypes[i] != t) ++i;
  return i;
}

struct PointwiseState {
  /// For calls that bring nothing but a compute type: what the host runs.
  std::atomic<const HostKernel*> host[expr::kNumComputeTypes] = {};
  /// For calls whose operands are all of one narrow dtype, as they are stored; kNoKernel where there is none.
  std::atomic<const HostKernel*> stored[kNumStoredDTypes] = {};
  /// What devices run, by what is computed in; lists that only grow.
  std::atomic<DevicePointwise*> devices[expr::kNumComputeTypes] = {};
  /// Bit t: the expression is known to run in compute type t.
  std::atomic<uint32_t> runs_in{0};
  std::atomic<const Instance*> instances{nullptr};
  /// Points to `kNoDerivative` if the derivative is zero; null if it was not needed yet.
  std::atomic<const PointwiseDerivative*> derivatives[PointwiseInfo::kMaxTensors] = {};
};

extern const PointwiseDerivative kNoDerivative;

/// Makes the state at the first call.
PointwiseState& make_state(const PointwiseInfo& info);
inline PointwiseState& state_of(const PointwiseInfo& info) {
  PointwiseState* state = info.state.load(std::memory_order_acquire);
  if (!state) [[unlikely]]
    return make_state(info);
  return *state;
}

/// Finds or compiles the host's kernel at the first call in `type`. Throws Error{Type} if the expression
/// cannot be computed in that type.
const HostKernel& make_kernel(const PointwiseInfo& info, expr::Type type);

inline const HostKernel& kernel_of(const PointwiseInfo& info, expr::Type type) {
  const auto t = static_cast<size_t>(compute_index(type));
  const HostKernel* kernel = state_of(info).host[t].load(std::memory_order_acquire);
  if (!kernel) [[unlikely]]
    return make_kernel(info, type);
  return *kernel;
}

/// Marks a kernel that was looked up and does not exist.
extern const HostKernel kNoKernel;
const HostKernel* make_stored_kernel(const PointwiseInfo& info, expr::Type type, DType stored, DType result);

/// The kernel for operands of one of kStoredDTypes and a result of the same size, as they are stored: printed
/// for half types, machine code for bytes; null if there is none. What `stored` is computed in, and the
/// result, follow from it and the operator.
inline const HostKernel* stored_kernel_of(const PointwiseInfo& info, expr::Type type, DType stored,
                                          DType result) {
  const HostKernel* kernel = state_of(info).stored[stored_index(stored)].load(std::memory_order_acquire);
  if (!kernel) [[unlikely]]
    kernel = make_stored_kernel(info, type, stored, result);
  return kernel == &kNoKernel ? nullptr : kernel;
}

/// The operator whose kernel runs: `info`, or what it names for the call's numbers.
inline const PointwiseInfo& info_for(const PointwiseInfo& info, std::span<const Scalar* const> scalars) {
  for (const PointwiseSpecial& s : info.special) {
    const Scalar& number = *scalars[static_cast<size_t>(s.scalar)];
    if (!number.is_complex() && number.to_double() == s.value) return *s.info;
  }
  return info;
}

/// The typed expression for calls that bring nothing but a compute type, over slots that are dense in it.
/// Throws Error{Type} if the expression cannot be computed in `type`.
expr::ExpressionPtr typed_expression(const PointwiseInfo& info, expr::Type type);
/// The same check, for backends that do not use the host's kernels.
void check_runs_in(const PointwiseInfo& info, expr::Type type);

/// The instance for calls of one binding, made at the first such call. For complex operands it computes with
/// real and imaginary parts. Throws Error{NotImplemented} for operations that complex numbers do not have.
const Instance& instance_of(const PointwiseInfo& info, const Binding& binding);

/// What a call of that binding brings its expression. `results` gets the dtypes of the results.
expr::CallTypes call_types_of(const PointwiseInfo& info, const Binding& binding, std::span<DType> results);

/// The written expression, as data or read from its text. Errors name the operator.
class Written {
 public:
  explicit Written(const PointwiseInfo& info);
  const expr::Expression& operator*() const { return *expression_; }
  /// Its typed expression.
  expr::ExpressionPtr instantiate(const expr::CallTypes& types) const;

 private:
  const PointwiseInfo& info_;
  const expr::Expression* expression_;
  expr::ExpressionPtr owned_;
};

/// The dtype of output `i` where the others are `computed`, before an `out` converts it.
DType result_dtype(const PointwiseInfo& info, size_t i, DType computed) noexcept;

/// The expression's symbols and root in `g`.
struct ParsedPointwise {
  expr::NodeId root;
  SmallVector<expr::NodeId, PointwiseInfo::kMaxTensors> tensors;
  SmallVector<expr::NodeId, PointwiseInfo::kMaxScalars> scalars;
};
ParsedPointwise parse_pointwise(expr::Builder& g, const PointwiseInfo& info);

/// Sets the members that follow from the expression: numbers_as_computed, asks_dtypes, direct.
void set_what_it_asks(PointwiseInfo& info, const expr::Expression& written);

/// Tells kernel_report.h, where it asks (kernel_reporting), what ran: "simd:AVX2", "interpreter:AVX2".
void report_host_kernel(const char* name, const HostKernel& kernel);

/// The loop over an iterator's operands in tiles of what the kernel takes, `taken`; see pointwise_tiles.cc.
/// `results` are the dtypes of the operator's results, from which an `out` of another dtype is converted.
/// `of_parts`: see Instance.
void run_tiles(const TensorIterator& iter, const HostKernel& kernel, DType taken,
               std::span<const DType> results, const void* scalars, const HostKernel* of_parts = nullptr);

}  // namespace tenon::detail
