// Runs a pointwise launch from its text, as a device with a compiler of its own would: float32, one
// dimension.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tenon/expr/expr.h"
#include "tenon/iter/pointwise_device.h"

namespace tenon::testing {

/// What such a device makes of an expression once, and keeps in its place.
struct ParsedLaunch {
  expr::Builder graph;
  std::vector<std::string> tensor_names, scalar_names;
  expr::NodeId root;

  explicit ParsedLaunch(const PointwiseLaunch& launch)
      : tensor_names(launch.tensor_names, launch.tensor_names + launch.num_tensors),
        scalar_names(launch.scalar_names, launch.scalar_names + launch.num_scalars) {
    std::vector<expr::Symbol> symbols;
    for (const std::string& name : tensor_names) symbols.push_back({name, expr::SymbolKind::Tensor});
    for (const std::string& name : scalar_names) symbols.push_back({name, expr::SymbolKind::Scalar});
    root = expr::parse(graph, launch.expression, symbols);
    ++count;
  }

  static inline std::atomic<int> count{0};  ///< How many were parsed so far.
};

/// Parses the expression at its first launch.
inline const ParsedLaunch& parsed(const PointwiseLaunch& launch) {
  void* made = launch.made->load(std::memory_order_acquire);
  if (!made) {
    auto fresh = std::make_unique<ParsedLaunch>(launch);
    // Another thread may have been first; then this one's is dropped.
    if (launch.made->compare_exchange_strong(made, fresh.get(), std::memory_order_acq_rel))
      made = fresh.release();
  }
  return *static_cast<const ParsedLaunch*>(made);
}

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
  return [&expression = parsed(launch), operands, scalars = std::move(numbers), count = launch.sizes[0]] {
    const auto element = [&](const Operand& o, int64_t i) {
      return reinterpret_cast<float*>(o.address + static_cast<Address>(i * o.stride));
    };
    for (int64_t i = 0; i < count; ++i) {
      std::vector<expr::NamedValue> values;
      for (size_t t = 0; t + 1 < operands.size(); ++t) {
        const Operand& o = operands[t + 1];
        values.push_back({expression.tensor_names[t], o.on_host ? o.host_value : *element(o, i)});
      }
      for (size_t s = 0; s < scalars.size(); ++s) values.push_back({expression.scalar_names[s], scalars[s]});
      *element(operands[0], i) =
          static_cast<float>(expr::evaluate(expression.graph, expression.root, values));
    }
  };
}

}  // namespace tenon::testing
