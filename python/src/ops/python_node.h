// PythonNode: the node of one recorded call of an operator whose derivative is written in Python, and the
// `ctx` object that its functions share. Used by python_autograd.cc and python_context.cc.
#pragma once

#include <vector>

#include "python/src/autograd/garbage_collection.h"
#include "python/src/ops/python_autograd.h"
#include "tenon/autograd/saved_tensor.h"

namespace tenon::python {

class PythonNode;

/// The first argument of setup_context and backward. The node owns it; it points back to the node while that
/// lives.
struct ContextObject {
  PyObject_HEAD PyObject* dict;
  PythonNode* node;
  PyObject* to_save;             ///< What save_for_backward was given, until the call has returned.
  PyObject* non_differentiable;  ///< What mark_non_differentiable was given, likewise.
  bool materialize_grads;
};

/// A new reference. Throws PythonError.
Ref make_context(PythonNode& node);
inline ContextObject& context_of(PyObject* o) noexcept { return *reinterpret_cast<ContextObject*>(o); }

class PythonNode final : public ContextNode {
 public:
  PythonNode(std::shared_ptr<PythonAutograd> autograd, const OpSchema& schema)
      : autograd_(std::move(autograd)), schema_(schema) {}
  ~PythonNode() override;

  std::string_view name() const noexcept override { return autograd_->node_name; }
  void apply(tenon::autograd::NodeCall& call) override;
  void release_variables() noexcept override;
  void visit_saved(tenon::autograd::SavedVisitor& visitor) const override;
  void visit_kept(tenon::autograd::KeptVisitor& visitor) const noexcept override {
    for (const tenon::autograd::SavedTensor& t : saved_) t.visit_kept(visitor);
  }

  /// Adds an edge for each tensor among the positional arguments.
  void begin(OpCall& call);
  /// Calls setup_context, which keeps what backward needs, and gives the results their history.
  void finish(OpCall& call, PyObject* result);

  // For ctx.

  /// The saved tensors as a tuple. Throws Error{Runtime} if they were freed or changed.
  Ref saved_tensors() const;
  /// For each positional argument, whether its gradient is needed; a list of bools for a list of tensors.
  Ref needs_input_grad() const;

 private:
  void run_setup(OpCall& call, PyObject* result);
  void save(PyObject* tensors, const std::vector<Tensor>& results);
  /// The gradients as backward gets them: one object for each result.
  void pass_gradients(tenon::autograd::NodeCall& call, std::vector<Ref>& out) const;
  Ref gradient_object(tenon::autograd::NodeCall& call, size_t i) const;
  void take_gradients(PyObject* returned, tenon::autograd::NodeCall& call) const;
  std::string who() const;

  std::shared_ptr<PythonAutograd> autograd_;
  const OpSchema& schema_;
  std::vector<tenon::autograd::SavedTensor> saved_;
  bool released_ = false;
  /// Lengths of the lists of tensors among positional arguments and results, in order.
  std::vector<uint32_t> argument_lists_, result_lists_;
};

}  // namespace tenon::python
