// DeviceProgram: a typed expression as devices get it, a TenonProgram of primitive operations alone. Used by
// launches (tenon/iter/pointwise_device.h). Knows no tensors.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tenon/abi/tenon_program.h"
#include "tenon/expr/expression.h"

namespace tenon::expr {

/// A typed expression with its functions' definitions in place of its calls.
ExpressionPtr inline_calls(const Expression& typed);

/// The program of one typed expression. A launch gives it an operand for each slot, in order.
class DeviceProgram {
 public:
  /// Where bit i of `complex_results` is set and result i is real, it is stored as a complex number: there is
  /// an output after it, of zeros, for the imaginary part. `inputs` and `numbers` are names for the text,
  /// one for each slot; see to_string.
  explicit DeviceProgram(const Expression& typed, uint64_t complex_results = 0,
                         std::span<const std::string_view> inputs = {},
                         std::span<const std::string_view> numbers = {});
  DeviceProgram(const DeviceProgram&) = delete;
  DeviceProgram& operator=(const DeviceProgram&) = delete;

  const TenonProgram& get() const noexcept { return program_; }
  /// What it was made of, at the primitive level: its slots are those of the launch.
  const Expression& expression() const noexcept { return *expression_; }

 private:
  ExpressionPtr expression_;
  std::vector<uint32_t> outputs_;
  std::string text_;
  TenonProgram program_;
};

/// Sets the members of a launch that follow from the others: its form and its variant.
void set_variant(TenonLaunch& launch) noexcept;

}  // namespace tenon::expr
