// Attention and its gradients on tensors.
#include "backends/cpu/attention/attention.h"

#include "backends/cpu/report.h"
#include "tenon/core/tensor.h"
#include "tenon/generated/attention/kernels.h"
#include "tenon/ops/attention/geometry.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::cpu {
namespace {

constexpr const char* kName = "scaled_dot_product_attention";

/// The last two dimensions of `t`, and how those before follow the batch.
BatchedMatrix matrix_of(const Tensor& t, const Dims& batch, int64_t group = 1) {
  BatchedMatrix m;
  m.data = static_cast<char*>(t.data_ptr());
  m.dtype = t.dtype();
  m.group = group;
  const auto item = static_cast<int64_t>(t.itemsize());
  const size_t n = t.sizes().size();
  const auto stride = [&](size_t from_end) {
    return from_end > n || t.sizes()[n - from_end] == 1 ? 0 : t.strides()[n - from_end] * item;
  };
  m.batch = Dims(batch.size(), 0);
  for (size_t d = 0; d < batch.size(); ++d) m.batch[d] = stride(batch.size() - d + 2);
  m.row = stride(2), m.column = stride(1);
  return m;
}

struct Arguments {
  const Tensor &query, &key, &value, &attn_mask;
  double dropout_p;
  bool is_causal;
  double scale;
  bool enable_gqa;
  int64_t seed, offset;
};

AttentionProblem problem_of(const Arguments& a) {
  report_kernel(kName, TENON_KERNEL_NAMES("attention"));
  const ops::AttentionShape shape =
      ops::attention_shape(a.query, a.key, a.value, a.attn_mask, a.dropout_p, a.is_causal, a.enable_gqa);
  AttentionProblem p;
  p.batch = shape.batch;
  p.queries = shape.queries, p.keys = shape.keys;
  p.size = shape.size, p.value_size = shape.value_size;
  p.scale = a.scale, p.causal = a.is_causal, p.dropout = a.dropout_p;
  p.seed = static_cast<uint64_t>(a.seed), p.offset = static_cast<uint64_t>(a.offset);
  p.query = matrix_of(a.query, p.batch);
  p.key = matrix_of(a.key, p.batch, shape.key_group);
  p.value = matrix_of(a.value, p.batch, shape.value_group);
  if (a.attn_mask.defined()) p.mask = matrix_of(a.attn_mask, p.batch);
  return p;
}

/// One query for each head, as when a token is sampled: the heads that share keys are the rows of one
/// product.
void fold_heads(AttentionProblem& p, BatchedMatrix& output) {
  const int64_t group = p.key.group;
  if (p.queries != 1 || group == 1 || p.value.group != group || p.causal) return;
  for (BatchedMatrix* m : {&p.query, &p.mask, &output}) {
    if (!m->data) continue;
    m->row = m->batch.back();
    m->batch.back() *= group;
  }
  p.key.group = p.value.group = 1;
  p.queries = group;
  p.batch.back() /= group;
}

template <class F>
void with_compute(DType type, F&& f) {
  if (type == DType::Float64)
    f.template operator()<double>();
  else
    f.template operator()<float>();
}

DType compute_dtype(DType type) { return type == DType::Float64 ? DType::Float64 : DType::Float32; }

/// Where sums of the compute type go before they become a tensor's elements: the tensor itself, which has
/// zeros, if it is of that type.
class Sums {
 public:
  Sums(Tensor& out, DType compute) : out_(out), sums_(out) {
    if (out.dtype() == compute) return;
    sums_ = make_empty(out.sizes(), compute);
    ops::fill_elements(sums_, 0.0, kName);
  }
  const Tensor& tensor() const { return sums_; }
  void finish() {
    if (sums_.impl() != out_.impl()) ops::copy_elements(out_, sums_, kName);
  }

 private:
  Tensor& out_;
  Tensor sums_;
};

}  // namespace

void attention_forward(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask,
                       double dropout_p, bool is_causal, double scale, bool enable_gqa, int64_t seed,
                       int64_t offset, Tensor& output, Tensor& logsumexp) {
  AttentionProblem p =
      problem_of({query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, seed, offset});
  BatchedMatrix out = matrix_of(output, p.batch);
  fold_heads(p, out);
  with_compute(query.dtype(),
               [&]<class T>() { cpu::attention_forward<T>(p, out, static_cast<T*>(logsumexp.data_ptr())); });
}

void attention_backward(const Tensor& grad_output, const Tensor& query, const Tensor& key,
                        const Tensor& value, const Tensor& attn_mask, const Tensor& output,
                        const Tensor& logsumexp, double dropout_p, bool is_causal, double scale,
                        bool enable_gqa, int64_t seed, int64_t offset, Tensor& by_query, Tensor& by_key,
                        Tensor& by_value) {
  const AttentionProblem p =
      problem_of({query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, seed, offset});
  const DType compute = compute_dtype(query.dtype());
  Sums query_sums(by_query, compute), key_sums(by_key, compute), value_sums(by_value, compute);
  AttentionGradients g;
  g.grad_output = matrix_of(grad_output, p.batch), g.output = matrix_of(output, p.batch);
  g.query = matrix_of(query_sums.tensor(), p.batch);
  g.key = matrix_of(key_sums.tensor(), p.batch, p.key.group);
  g.value = matrix_of(value_sums.tensor(), p.batch, p.value.group);
  const Tensor rows = ops::as_contiguous(logsumexp);
  with_compute(query.dtype(),
               [&]<class T>() { cpu::attention_backward<T>(p, g, static_cast<const T*>(rows.data_ptr())); });
  query_sums.finish();
  key_sums.finish();
  value_sums.finish();
}

void attention_mask_backward(const Tensor& grad_output, const Tensor& query, const Tensor& key,
                             const Tensor& value, const Tensor& attn_mask, const Tensor& output,
                             const Tensor& logsumexp, double dropout_p, bool is_causal, double scale,
                             bool enable_gqa, int64_t seed, int64_t offset, Tensor& by_mask) {
  const AttentionProblem p =
      problem_of({query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, seed, offset});
  Sums sums(by_mask, compute_dtype(query.dtype()));
  AttentionGradients g;
  g.grad_output = matrix_of(grad_output, p.batch), g.output = matrix_of(output, p.batch);
  const Tensor rows = ops::as_contiguous(logsumexp);
  with_compute(query.dtype(), [&]<class T>() {
    cpu::attention_mask_backward<T>(p, g, static_cast<const T*>(rows.data_ptr()),
                                    matrix_of(sums.tensor(), p.batch));
  });
  sums.finish();
}

}  // namespace tenon::cpu
