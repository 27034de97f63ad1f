#include "tenon/autograd/strided.h"

#include <algorithm>

#include "tenon/autograd/autograd_meta.h"
#include "tenon/autograd/fit_gradient.h"
#include "tenon/core/thread_state.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/iter/overlap.h"

namespace tenon::autograd {
namespace {

struct StridedTensor {
  Dims sizes, strides;
  int64_t offset = 0;

  StridedTensor() = default;
  /// `split`: of the real numbers that the elements of a complex tensor consist of.
  StridedTensor(const Tensor& t, bool split)
      : sizes(t.sizes()), strides(t.strides()), offset(t.storage_offset()) {
    if (!split) return;
    for (int64_t& s : strides) s *= 2;
    sizes.push_back(2);
    strides.push_back(1);
    offset *= 2;
  }

  bool overlaps() const { return overlaps_itself(sizes, strides); }
  Tensor of(const Tensor& flat, int64_t origin) const {
    return tenon::as_strided(flat, sizes, strides, offset - origin);
  }
};

Tensor split_parts(const Tensor& x, bool split) { return split ? tenon::view_as_real(x) : x; }
Tensor join_parts(const Tensor& x, bool split) { return split ? tenon::view_as_complex(x.contiguous()) : x; }

/// The part of a storage that a base and its view reach, as a flat tensor that both are views of. Where one
/// of them is complex and the other real, they meet as real numbers.
struct Frame {
  bool split_base, split_view;
  StridedTensor base, view;

  Frame(const Tensor& base_, const Tensor& view_)
      : split_base(base_.is_complex() && !view_.is_complex()),
        split_view(view_.is_complex() && !base_.is_complex()),
        base(base_, split_base),
        view(view_, split_view) {}

  int64_t origin() const { return std::min(low(base), low(view)); }
  int64_t end() const { return std::max(high(base), high(view)); }
  Tensor zeros(const Tensor& like) const { return like.new_zeros({std::max<int64_t>(end() - origin(), 0)}); }

 private:
  static int64_t low(const StridedTensor& g) {
    return g.offset + extent(g.sizes, g.strides, "as_strided").low;
  }
  static int64_t high(const StridedTensor& g) {
    return g.offset + extent(g.sizes, g.strides, "as_strided").high;
  }
};

// A dimension along which elements may meet elements of smaller-strided dimensions; -1 when all are apart.
int overlapping_dim(const StridedTensor& g) {
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

// Sets `mask` where g shows an element of flat that is still false, and then that element: of several
// positions that share a place the first.
void mark_first(const Tensor& flat, int64_t origin, StridedTensor g, const Tensor& mask) {
  const int d = overlapping_dim(g);
  if (d < 0) {
    Tensor seen = g.of(flat, origin);
    Tensor(mask).copy_(tenon::logical_not(seen));
    seen.fill_(true);
    return;
  }
  const int64_t size = g.sizes[d], stride = g.strides[d];
  g.sizes.erase(d);
  g.strides.erase(d);
  for (int64_t i = 0; i < (stride == 0 ? std::min<int64_t>(size, 1) : size); ++i) {
    mark_first(flat, origin, g, mask.select(d, i));
    g.offset += stride;
  }
}

// The gradient of a view, with zero at all positions but one of those that share a place.
Tensor each_place_once(const Frame& f, const Tensor& x) {
  const Tensor parts = split_parts(x, f.split_view);
  Tensor mask;
  {
    const NoGradGuard no_grad;
    mask = tenon::zeros_like(parts).to(kBool);
    mark_first(f.zeros(parts).to(kBool), f.origin(), f.view, mask);
  }
  return join_parts(tenon::where(mask, parts, tenon::zeros_like(parts)), f.split_view);
}

// The gradient of the view summed to the places of the base, which are zero where the view shows none.
Tensor scatter_values(const Frame& f, const Tensor& x) {
  return join_parts(tenon::as_strided_backward(split_parts(x, f.split_view), f.base.sizes, f.base.strides,
                                               f.base.offset, f.view.sizes, f.view.strides, f.view.offset),
                    f.split_base);
}

// The view's part of the gradient of the base.
Tensor gather_values(const Frame& f, const Tensor& x) {
  return join_parts(tenon::as_strided_elements(split_parts(x, f.split_base), f.base.sizes, f.base.strides,
                                               f.base.offset, f.view.sizes, f.view.strides, f.view.offset),
                    f.split_view);
}

Tensor run_map(const Frame& frame, bool scatters, const Tensor& x);

/// The derivative of one map is the other.
class StridedMap final : public Node {
 public:
  StridedMap(Frame frame, bool scatters, Edge argument, TensorMeta result)
      : frame_(std::move(frame)), scatters_(scatters) {
    add_input(std::move(result));
    add_edge(std::move(argument));
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
    set_history(
        result,
        {IntrusivePtr<Node>::adopt(new StridedMap(frame, scatters, gradient_edge(x), TensorMeta(result))),
         0});
  }
  return result;
}

class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, IntrusivePtr<Node> write)
      : frame_(base, view), view_meta_(view), write_(std::move(write)) {
    add_input(TensorMeta(base));
    const std::span<const Edge> edges = write_->next_edges();
    reserve_edges(edges.size());
    add_edge(gradient_edge(base));
    for (const Edge& edge : edges.subspan(1)) add_edge(edge);
    write_->set_enclosing(this);
  }
  ~CopySlices() final { write_->set_enclosing(nullptr); }

