// cumsum, cumprod: what an operation makes of all elements of a row up to each. The order is that of a tree
// whose nodes have 16 children, so that every device can compute it in parallel: runs of 16 elements are
// chains, their totals are scanned by the same rule, and a result is what came before its run, then its place
// in the run. Rows that are side by side go together. A row whose last result is NaN by that is one chain: a
// run of it may have overflown after a zero.
#include <complex>
#include <type_traits>

#include "backends/cpu/ops/strided.h"
#include "tenon/core/half.h"
#include "tenon/core/kernel_report.h"
#include "tenon/core/parallel.h"
#include "tenon/generated/reduction/kernels.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::cpu {
namespace {

/// Rows that go together: their state stays in the L1 cache.
constexpr int64_t kPanel = 64;
/// Children of a node, and runs of one row that do not wait for each other.
constexpr int64_t kRun = 16, kSideBySide = 8;
static_assert(kStridedTile % kRun == 0);

/// Floats accumulate in double, as PyTorch's do, and every element is rounded once; integers wrap.
template <class T>
struct Accumulated {
  using Type = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
};
template <class T>
struct Accumulated<std::complex<T>> {
  using Type = std::complex<double>;
};

struct Sum {
  template <class A>
  static constexpr A kFirst = A(0);
  template <class A>
  static A apply(A a, A x) {
    return a + x;
  }
};
struct Product {
  template <class A>
  static constexpr A kFirst = A(1);
  template <class A>
  static A apply(A a, A x) {
    return a * x;
  }
  // Of the parts: the library's product searches for infinities where one is undefined.
  static std::complex<double> apply(std::complex<double> a, std::complex<double> x) {
    return {a.real() * x.real() - a.imag() * x.imag(), a.real() * x.imag() + a.imag() * x.real()};
  }
};

/// What came before the run that `kWidth` rows are at, side by side.
template <class A, class Op, int64_t kWidth>
class Before {
 public:
  Before() { std::fill_n(sums_, kWidth, Op::template kFirst<A>); }

  const A* sums() const noexcept { return sums_; }
  /// The run is over; `totals` is what the operation made of it alone, in each of `n` rows.
  void end_run(const A* totals, int64_t n) { add(0, totals, sums_, n); }

 private:
  /// A node whose children come one after another: what came before it, and the chain of its children.
  struct Node {
    int64_t children;
    A before[kWidth], chain[kWidth];
  };

  void add(size_t level, const A* totals, A* sums, int64_t n) {
    Node& node = nodes_[level];
    if (level == levels_) {
      ++levels_;
      std::fill_n(node.before, n, Op::template kFirst<A>);
      start(node, n);
    }
    for (int64_t i = 0; i < n; ++i) {
      node.chain[i] = Op::apply(node.chain[i], totals[i]);
      sums[i] = Op::apply(node.before[i], node.chain[i]);
    }
    if (++node.children < kRun) return;
    add(level + 1, node.chain, node.before, n);
    start(node, n);
  }
  static void start(Node& node, int64_t n) {
    node.children = 0;
    std::fill_n(node.chain, n, Op::template kFirst<A>);
  }

  A sums_[kWidth];
  size_t levels_ = 0;
  Node nodes_[16];  // 16 to the power of 16 is more than any row has
};

/// A call: rows of `length` elements; the result is dense, `inner` rows side by side.
struct Rows {
  int64_t length = 1, inner = 1;
  StridedDims before, after;  ///< Of the operand: the dimensions outside of the rows' one, and inside.
  int64_t step = 0;           ///< Bytes from an element of a row to the next.

