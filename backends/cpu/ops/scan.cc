// cumsum, cumprod: what an operation makes of all elements of a row up to each. A row is a chain; rows that
// are side by side go together.
#include <complex>
#include <type_traits>

#include "backends/cpu/ops/strided.h"
#include "tenon/core/half.h"
#include "tenon/core/kernel_report.h"
#include "tenon/core/parallel.h"
#include "tenon/generated/reduction/kernels.h"

namespace tenon::cpu {
namespace {

/// Rows that go together: their state stays in the L1 cache.
constexpr int64_t kPanel = 256;

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

  /// The operation on `n` elements of a row after another, from `state` on.
  static void along(A& state, const T* from, T* to, int64_t n) {
    A a = state;
    for (int64_t i = 0; i < n; ++i) {
      a = Op::apply(a, static_cast<A>(from[i]));
      to[i] = static_cast<T>(a);
    }
    state = a;
  }
  /// The operation on one element of each of `n` rows.
  static void across(A* state, const T* from, T* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      state[i] = Op::apply(state[i], static_cast<A>(from[i]));
      to[i] = static_cast<T>(state[i]);
    }
  }

  void row(int64_t outer, int64_t inner) {
    const char* from = from_ + rows_.before.offset(outer) + rows_.after.offset(inner);
    char* to = to_ + (outer * rows_.length * rows_.inner + inner) * item_;
    const bool loads = loads_ || rows_.step != kItem, stores = stores_ || rows_.inner != 1;
    T tile[kStridedTile], results[kStridedTile];
    A state = Op::template kFirst<A>;
    for (int64_t i = 0; i < rows_.length; i += kStridedTile) {
      const int64_t n = std::min(kStridedTile, rows_.length - i);
      const char* at = from + i * rows_.step;
      char* target = to + i * rows_.inner * item_;
      if (loads) load_(tile, {kItem, 0}, at, {rows_.step, 0}, n, 1);
      along(state, loads ? tile : reinterpret_cast<const T*>(at),
            stores ? results : reinterpret_cast<T*>(target), n);
      if (stores) store_(target, {rows_.inner * item_, 0}, results, {kItem, 0}, n, 1);
      if (i + n < rows_.length) check_stop();
    }
  }

  void panel(int64_t outer, int64_t first) {
    const int64_t n = std::min(kPanel, rows_.inner - first);
    const int64_t lane = rows_.after.sizes.empty() ? 0 : rows_.after.strides[0];
    const char* from = from_ + rows_.before.offset(outer) + first * lane;
    char* to = to_ + (outer * rows_.length * rows_.inner + first) * item_;
    const bool loads = loads_ || lane != kItem;
    T tile[kPanel], results[kPanel];
    A state[kPanel];
    std::fill_n(state, n, Op::template kFirst<A>);
    for (int64_t i = 0; i < rows_.length; ++i, from += rows_.step, to += rows_.inner * item_) {
      if (loads) load_(tile, {kItem, 0}, from, {lane, 0}, n, 1);
      across(state, loads ? tile : reinterpret_cast<const T*>(from),
             stores_ ? results : reinterpret_cast<T*>(to), n);
      if (stores_) store_(to, {item_, 0}, results, {kItem, 0}, n, 1);
      if (i % kStridedTile == kStridedTile - 1) check_stop();
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
  const auto run = [&]<class T>() {
    convert_from(self.dtype(), dtype_of<T>, op);
    Scan<T, Op>(self, along, out).run();
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
