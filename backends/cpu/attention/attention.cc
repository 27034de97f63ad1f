#include "backends/cpu/attention/attention.h"

#include <algorithm>
#include <limits>

#include "backends/cpu/attention/attention_kernels.h"
#include "backends/cpu/copy/convert.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/rows/row_plan.h"
#include "tenon/core/parallel.h"
#include "tenon/core/philox.h"
#include "tenon/core/tensor.h"
#include "tenon/expr/expr.h"
#include "tenon/expr/instantiate.h"

namespace tenon::cpu {
namespace {

/// Multiplications that each further thread must bring.
constexpr double kParallelWork = 1 << 19;

int64_t blocks_of(int64_t n, int64_t block) { return (n + block - 1) / block; }

/// A function of the expression language in place, by the kernel that was printed for its operator where
/// there is one.
template <class T>
class ElementwiseFunction {
 public:
  explicit ElementwiseFunction(const char* name) : kernel_(kernel(name)) {}
  void operator()(T* x, int64_t n) const {
    void* const ptrs[] = {x, x};
    kernel_(ptrs, static_cast<size_t>(n), nullptr);
  }

 private:
  static RowKernel kernel(const char* name) {
    expr::Builder g;
    const expr::Symbol self[] = {{"self", expr::SymbolKind::Tensor}};
    const expr::NodeId root = expr::parse(g, std::string(name) + "(self)", self);
    const expr::ExpressionPtr written = g.finish({root});
    const expr::Type type = sizeof(T) == 4 ? expr::Type::F32 : expr::Type::F64;
    const expr::ExpressionPtr typed = expr::instantiate(*written, {.compute = type, .dense = true});
    return RowKernel(expr::in_type(written->key, expr::compute_index(type)), typed.get());
  }

  RowKernel kernel_;
};

template <class T>
struct Functions {
  ElementwiseFunction<T> exp{"exp"}, log{"log"};
  const AttentionKernels<T>& rows = attention_kernels<T>(cpu_target());

  static const Functions& get() {
    static const Functions functions;
    return functions;
  }
};

/// Arrays of the compute type for one range of a parallel loop, in the memory of a tensor: so it is counted,
/// and kept between calls.
template <class T>
class Scratch {
 public:
  explicit Scratch(std::initializer_list<int64_t> sizes) {
    int64_t total = 0;
    for (const int64_t n : sizes) total += padded(n);
    const Dims all{total};
    memory_ = make_empty(all, dtype_of<T>);
    next_ = static_cast<T*>(memory_.data_ptr());
  }
  /// The next array; of the sizes given, in order.
  T* take(int64_t n) {
    T* p = next_;
    next_ += padded(n);
    return p;
  }

 private:
  static int64_t padded(int64_t n) { return (n + 15) / 16 * 16; }

  Tensor memory_;
  T* next_;
};

/// Some rows of a matrix, ready for a product; strides count elements.
template <class T>
struct Block {
  const T* data;
  int64_t row, column;

