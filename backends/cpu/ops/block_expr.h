// BlockExpr: a pointwise expression over contiguous blocks inside a kernel, with the bits it has everywhere
// else. Used by softmax, losses and random numbers. Knows no tensors.
#pragma once

#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "backends/cpu/pointwise/interpreter.h"

namespace tenon::cpu {

class BlockExpr {
 public:
  /// `tensors` are blocks, `scalars` numbers for a whole call; the expression is compiled at once for both
  /// float types.
  BlockExpr(std::string_view text, std::initializer_list<std::string_view> tensors,
            std::initializer_list<std::string_view> scalars = {})
      : f32_(compile(text, tensors, scalars, expr::ComputeType::Float32)),
        f64_(compile(text, tensors, scalars, expr::ComputeType::Float64)) {}

  /// out[0..n) from the inputs' blocks; `out` may be one of them.
  template <class T, class... In>
  void run(T* out, size_t n, const T* scalars, const In*... in) const {
    void* ptrs[] = {out, const_cast<In*>(in)...};
    (sizeof(T) == 4 ? f32_ : f64_).run(ptrs, n, scalars);
  }

 private:
  static Program compile(std::string_view text, std::initializer_list<std::string_view> tensors,
                         std::initializer_list<std::string_view> scalars, expr::ComputeType type) {
    expr::Graph g;
    std::vector<expr::Symbol> symbols;
    for (const auto name : tensors) symbols.push_back({std::string(name), expr::SymbolKind::Tensor});
    for (const auto name : scalars) symbols.push_back({std::string(name), expr::SymbolKind::Scalar});
    expr::Kernel kernel;
    kernel.type = type;
    kernel.outputs = {expr::parse(g, text, symbols)};
    for (const auto& s : symbols) {
      auto& list = s.kind == expr::SymbolKind::Scalar ? kernel.scalars : kernel.inputs;
      list.push_back(g.symbol(s.name, s.kind));
    }
    return Program(g, kernel);
  }

  Program f32_, f64_;
};

}  // namespace tenon::cpu
