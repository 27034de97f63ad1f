// PointwiseForm: an expression of the YAML as a graph, with the derivative by each of its tensors.
// Used by the checks and by the printer of PointwiseInfo. Independent of C++ and files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tenon/expr/expr.h"
#include "tools/opgen/model.h"

namespace tenon::opgen {

/// One expression over named tensors and numbers, or several over the same.
struct PointwiseForm {
  std::string name;  ///< "add", "silu_backward_self": what messages show.
  std::string text;
  std::vector<expr::Symbol> tensors;
  std::vector<std::string> scalars;
  /// Types of the operands as the compute type sees them.
  expr::Builder graph;
  std::vector<expr::NodeId> roots;
  std::vector<std::string> outputs;  ///< The names of several outputs, or of written operands; else empty.
  std::string absent;                ///< "_without_min": of a form for calls without some operands.

  expr::NodeId root() const { return roots[0]; }
  expr::ExpressionPtr written() const { return graph.finish(roots); }

  bool runs_in(expr::Type type) const;
  /// What its kernel for one compute type computes.
  expr::ExpressionPtr typed(expr::Type type) const;
};

/// d(result) / d(one tensor) * grad.
struct PointwiseGradient {
  static constexpr int kGrad = -1;
  static constexpr int kResult = -2;
  PointwiseForm form;
  std::vector<int>
      tensors;  ///< For each tensor of `form`: the operand's position among the tensors, or kGrad, kResult.
  std::vector<int> scalars;  ///< For each of its numbers: the position among the forward operator's.
  expr::Factor factor = expr::Factor::Other;  ///< What `grad` is multiplied by.
};

/// The expression of an `expr` entry, all of whose operands are there. Throws Error{Value} or Error{Type}
/// from the expression itself.
PointwiseForm pointwise_form(const OpDef& def);
/// Another expression over the operands of `def`.
PointwiseForm pointwise_form(const OpDef& def, const std::string& text);
/// Another expression over the operands of a form.
PointwiseForm pointwise_form(const PointwiseForm& of, const std::string& text);
/// The entry for each set of absent operands, as PointwiseInfo::without has them; nothing where the entry
/// refuses such calls. The first is `pointwise_form`.
std::vector<std::optional<PointwiseForm>> pointwise_forms(const OpDef& def);
/// The optional tensors, then the optional numbers: the operands of an index's bits.
std::vector<std::string> optional_operands(const OpDef& def);
/// The C++ type of its stub's functions, and their signature: outputs, tensors, numbers.
std::string pointwise_stub_type(const OpDef& def);
std::string pointwise_signature(const OpDef& def);
/// The entry's text, as documentation shows it.
std::string expression_text(const OpDef& def);
/// The derivative by tensor `operand`; nothing by a mask. A derivative that is zero everywhere is the
/// expression 0.
std::optional<PointwiseGradient> pointwise_gradient(const PointwiseForm& forward, size_t operand);

/// Throws Error{Value} naming the point where `gradient` is not finite, or not the slope of `forward`,
/// although `forward` is finite and smooth around it. The points: one operand at -100, -10, -1, -0.5, 0.5, 1,
/// 10, 100, the others and all numbers at values in between.
void check_gradient(const PointwiseForm& forward, size_t operand, const PointwiseGradient& gradient);

}  // namespace tenon::opgen