  Block transposed() const { return {data, column, row}; }
};

/// How much scratch memory a block of `m` needs: none if it is read in place.
template <class T>
int64_t block_size(const BatchedMatrix& m, int64_t rows, int64_t columns) {
  return m.dtype == dtype_of<T> ? 0 : rows * columns;
}

template <class T>
void convert_block(const BatchedMatrix& m, const char* at, int64_t rows, int64_t columns, T* to) {
  constexpr int64_t kItem = sizeof(T);
  convert_fn(m.dtype, dtype_of<T>)(to, {kItem, kItem * columns}, at, {m.column, m.row}, columns, rows);
}

/// Rows from `first` on, of the matrix at `at`.
template <class T>
Block<T> load(const BatchedMatrix& m, const char* at, int64_t first, int64_t rows, int64_t columns,
              T* scratch) {
  constexpr int64_t kItem = sizeof(T);
  at += first * m.row;
  if (m.dtype == dtype_of<T>) return {reinterpret_cast<const T*>(at), m.row / kItem, m.column / kItem};
  convert_block(m, at, rows, columns, scratch);
  return {scratch, columns, 1};
}

/// c = alpha * a b + beta * c, [m, k] times [k, n].
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, Block<T> a, Block<T> b, T* c, int64_t c_row, int64_t c_column,
              T alpha, T beta) {
  GemmArgs<T> g;
  g.m = m, g.n = n, g.k = k;
  g.a = a.data, g.a_row = a.row, g.a_col = a.column;
  g.b = b.data, g.b_row = b.row, g.b_col = b.column;
  g.c = c, g.c_row = c_row, g.c_col = c_column;
  g.alpha = alpha, g.beta = beta;
  gemm(g);
}

/// A piece of all scores: `rows` queries from `query` on, `columns` keys from `key` on.
struct Piece {
  int64_t entry, query, rows, key, columns;
};

template <class T, class M>
void add_mask(const BatchedMatrix& mask, const char* at, const Piece& b, T* scores) {
  constexpr T kNever = -std::numeric_limits<T>::infinity();
  const bool dense = mask.column == static_cast<int64_t>(sizeof(M));
  for (int64_t r = 0; r < b.rows; ++r, at += mask.row, scores += b.columns) {
    const auto* row = reinterpret_cast<const M*>(at);
    for (int64_t c = 0; c < b.columns; ++c) {
      const M m = dense ? row[c] : *reinterpret_cast<const M*>(at + c * mask.column);
      if constexpr (std::is_same_v<M, bool>)
        scores[c] = m ? scores[c] : kNever;
      else
        scores[c] += static_cast<T>(m);
    }
  }
}

template <class T>
void add_mask(const AttentionProblem& p, const Piece& b, T* scores) {
  const BatchedMatrix& mask = p.mask;
  const char* at = mask.data + p.place(mask, b.entry) + b.query * mask.row + b.key * mask.column;
  switch (mask.dtype) {
    case DType::Bool:
      return add_mask<T, bool>(mask, at, b, scores);
    case DType::Float16:
      return add_mask<T, Half>(mask, at, b, scores);
    case DType::BFloat16:
      return add_mask<T, BFloat16>(mask, at, b, scores);
    case DType::Float64:
      return add_mask<T, double>(mask, at, b, scores);
    default:
      return add_mask<T, float>(mask, at, b, scores);
  }
}

/// Scores of a piece, dense.
template <class T>
void compute_scores(const AttentionProblem& p, const Piece& b, Block<T> query, Block<T> key, T* scores) {
  multiply(b.rows, b.columns, p.size, query, key.transposed(), scores, b.columns, int64_t{1},
           static_cast<T>(p.scale), T(0));
  if (p.mask.data) add_mask(p, b, scores);
  if (!p.causal) return;
  for (int64_t r = 0; r < b.rows; ++r) {
    const int64_t visible = std::clamp<int64_t>(b.query + r + 1 - b.key, 0, b.columns);
    std::fill(scores + r * b.columns + visible, scores + (r + 1) * b.columns,
              -std::numeric_limits<T>::infinity());
  }
}

/// Keys that the queries before `end` may see.
int64_t visible_keys(const AttentionProblem& p, int64_t end) {
  return p.causal ? std::min(p.keys, end) : p.keys;
}

/// What dropout multiplies the weights of a piece by. Weight number i of [*batch, queries, keys] is kept as
/// bernoulli_ would draw element i.
template <class T>
void draw_kept(const AttentionProblem& p, const Piece& b, T* kept) {
  using namespace tenon::random;
  const T factor = p.dropout < 1 ? static_cast<T>(1 / (1 - p.dropout)) : T(0);
  const double chance = 1 - p.dropout;
  for (int64_t r = 0; r < b.rows; ++r, kept += b.columns) {
    const auto row = static_cast<uint64_t>(b.entry * p.queries + b.query + r);
    const uint64_t first = row * static_cast<uint64_t>(p.keys) + static_cast<uint64_t>(b.key);
    PhiloxBlock block{};
    for (int64_t c = 0; c < b.columns; ++c) {
      const uint64_t i = first + static_cast<uint64_t>(c);
      if (c == 0 || i % 2 == 0) block = philox_block(p.seed, p.offset + i / 2);
      kept[c] = uniform_double(philox_word64(block, static_cast<int>(i % 2))) < chance ? factor : T(0);
    }
  }
}

template <class T>
void multiply_by(T* x, const T* factors, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] *= factors[i];
}

template <class T>
class Forward {
 public:
  Forward(const AttentionProblem& p, const BatchedMatrix& output, T* logsumexp)
      : p_(p),
        output_(output),
        logsumexp_(logsumexp),
        rows_(std::min(p.queries, kQueryBlock)),
        columns_(std::min(p.keys, kKeyBlock)),
        sizes_{rows_ * columns_,
               p.dropout > 0 ? rows_ * columns_ : 0,
               rows_ * p.value_size,
               rows_,
               rows_,
               rows_,
               block_size<T>(p.query, rows_, p.size),
               block_size<T>(p.key, columns_, p.size),
               block_size<T>(p.value, columns_, p.value_size)},
        scratch_({sizes_[0], sizes_[1], sizes_[2], sizes_[3], sizes_[4], sizes_[5], sizes_[6], sizes_[7],
                  sizes_[8]}) {
    T** const arrays[] = {&scores_, &kept_,      &sums_,    &largest_,  &change_,
                          &total_,  &query_mem_, &key_mem_, &value_mem_};
    for (size_t i = 0; i < std::size(arrays); ++i) *arrays[i] = scratch_.take(sizes_[i]);
  }

