// Runs a pointwise launch from its text, as a device with a compiler of its own would: float32, one
// dimension.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tenon/expr/expr.h"
#include "tenon/iter/pointwise_device.h"

namespace tenon::testing {

/// The launch as a task for later: keeps what lives only until the launch returns, and reads host operands
/// now.
inline std::function<void()> kept(const PointwiseLaunch& launch) {
  EXPECT_EQ(launch.ndim, 1u);
  EXPECT_EQ(launch.type, expr::Type::F32);
  struct Operand {
    Address address;
    int64_t stride;
    float host_value;
    bool on_host;
  };
  std::vector<Operand> operands;
  for (uint32_t i = 0; i <= launch.num_tensors; ++i) {
    const PointwiseOperand& o = launch.operands[i];
    operands.push_back(
        {o.address, o.strides[0], o.on_host ? *reinterpret_cast<float*>(o.address) : 0, o.on_host});
  }
  // Each number takes 8 bytes, of which a float is the first 4.
  std::vector<float> numbers(launch.num_scalars);
  for (uint32_t i = 0; i < launch.num_scalars; ++i)
    std::memcpy(&numbers[i], static_cast<const char*>(launch.scalars) + 8 * i, sizeof(float));
  return
      [text = std::string(launch.expression), operands,
       tensor_names = std::vector<std::string>(launch.tensor_names, launch.tensor_names + launch.num_tensors),
       scalar_names = std::vector<std::string>(launch.scalar_names, launch.scalar_names + launch.num_scalars),
       scalars = std::move(numbers), count = launch.sizes[0]] {
        expr::Builder g;
        std::vector<expr::Symbol> symbols;
        for (const std::string& name : tensor_names) symbols.push_back({name, expr::SymbolKind::Tensor});
        for (const std::string& name : scalar_names) symbols.push_back({name, expr::SymbolKind::Scalar});
        const expr::NodeId root = expr::parse(g, text, symbols);
        const auto element = [&](const Operand& o, int64_t i) {
          return reinterpret_cast<float*>(o.address + static_cast<Address>(i * o.stride));
        };
        for (int64_t i = 0; i < count; ++i) {
          std::vector<expr::NamedValue> values;
          for (size_t t = 0; t < tensor_names.size(); ++t) {
            const Operand& o = operands[t + 1];
            values.push_back({tensor_names[t], o.on_host ? o.host_value : *element(o, i)});
          }
          for (size_t s = 0; s < scalars.size(); ++s) values.push_back({scalar_names[s], scalars[s]});
          *element(operands[0], i) = static_cast<float>(expr::evaluate(g, root, values));
        }
      };
}

}  // namespace tenon::testing