  Rows(const Tensor& self, int64_t dim) {
    const auto item = static_cast<int64_t>(self.itemsize());
    for (int64_t d = 0; d < self.dim(); ++d) {
      const auto i = static_cast<size_t>(d);
      const int64_t size = self.sizes()[i], stride = self.strides()[i] * item;
      if (d == dim) {
        length = size;
        step = stride;
      } else {
        (d < dim ? before : after).add(size, stride);
      }
    }
    inner = after.numel();
  }
};

template <class T, class Op>
class Scan {
 public:
  Scan(const Tensor& self, int64_t dim, Tensor& out)
      : rows_(self, dim),
        load_(convert_fn(self.dtype(), dtype_of<T>)),
        store_(convert_fn(dtype_of<T>, out.dtype())),
        loads_(self.dtype() != dtype_of<T>),
        stores_(out.dtype() != dtype_of<T>),
        from_(static_cast<const char*>(self.data_ptr())),
        to_(static_cast<char*>(out.data_ptr())),
        item_(static_cast<int64_t>(out.itemsize())) {}

  void run() {
    if (rows_.length == 0) return;
    const int64_t outer = rows_.before.numel(), grain = (1 << 14) / rows_.length;
    if (rows_.inner >= 8 && rows_.after.sizes.size() <= 1) {
      const int64_t panels = (rows_.inner + kPanel - 1) / kPanel;
      parallel_for(0, outer * panels, std::max<int64_t>(grain / std::min(rows_.inner, kPanel), 1),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) panel(i / panels, i % panels * kPanel);
                   });
      return;
    }
    parallel_for(0, outer * rows_.inner, std::max<int64_t>(grain, 1), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) row(i / rows_.inner, i % rows_.inner);
    });
  }

 private:
  using A = typename Accumulated<T>::Type;
  static constexpr int64_t kItem = sizeof(T);

  /// Scans `n` elements of a row, which begin at a run.
  static void along(Before<A, Op, 1>& before, const T* from, T* to, int64_t n) {
    int64_t i = 0;
    for (; i + kSideBySide * kRun <= n; i += kSideBySide * kRun) {
      A places[kSideBySide * kRun];
      for (int64_t run = 0; run < kSideBySide; ++run) {
        A chain = Op::template kFirst<A>;
        for (int64_t k = run * kRun; k < (run + 1) * kRun; ++k)
          places[k] = chain = Op::apply(chain, static_cast<A>(from[i + k]));
      }
      for (int64_t run = 0; run < kSideBySide; ++run) {
        const A sum = *before.sums();
        before.end_run(&places[(run + 1) * kRun - 1], 1);
        for (int64_t k = run * kRun; k < (run + 1) * kRun; ++k)
          to[i + k] = static_cast<T>(Op::apply(sum, places[k]));
      }
    }
    for (; i < n; i += kRun) {
      const A sum = *before.sums();
      A chain = Op::template kFirst<A>;
      for (int64_t k = i; k < std::min(n, i + kRun); ++k) {
        chain = Op::apply(chain, static_cast<A>(from[k]));
        to[k] = static_cast<T>(Op::apply(sum, chain));
      }
      before.end_run(&chain, 1);
    }
  }

  void row(int64_t outer, int64_t inner) {
    const char* from = from_ + rows_.before.offset(outer) + rows_.after.offset(inner);
    char* to = to_ + (outer * rows_.length * rows_.inner + inner) * item_;
    const bool loads = loads_ || rows_.step != kItem, stores = stores_ || rows_.inner != 1;
    T tile[kStridedTile], results[kStridedTile];
    Before<A, Op, 1> before;
    for (int64_t i = 0; i < rows_.length; i += kStridedTile) {
      const int64_t n = std::min(kStridedTile, rows_.length - i);
      const char* at = from + i * rows_.step;
      char* target = to + i * rows_.inner * item_;
      if (loads) load_(tile, {kItem, 0}, at, {rows_.step, 0}, n, 1);
      T* const scanned = stores ? results : reinterpret_cast<T*>(target);
      along(before, loads ? tile : reinterpret_cast<const T*>(at), scanned, n);
      if (stores) store_(target, {rows_.inner * item_, 0}, results, {kItem, 0}, n, 1);
      if (i + n < rows_.length)
        check_stop();
      else if (is_nan(scanned[n - 1]))
        row_in_order(outer, inner);
    }
  }

  static bool is_nan(const T& x) { return !(x == x); }

  /// Scans a row as one chain.
  void row_in_order(int64_t outer, int64_t inner) {
    const char* from = from_ + rows_.before.offset(outer) + rows_.after.offset(inner);
    char* to = to_ + (outer * rows_.length * rows_.inner + inner) * item_;
    T tile[kStridedTile];
    A state = Op::template kFirst<A>;
    for (int64_t i = 0; i < rows_.length; i += kStridedTile) {
      const int64_t n = std::min(kStridedTile, rows_.length - i);
      load_(tile, {kItem, 0}, from + i * rows_.step, {rows_.step, 0}, n, 1);
      for (int64_t k = 0; k < n; ++k)
        tile[k] = static_cast<T>(state = Op::apply(state, static_cast<A>(tile[k])));
      store_(to + i * rows_.inner * item_, {rows_.inner * item_, 0}, tile, {kItem, 0}, n, 1);
    }
  }

  /// The next element of each of `n` rows.
  static void across(const A* sums, A* chains, const T* from, T* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      chains[i] = Op::apply(chains[i], static_cast<A>(from[i]));
      to[i] = static_cast<T>(Op::apply(sums[i], chains[i]));
    }
  }

  void panel(int64_t outer, int64_t first) {
    const int64_t n = std::min(kPanel, rows_.inner - first);
    const int64_t lane = rows_.after.sizes.empty() ? 0 : rows_.after.strides[0];
    const char* from = from_ + rows_.before.offset(outer) + first * lane;
    char* to = to_ + (outer * rows_.length * rows_.inner + first) * item_;
    const bool loads = loads_ || lane != kItem;
    T tile[kPanel], results[kPanel];
    A chains[kPanel];
    Before<A, Op, kPanel> before;
    for (int64_t i = 0; i < rows_.length; ++i, from += rows_.step, to += rows_.inner * item_) {
      if (i % kRun == 0) std::fill_n(chains, n, Op::template kFirst<A>);
      if (loads) load_(tile, {kItem, 0}, from, {lane, 0}, n, 1);
      T* const scanned = stores_ ? results : reinterpret_cast<T*>(to);
      across(before.sums(), chains, loads ? tile : reinterpret_cast<const T*>(from), scanned, n);
      if (stores_) store_(to, {item_, 0}, results, {kItem, 0}, n, 1);
      if (i % kRun == kRun - 1) before.end_run(chains, n);
      if (i % kStridedTile == kStridedTile - 1) check_stop();
      if (i + 1 < rows_.length) continue;
      for (int64_t k = 0; k < n; ++k)
        if (is_nan(scanned[k])) row_in_order(outer, first + k);
    }
  }

  Rows rows_;
  ConvertFn load_, store_;
  bool loads_, stores_;
  const char* from_;
  char* to_;
  int64_t item_;
};

template <class Op>
void scan(const Tensor& self, int64_t dim, Tensor& out, const char* op) {
  report_kernel(op, "scan");
  const int64_t along = self.dim() > 0 ? wrap_dim(dim, self.dim(), op) : 0;
  // Rows may be read again.
  const Tensor from = self.storage() == out.storage() ? ops::contiguous_copy(self) : self;
  const auto run = [&]<class T>() {
    convert_from(self.dtype(), dtype_of<T>, op);
    Scan<T, Op>(from, along, out).run();
  };
  switch (out.dtype()) {
    case DType::Complex64:
      return run.template operator()<std::complex<float>>();
    case DType::Complex128:
      return run.template operator()<std::complex<double>>();
    case DType::Float64:
      return run.template operator()<double>();
    default:
      return is_floating_point(out.dtype()) ? run.template operator()<float>()
                                            : run.template operator()<int64_t>();
  }
}

}  // namespace

void cumsum(const Tensor& self, int64_t dim, std::optional<DType>, Tensor& out) {
  scan<Sum>(self, dim, out, "cumsum");
}
void cumprod(const Tensor& self, int64_t dim, std::optional<DType>, Tensor& out) {
  scan<Product>(self, dim, out, "cumprod");
}

}  // namespace tenon::cpu
