// BlockExpr: a pointwise expression over contiguous blocks inside a kernel, with the same bits as everywhere
// else. Used by softmax, losses and random numbers. Knows no tensors.
#pragma once

#include <cstring>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "backends/cpu/pointwise/interpreter.h"
#include "tenon/expr/expr.h"
#include "tenon/expr/instantiate.h"

namespace tenon::cpu {

class BlockExpr {
 public:
  /// `tensors` are blocks, `scalars` numbers for a whole call; the expression is compiled at once for both
  /// float types.
  BlockExpr(std::string_view text, std::initializer_list<std::string_view> tensors,
            std::initializer_list<std::string_view> scalars = {})
      : f32_(compile(text, tensors, scalars, expr::Type::F32)),
        f64_(compile(text, tensors, scalars, expr::Type::F64)),
        num_numbers_(scalars.size()) {}

  /// out[0..n) from the inputs' blocks; `out` may be one of them.
  template <class T, class... In>
  void run(T* out, size_t n, const T* scalars, const In*... in) const {
    void* ptrs[] = {out, const_cast<In*>(in)...};
    uint64_t numbers[kMaxNumbers] = {};
    for (size_t i = 0; i < num_numbers_; ++i) std::memcpy(&numbers[i], &scalars[i], sizeof(T));
    (sizeof(T) == 4 ? f32_ : f64_).run(ptrs, n, numbers);
  }

 private:
  static Program compile(std::string_view text, std::initializer_list<std::string_view> tensors,
                         std::initializer_list<std::string_view> scalars, expr::Type type) {
    expr::Builder g;
    std::vector<expr::Symbol> symbols;
    for (const auto name : tensors) symbols.push_back({std::string(name), expr::SymbolKind::Tensor});
    for (const auto name : scalars) symbols.push_back({std::string(name), expr::SymbolKind::Scalar});
    const expr::NodeId root = expr::parse(g, text, symbols);
    return Program(*expr::instantiate(*g.finish({root}), {.compute = type}));
  }

  static constexpr size_t kMaxNumbers = 4;
  Program f32_, f64_;
  size_t num_numbers_;
};

}  // namespace tenon::cpu
