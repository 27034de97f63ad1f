#include "backends/cpu/linalg/eigen_solvers.h"

#include <Eigen/Eigenvalues>
#include <Eigen/SVD>

namespace tenon::cpu {
namespace {

template <class S>
using Rows = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class S>
using Columns = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;

template <class S>
Columns<S> matrix_of(int64_t m, int64_t n, const S* a) {
  return Eigen::Map<const Rows<S>>(a, m, n);
}
/// Columns of `from` to rows at `to`.
template <class S>
void write_rows(const Columns<S>& from, S* to) {
  Eigen::Map<Columns<S>>(to, from.rows(), from.cols()) = from;
}

}  // namespace

template <class S>
bool solve_hermitian(int64_t n, const S* a, double* values, S* vectors) {
  Eigen::SelfAdjointEigenSolver<Columns<S>> solver(
      matrix_of(n, n, a), vectors ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
  if (solver.info() != Eigen::Success) return false;
  Eigen::Map<Eigen::VectorXd>(values, n) = solver.eigenvalues();
  if (vectors) write_rows<S>(solver.eigenvectors(), vectors);
  return true;
}

template <class S>
bool solve_svd(int64_t m, int64_t n, const S* a, double* values, S* u, S* v) {
  Eigen::BDCSVD<Columns<S>> solver(matrix_of(m, n, a), u ? Eigen::ComputeThinU | Eigen::ComputeThinV : 0);
  if (solver.info() != Eigen::Success) return false;
  Eigen::Map<Eigen::VectorXd>(values, n) = solver.singularValues();
  if (u) {
    write_rows<S>(solver.matrixU(), u);
    write_rows<S>(solver.matrixV(), v);
  }
  return true;
}

template <class S>
bool solve_general(int64_t n, const S* a, std::complex<double>* values, std::complex<double>* vectors) {
  using Solver = std::conditional_t<std::is_same_v<S, double>, Eigen::EigenSolver<Columns<double>>,
                                    Eigen::ComplexEigenSolver<Columns<std::complex<double>>>>;
  const Solver solver(matrix_of(n, n, a), vectors != nullptr);
  if (solver.info() != Eigen::Success) return false;
  Eigen::Map<Eigen::VectorXcd>(values, n) = solver.eigenvalues();
  if (vectors) write_rows<std::complex<double>>(solver.eigenvectors(), vectors);
  return true;
}

using Complex = std::complex<double>;
template bool solve_hermitian(int64_t, const double*, double*, double*);
template bool solve_hermitian(int64_t, const Complex*, double*, Complex*);
template bool solve_svd(int64_t, int64_t, const double*, double*, double*, double*);
template bool solve_svd(int64_t, int64_t, const Complex*, double*, Complex*, Complex*);
template bool solve_general(int64_t, const double*, Complex*, Complex*);
template bool solve_general(int64_t, const Complex*, Complex*, Complex*);

}  // namespace tenon::cpu