  /// `rows` queries of an entry, from `query` on.
  void run(int64_t entry, int64_t query, int64_t rows) {
    const char* keys = p_.key.data + p_.place(p_.key, entry);
    const char* values = p_.value.data + p_.place(p_.value, entry);
    const Block<T> q =
        load(p_.query, p_.query.data + p_.place(p_.query, entry), query, rows, p_.size, query_mem_);
    std::fill_n(largest_, rows, -std::numeric_limits<T>::infinity());
    std::fill_n(total_, rows, T(0));
    const int64_t end = visible_keys(p_, query + rows);
    for (int64_t key = 0; key < end; key += kKeyBlock) {
      const Piece b{entry, query, rows, key, std::min(kKeyBlock, end - key)};
      const int64_t n = rows * b.columns;
      compute_scores(p_, b, q, load(p_.key, keys, key, b.columns, p_.size, key_mem_), scores_);
      f_.rows.shift(scores_, rows, b.columns, largest_, change_);
      f_.exp(change_, rows);
      f_.exp(scores_, n);
      f_.rows.add_sums(scores_, rows, b.columns, change_, total_);
      if (p_.dropout > 0) {
        draw_kept(p_, b, kept_);
        multiply_by(scores_, kept_, n);
      }
      if (key > 0) f_.rows.scale(sums_, rows, p_.value_size, change_);
      multiply(rows, p_.value_size, b.columns, {scores_, b.columns, 1},
               load(p_.value, values, key, b.columns, p_.value_size, value_mem_), sums_, p_.value_size,
               int64_t{1}, T(1), key > 0 ? T(1) : T(0));
    }
    f_.rows.divide(sums_, rows, p_.value_size, total_);
    constexpr int64_t kItem = sizeof(T);
    convert_fn(dtype_of<T>, output_.dtype)(output_.data + p_.place(output_, entry) + query * output_.row,
                                           {output_.column, output_.row}, sums_,
                                           {kItem, kItem * p_.value_size}, p_.value_size, rows);
    f_.log(total_, rows);
    T* logsumexp = logsumexp_ + entry * p_.queries + query;
    for (int64_t r = 0; r < rows; ++r) logsumexp[r] = largest_[r] + total_[r];
  }

 private:
  const AttentionProblem& p_;
  const BatchedMatrix& output_;
  T* logsumexp_;
  const Functions<T>& f_ = Functions<T>::get();
  int64_t rows_, columns_;
  int64_t sizes_[9];
  Scratch<T> scratch_;
  T *scores_, *kept_, *sums_, *largest_, *change_, *total_, *query_mem_, *key_mem_, *value_mem_;
};

/// The weights of pieces again, and the gradients by their scores.
template <class T>
class Backward {
 public:
  Backward(const AttentionProblem& p, const AttentionGradients& g, const T* logsumexp)
      : p_(p),
        g_(g),
        logsumexp_(logsumexp),
        rows_(std::min(p.queries, kQueryBlock)),
        columns_(std::min(p.keys, kKeyBlock)),
        sizes_{rows_ * columns_,
               rows_ * columns_,
               p.dropout > 0 ? rows_ * columns_ : 0,
               p.queries,
               rows_ * p.value_size,
               rows_ * p.value_size,
               block_size<T>(p.query, rows_, p.size),
               block_size<T>(p.key, columns_, p.size),
               block_size<T>(p.value, columns_, p.value_size),
               block_size<T>(g.grad_output, rows_, p.value_size)},
        scratch_({sizes_[0], sizes_[1], sizes_[2], sizes_[3], sizes_[4], sizes_[5], sizes_[6], sizes_[7],
                  sizes_[8], sizes_[9]}) {
    T** const arrays[] = {&weights_,     &gradient_,  &kept_,    &means_,     &grad_rows_,
                          &output_rows_, &query_mem_, &key_mem_, &value_mem_, &grad_mem_};
    for (size_t i = 0; i < std::size(arrays); ++i) *arrays[i] = scratch_.take(sizes_[i]);
  }

