#include "tenon/autograd/strided.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/autograd/autograd_meta.h"
#include "tenon/autograd/fit_gradient.h"
#include "tenon/core/thread_state.h"
#include "tenon/generated/functions.h"

namespace tenon::autograd {
namespace {

struct Geometry {
  Dims sizes, strides;
  int64_t offset = 0;

  Geometry() = default;
  explicit Geometry(const Tensor& t) : sizes(t.sizes()), strides(t.strides()), offset(t.storage_offset()) {}

  Tensor of(const Tensor& flat, int64_t origin) const {
    return tenon::as_strided(flat, sizes, strides, offset - origin);
  }
};

/// The part of a storage that a base and its view reach, as a flat tensor that both are views of.
struct Frame {
  Geometry base, view;

  int64_t origin() const { return std::min(low(base), low(view)); }
  int64_t end() const { return std::max(high(base), high(view)); }
  Tensor zeros(const Tensor& like) const {
    return tenon::zeros({std::max<int64_t>(end() - origin(), 0)}, like.options());
  }

 private:
  static int64_t low(const Geometry& g) { return g.offset + extent(g.sizes, g.strides, "as_strided").low; }
  static int64_t high(const Geometry& g) { return g.offset + extent(g.sizes, g.strides, "as_strided").high; }
};

// A dimension along which elements may meet elements of smaller-strided dimensions; -1 when all are apart.
int overlapping_dim(const Geometry& g) {
  Dims order;
  for (size_t d = 0; d < g.sizes.size(); ++d) {
    if (g.sizes[d] > 1) order.push_back(static_cast<int64_t>(d));
  }
  const auto step = [&](int64_t d) { return std::abs(g.strides[d]); };
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return step(a) < step(b); });
  int64_t reach = 0;
  for (const int64_t d : order) {
    if (step(d) <= reach) return static_cast<int>(d);
    reach += step(d) * (g.sizes[d] - 1);
  }
  return -1;
}

// flat[g] += x, where elements of g may coincide.
void add_strided(const Tensor& flat, int64_t origin, Geometry g, Tensor x) {
  const int d = overlapping_dim(g);
  if (d < 0) {
    Tensor target = g.of(flat, origin);
    target.add_(x);
    return;
  }
  const int64_t size = g.sizes[d], stride = g.strides[d];
  g.sizes.erase(d);
  g.strides.erase(d);
  if (stride == 0) return add_strided(flat, origin, g, tenon::sum(x, IntArrayRef{int64_t{d}}));
  for (int64_t i = 0; i < size; ++i) {
    add_strided(flat, origin, g, x.select(d, i));
    g.offset += stride;
  }
}

Tensor scatter_values(const Frame& f, const Tensor& x) {
  const Tensor flat = f.zeros(x);
  add_strided(flat, f.origin(), f.view, x);
  return f.base.of(flat, f.origin());
}

Tensor gather_values(const Frame& f, const Tensor& x) {
  const Tensor flat = f.zeros(x);
  f.base.of(flat, f.origin()).copy_(x);
  return f.view.of(flat, f.origin()).clone();
}

Tensor run_map(const Frame& frame, bool scatters, const Tensor& x);

/// The derivative of one map is the other.
class StridedMap final : public Node {
 public:
  StridedMap(Frame frame, bool scatters, const Tensor& argument, const Tensor& result)
      : frame_(std::move(frame)), scatters_(scatters) {
    add_input(TensorMeta(result));
    add_edge(gradient_edge(argument));
  }

  std::string_view name() const noexcept final {
    return scatters_ ? "AsStridedScatterBackward0" : "AsStridedBackward0";
  }

  void apply(NodeCall& call) final {
    if (call.grads[0].defined() && call.wanted(0)) call.out[0] = run_map(frame_, !scatters_, call.grads[0]);
  }

 private:
  Frame frame_;
  bool scatters_;
};

// Base to view (gathers) or view to base (scatters), recorded in grad mode.
Tensor run_map(const Frame& frame, bool scatters, const Tensor& x) {
  Tensor result;
  {
    const NoGradGuard no_grad;
    result = alias_without_history(scatters ? scatter_values(frame, x) : gather_values(frame, x));
  }
  if (thread_state.grad_enabled && requires_grad(*x.impl())) {
    set_history(result, {IntrusivePtr<Node>::adopt(new StridedMap(frame, scatters, x, result)), 0});
  }
  return result;
}

class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, IntrusivePtr<Node> write)
      : frame_{Geometry(base), Geometry(view)}, view_meta_(view), write_(std::move(write)) {
    add_input(TensorMeta(base));
    const std::span<const Edge> edges = write_->next_edges();
    reserve_edges(edges.size());
    add_edge(gradient_edge(base));
    for (const Edge& edge : edges.subspan(1)) add_edge(edge);
  }

  std::string_view name() const noexcept final { return "CopySlices"; }
  void release_variables() noexcept final { write_->release_variables(); }
  void visit_saved(SavedVisitor& visitor) const final { write_->visit_saved(visitor); }

  void apply(NodeCall& call) final {
    Tensor& grad = call.grads[0];
    if (!grad.defined()) return;
    // The elements outside the view keep their gradient; those inside have the gradient that the write passes
    // on.
    Tensor slice = run_map(frame_, false, grad);
    NodeCall inner{{&slice, 1}, call.out, write_->next_edges(), call.filter};
    write_->apply(inner);
    if (!call.wanted(0)) return call.out[0].reset();
    Tensor passed = std::move(call.out[0]);
    if (passed.defined()) passed = fit_gradient(std::move(passed), view_meta_, *write_, 0);
    call.out[0] = thread_state.grad_enabled ? replace_recorded(grad, passed) : replace(grad, passed);
  }

 private:
  Tensor replace(const Tensor& grad, const Tensor& passed) const {
    const Tensor flat = frame_.zeros(grad);
    const Tensor whole = frame_.base.of(flat, frame_.origin());
    Tensor(whole).copy_(grad);
    Tensor part = frame_.view.of(flat, frame_.origin());
    if (passed.defined())
      part.copy_(passed);
    else
      part.zero_();
    return alias_without_history(whole);
  }

  Tensor replace_recorded(const Tensor& grad, const Tensor& passed) const {
    const Tensor inside = run_map(frame_, true, tenon::ones(frame_.view.sizes, grad.options()));
    const Tensor outside = tenon::where(tenon::ne(inside, Scalar(0)), tenon::zeros_like(grad), grad);
    return passed.defined() ? tenon::add(outside, run_map(frame_, true, passed)) : outside;
  }

  Frame frame_;
  TensorMeta view_meta_;
  IntrusivePtr<Node> write_;
};

}  // namespace

namespace {

void check_same_dtype(const Tensor& base, const Tensor& view) {
  TENON_CHECK(base.dtype() == view.dtype(), NotImplemented,
              fmt::format("an in-place write to a {} view of a {} tensor, or to its base, that takes part in "
                          "autograd; write to a copy",
                          tenon::name(view.dtype()), tenon::name(base.dtype())));
}

}  // namespace

IntrusivePtr<Node> make_strided_view_node(const Tensor& base, const Tensor& view) {
  check_same_dtype(base, view);
  return IntrusivePtr<Node>::adopt(new StridedMap({Geometry(base), Geometry(view)}, false, base, view));
}

IntrusivePtr<Node> make_copy_slices_node(const Tensor& base, const Tensor& view, IntrusivePtr<Node> write) {
  check_same_dtype(base, view);
  return IntrusivePtr<Node>::adopt(new CopySlices(base, view, std::move(write)));
}

}  // namespace tenon::autograd