  /// From the view as it is after the write to this node.
  IntrusivePtr<Node> view_node() {
    return IntrusivePtr<Node>::adopt(
        new StridedMap(frame_, false, {IntrusivePtr<Node>::share(this), 0}, view_meta_));
  }

  std::string_view name() const noexcept final { return "CopySlices"; }
  void release_variables() noexcept final { write_->release_variables(); }
  void visit_saved(SavedVisitor& visitor) const final { write_->visit_saved(visitor); }
  void visit_kept(KeptVisitor& visitor) const noexcept final { visitor.node(write_.get()); }

  void apply(NodeCall& call) final {
    Tensor& grad = call.grads[0];
    if (!grad.defined()) return;
    // The elements outside the view keep their gradient; those inside have the gradient that the write passes
    // on.
    const bool overlaps = frame_.view.overlaps();
    Tensor slice = run_map(frame_, false, grad);
    // What is written to a place counts once, however many positions of the view show it (only such writes
    // as fill_ are allowed there).
    if (overlaps) slice = each_place_once(frame_, slice);
    NodeCall inner{{&slice, 1}, call.out, write_->next_edges(), call.filter};
    write_->apply(inner);
    if (!call.wanted(0)) return call.out[0].reset();
    Tensor passed = std::move(call.out[0]);
    if (passed.defined()) passed = fit_gradient(std::move(passed), view_meta_, *write_, 0);
    // A place that several positions show gets the sum of what is passed to each.
    const bool sum = thread_state.grad_enabled || overlaps;
    call.out[0] = sum ? replace_recorded(grad, passed) : replace(grad, passed);
  }

 private:
  Tensor replace(const Tensor& grad, const Tensor& passed) const {
    const Tensor parts = split_parts(grad, frame_.split_base);
    const Tensor flat = frame_.zeros(parts);
    const Tensor whole = frame_.base.of(flat, frame_.origin());
    Tensor(whole).copy_(parts);
    Tensor part = frame_.view.of(flat, frame_.origin());
    if (passed.defined())
      part.copy_(split_parts(passed, frame_.split_view));
    else
      part.zero_();
    return alias_without_history(join_parts(whole, frame_.split_base));
  }

  Tensor replace_recorded(const Tensor& grad, const Tensor& passed) const {
    const Tensor parts = split_parts(grad, frame_.split_base);
    Tensor inside;
    {
      const NoGradGuard no_grad;
      const Tensor flat = frame_.zeros(parts);
      Tensor written = frame_.view.of(flat, frame_.origin());
      written.fill_(1);
      inside = tenon::ne(frame_.base.of(flat, frame_.origin()), Scalar(0));
    }
    const Tensor outside =
        join_parts(tenon::where(inside, tenon::zeros_like(parts), parts), frame_.split_base);
    return passed.defined() ? tenon::add(outside, run_map(frame_, true, passed)) : outside;
  }

  Frame frame_;
  TensorMeta view_meta_;
  IntrusivePtr<Node> write_;
};

}  // namespace

IntrusivePtr<Node> make_strided_view_node(const Tensor& base, const Tensor& view) {
  return IntrusivePtr<Node>::adopt(
      new StridedMap(Frame(base, view), false, gradient_edge(base), TensorMeta(view)));
}

IntrusivePtr<Node> make_copy_slices_node(const Tensor& base, const Tensor& view, IntrusivePtr<Node> write) {
  return IntrusivePtr<Node>::adopt(new CopySlices(base, view, std::move(write)));
}

IntrusivePtr<Node> make_written_view_node(Node& copy_slices) {
  return static_cast<CopySlices&>(copy_slices).view_node();
}

}  // namespace tenon::autograd