  /// Prepares queries [begin, end) of an entry: of each, the mean of its gradients by weights.
  void start(int64_t entry, int64_t begin, int64_t end) {
    const char* grads = g_.grad_output.data + p_.place(g_.grad_output, entry);
    const char* outputs = g_.output.data + p_.place(g_.output, entry);
    for (int64_t i = begin; i < end; i += kQueryBlock) {
      const int64_t rows = std::min(kQueryBlock, end - i);
      convert_block(g_.grad_output, grads + i * g_.grad_output.row, rows, p_.value_size, grad_rows_);
      convert_block(g_.output, outputs + i * g_.output.row, rows, p_.value_size, output_rows_);
      f_.rows.dot(grad_rows_, output_rows_, rows, p_.value_size, means_ + i);
    }
  }

  struct Operands {
    Block<T> query, key, value, grad;
  };
  void load_keys(int64_t entry, int64_t key, int64_t columns, Operands& o) {
    o.key = load(p_.key, p_.key.data + p_.place(p_.key, entry), key, columns, p_.size, key_mem_);
    o.value =
        load(p_.value, p_.value.data + p_.place(p_.value, entry), key, columns, p_.value_size, value_mem_);
  }
  void load_queries(int64_t entry, int64_t query, int64_t rows, Operands& o) {
    o.query = load(p_.query, p_.query.data + p_.place(p_.query, entry), query, rows, p_.size, query_mem_);
    o.grad = load(g_.grad_output, g_.grad_output.data + p_.place(g_.grad_output, entry), query, rows,
                  p_.value_size, grad_mem_);
  }

  /// Of a piece: `weights` as they multiplied the values, and `gradient` by the scores.
  void run(const Piece& b, const Operands& o) {
    const int64_t n = b.rows * b.columns;
    compute_scores(p_, b, o.query, o.key, weights_);
    f_.rows.subtract(weights_, b.rows, b.columns, logsumexp_ + b.entry * p_.queries + b.query);
    f_.exp(weights_, n);
    multiply(b.rows, b.columns, p_.value_size, o.grad, o.value.transposed(), gradient_, b.columns, int64_t{1},
             T(1), T(0));
    if (p_.dropout > 0) {
      draw_kept(p_, b, kept_);
      multiply_by(gradient_, kept_, n);
    }
    f_.rows.gradient(weights_, gradient_, b.rows, b.columns, means_ + b.query);
    if (p_.dropout > 0) multiply_by(weights_, kept_, n);
  }
  const T* weights() const { return weights_; }
  const T* gradient() const { return gradient_; }

 private:
  const AttentionProblem& p_;
  const AttentionGradients& g_;
  const T* logsumexp_;
  const Functions<T>& f_ = Functions<T>::get();
  int64_t rows_, columns_;
  int64_t sizes_[10];
  Scratch<T> scratch_;
  T *weights_, *gradient_, *kept_, *means_, *grad_rows_, *output_rows_, *query_mem_, *key_mem_, *value_mem_,
      *grad_mem_;
};

/// Rows of a gradient to which a product is added.
template <class T>
void add_product(const AttentionProblem& p, const BatchedMatrix& to, int64_t entry, int64_t first,
                 int64_t rows, int64_t columns, int64_t inner, Block<T> a, Block<T> b, T alpha) {
  constexpr int64_t kItem = sizeof(T);
  auto* c = reinterpret_cast<T*>(to.data + p.place(to, entry) + first * to.row);
  multiply(rows, columns, inner, a, b, c, to.row / kItem, to.column / kItem, alpha, T(1));
}

/// Of loops whose every step is a product of these sizes, which may be as large as numbers are.
int64_t grain_of(int64_t rows, int64_t keys, int64_t columns) {
  const double work = static_cast<double>(rows) * static_cast<double>(keys) * static_cast<double>(columns);
  return static_cast<int64_t>(kParallelWork / std::clamp<double>(work, 1, kParallelWork));
}

}  // namespace

int64_t AttentionProblem::entries() const noexcept {
  int64_t n = 1;
  for (const int64_t size : batch) n *= size;
  return n;
}

int64_t AttentionProblem::place(const BatchedMatrix& m, int64_t e) const noexcept {
  int64_t bytes = 0;
  for (size_t d = batch.size(); d-- > 0;) {
    const int64_t i = e % batch[d];
    bytes += (d + 1 == batch.size() ? i / m.group : i) * m.batch[d];
    e /= batch[d];
  }
  return bytes;
}

