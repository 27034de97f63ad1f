#include "backends/cpu/ops/linalg_matrices.h"

#include <fmt/core.h>

#include <cmath>

#include "backends/cpu/copy/row_kernels.h"
#include "tenon/ops/linalg/linalg_error.h"

namespace tenon::cpu {

template <class T>
Matrices<T>::Matrices(const Tensor& t, const Dims& batch, size_t own)
    : base_(static_cast<char*>(t.data_ptr())), count_(1), parts_(t.is_complex() ? 2 : 1) {
  const IntArrayRef sizes = t.sizes(), strides = t.strides();
  const size_t given = sizes.size() - own, missing = batch.size() - given;
  const auto item = static_cast<int64_t>(t.itemsize());
  for (size_t d = 0; d < batch.size(); ++d) {
    const bool there = d >= missing && sizes[d - missing] != 1;
    batch_.add(batch[d], there ? strides[d - missing] * item : 0);
    count_ *= batch[d];
  }
  rows = sizes[given];
  row = strides[given] * parts_;
  columns = own == 2 ? sizes.back() : 1;
  column = own == 2 ? strides.back() * parts_ : parts_;
  if (own == 1 || columns == 1) column = parts_;
  if (rows == 1) row = columns * parts_;
}

template <class T>
void Matrices<T>::read_lanes(int64_t first, int64_t count, size_t lanes, T* to) const {
  const int64_t size = rows * columns * parts_;
  if (dense() && count == static_cast<int64_t>(lanes)) {
    const int64_t step = batch_.sizes.empty() ? 0 : batch_.strides[0];
    row_kernels().transpose[element_size_index(sizeof(T))](to, static_cast<int64_t>(lanes * sizeof(T)),
                                                           at(first), step, lanes, static_cast<size_t>(size));
    return;
  }
  if (count == 1) {
    const T* const from = at(first);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        for (int64_t part = 0; part < parts_; ++part, to += lanes) {
          const T x = from[i * row + j * column + part];
          std::fill(to, to + lanes, conj && part == 1 ? -x : x);
        }
      }
    }
    return;
  }
  for (size_t lane = 0; lane < lanes; ++lane) {
    const T* const from = at(first + std::min(static_cast<int64_t>(lane), count - 1));
    T* p = to + lane;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        for (int64_t part = 0; part < parts_; ++part, p += lanes) {
          const T x = from[i * row + j * column + part];
          *p = conj && part == 1 ? -x : x;
        }
      }
    }
  }
}

template <class T>
void Matrices<T>::write_lanes(int64_t first, int64_t count, size_t lanes, const T* from) const {
  const int64_t size = rows * columns * parts_;
  if (dense() && count > 1) {
    const int64_t step = batch_.sizes.empty() ? 0 : batch_.strides[0];
    row_kernels().transpose[element_size_index(sizeof(T))](
        at(first), step, from, static_cast<int64_t>(lanes * sizeof(T)), static_cast<size_t>(size),
        static_cast<size_t>(count));
    return;
  }
  for (int64_t lane = 0; lane < count; ++lane) {
    T* const to = at(first + lane);
    const T* p = from + lane;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        for (int64_t part = 0; part < parts_; ++part, p += lanes)
          to[i * row + j * column + part] = conj && part == 1 ? -*p : *p;
      }
    }
  }
}

template <class T>
void Matrices<T>::read(int64_t i, BlockView<T> to) const {
  const T* const from = at(i);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const T* const x = from + r * row + c * column;
      to.p[r * to.row + c * to.column] = x[0];
      if (parts_ == 2) to.p[to.part + r * to.row + c * to.column] = conj ? -x[1] : x[1];
    }
  }
}

template <class T>
void Matrices<T>::write(int64_t i, BlockView<T> from) const {
  T* const to = at(i);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      T* const x = to + r * row + c * column;
      x[0] = from.p[r * from.row + c * from.column];
      if (parts_ == 2) {
        const T im = from.p[from.part + r * from.row + c * from.column];
        x[1] = conj ? -im : im;
      }
    }
  }
}

template class Matrices<float>;
template class Matrices<double>;
template class Matrices<int32_t>;  // pivots
template class Matrices<int64_t>;  // permutations

void throw_of_info(const std::string& text, int64_t entry) {
  throw LinAlgError(entry < 0 ? fmt::format(": {}", text)
                              : fmt::format(": (Batch element {}): {}", entry, text));
}

void check_finite(const Tensor& t, const char* argument) {
  with_parts(t, [&]<class T>(T) {
    const Matrices<T> all(t);
    for (int64_t i = 0; i < all.count(); ++i) {
      const T* const p = all.at(i);
      bool finite = true;
      for (int64_t r = 0; r < all.rows; ++r) {
        for (int64_t c = 0; c < all.columns * all.parts(); ++c)
          finite &= std::isfinite(p[r * all.row + c / all.parts() * all.column + c % all.parts()]);
      }
      if (!finite) {
        throw_of_info(
            fmt::format("`{}` contains infinities or NaN; replace them first, e.g. by nan_to_num", argument),
            t.dim() > 2 ? i : -1);
      }
    }
  });
}

}  // namespace tenon::cpu