template <class T>
void attention_forward(const AttentionProblem& p, const BatchedMatrix& output, T* logsumexp) {
  const int64_t blocks = blocks_of(p.queries, kQueryBlock);
  const int64_t grain = grain_of(std::min(p.queries, kQueryBlock), p.keys, p.size + p.value_size);
  parallel_for(0, p.entries() * blocks, grain, [&](int64_t begin, int64_t end) {
    Forward<T> forward(p, output, logsumexp);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t query = i % blocks * kQueryBlock;
      forward.run(i / blocks, query, std::min(kQueryBlock, p.queries - query));
    }
  });
}

template <class T>
void attention_backward(const AttentionProblem& p, const AttentionGradients& g, const T* logsumexp) {
  if (p.queries == 0 || p.keys == 0 || p.entries() == 0) return;
  // Entries that share a key or a value are one thread's.
  const int64_t heads = p.key.group == p.value.group ? p.key.group : p.batch.back();
  const int64_t grain = grain_of(heads * p.queries, p.keys, 3 * p.size + 2 * p.value_size);
  const T scale = static_cast<T>(p.scale);
  parallel_for(0, p.entries() / heads, grain, [&](int64_t begin, int64_t end) {
    Backward<T> backward(p, g, logsumexp);
    typename Backward<T>::Operands o{};
    for (int64_t e = begin * heads; e < end * heads; ++e) {
      backward.start(e, 0, p.queries);
      for (int64_t key = 0; key < visible_keys(p, p.queries); key += kKeyBlock) {
        const int64_t columns = std::min(kKeyBlock, p.keys - key);
        backward.load_keys(e, key, columns, o);
        for (int64_t query = 0; query < p.queries; query += kQueryBlock) {
          const int64_t rows = std::min(kQueryBlock, p.queries - query);
          const int64_t seen = std::min(columns, visible_keys(p, query + rows) - key);
          if (seen <= 0) continue;
          backward.load_queries(e, query, rows, o);
          backward.run({e, query, rows, key, seen}, o);
          const Block<T> weights{backward.weights(), seen, 1}, gradient{backward.gradient(), seen, 1};
          add_product(p, g.value, e, key, seen, p.value_size, rows, weights.transposed(), o.grad, T(1));
          add_product(p, g.key, e, key, seen, p.size, rows, gradient.transposed(), o.query, scale);
          add_product(p, g.query, e, query, rows, p.size, seen, gradient, o.key, scale);
        }
      }
    }
  });
}

template <class T>
void attention_mask_backward(const AttentionProblem& p, const AttentionGradients& g, const T* logsumexp,
                             const BatchedMatrix& gradient) {
  if (p.queries == 0 || p.keys == 0 || p.entries() == 0) return;
  // Each block of queries adds what all entries give to it, in their order; to places of its own if the mask
  // has rows.
  const int64_t blocks = blocks_of(p.queries, kQueryBlock);
  parallel_for(0, blocks, gradient.row != 0 ? 1 : blocks, [&](int64_t begin, int64_t end) {
    Backward<T> backward(p, g, logsumexp);
    typename Backward<T>::Operands o{};
    const int64_t first = begin * kQueryBlock, last = std::min(p.queries, end * kQueryBlock);
    for (int64_t e = 0; e < p.entries(); ++e) {
      backward.start(e, first, last);
      for (int64_t query = first; query < last; query += kQueryBlock) {
        const int64_t rows = std::min(kQueryBlock, last - query);
        backward.load_queries(e, query, rows, o);
        for (int64_t key = 0; key < p.keys; key += kKeyBlock) {
          const int64_t columns = std::min(kKeyBlock, p.keys - key);
          backward.load_keys(e, key, columns, o);
          backward.run({e, query, rows, key, columns}, o);
          const T* from = backward.gradient();
          char* to = gradient.data + p.place(gradient, e) + query * gradient.row + key * gradient.column;
          for (int64_t r = 0; r < rows; ++r, to += gradient.row) {
            for (int64_t c = 0; c < columns; ++c) *reinterpret_cast<T*>(to + c * gradient.column) += *from++;
          }
        }
      }
    }
  });
}

#define TENON_ATTENTION(T)                                                                            \
  template void attention_forward(const AttentionProblem&, const BatchedMatrix&, T*);                 \
  template void attention_backward(const AttentionProblem&, const AttentionGradients&, const T*);     \
  template void attention_mask_backward(const AttentionProblem&, const AttentionGradients&, const T*, \
                                        const BatchedMatrix&);
TENON_ATTENTION(float)
TENON_ATTENTION(double)
#undef TENON_ATTENTION

}  // namespace tenon::cpu
