"""What linear algebra says of matrices that have no result and of arguments that do not fit."""

import math

import pytest
import tenon

L = tenon.linalg
NAN = float("nan")


def entry(bad):
    """Three matrices, the second one `bad`."""
    good = tenon.eye(2)
    return tenon.stack([good, tenon.tensor(bad), good])


SINGULAR, INDEFINITE = [[1.0, 2.0], [2.0, 4.0]], [[1.0, 0.0], [0.0, -1.0]]


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: L.inv(entry(SINGULAR)), r"^linalg\.inv: \(Batch element 1\): The diagonal element 2 is zero.*singular"),
        (lambda: tenon.inverse(tenon.zeros(2, 2)), "inverse: The diagonal element 1 is zero"),
        (lambda: L.inv_ex(entry(SINGULAR), check_errors=True), r"^linalg\.inv_ex: \(Batch element 1\)"),
        (lambda: L.solve(entry(SINGULAR), tenon.ones(3, 2, 1)), r"^linalg\.solve: \(Batch element 1\): The solver failed because the input matrix is singular"),
        (lambda: L.solve_ex(tenon.zeros(2, 2), tenon.ones(2), check_errors=True), r"^linalg\.solve_ex: The solver failed"),
        (lambda: L.lu_factor(entry(SINGULAR)), r"^linalg\.lu_factor: \(Batch element 1\): U\[2,2\] is zero"),
        (lambda: L.ldl_factor(entry([[0.0, 0.0], [0.0, 0.0]])), r"^linalg\.ldl_factor: \(Batch element 1\): .*block 1 of D is zero"),
        (lambda: L.cholesky(entry(INDEFINITE)), r"^linalg\.cholesky: \(Batch element 1\): .*the leading minor of order 2 is not positive-definite"),
        (lambda: L.cholesky(-tenon.eye(40)), "the leading minor of order 1 is not"),
        (lambda: L.cholesky(tenon.full((2, 2), NAN)), "the leading minor of order 1 is not"),
        (lambda: L.eigh(entry([[NAN, 0.0], [0.0, 1.0]])), r"^linalg\.eigh: \(Batch element 1\): `A` contains infinities or NaN"),
        (lambda: L.svd(tenon.full((2, 3), float("inf"))), r"^linalg\.svd: `A` contains infinities or NaN"),
        (lambda: L.eigvals(tenon.full((2, 2), NAN)), r"^linalg\.eigvals: `self` contains infinities or NaN"),
    ],
)  # fmt: skip
def test_matrices_without_a_result(call, text):
    with pytest.raises(L.LinAlgError, match=text):
        call()
    with pytest.raises(RuntimeError):
        call()


def test_info_says_what_failed():
    assert L.inv_ex(entry(SINGULAR)).info.tolist() == [0, 2, 0]
    assert L.cholesky_ex(entry(INDEFINITE)).info.tolist() == [0, 2, 0]
    assert L.lu_factor_ex(tenon.zeros(40, 40)).info.item() == 1
    assert L.solve_ex(tenon.zeros(2, 2), tenon.ones(2)).info.item() == 1
    assert L.ldl_factor_ex(tenon.zeros(2, 2)).info.item() == 1
    assert L.cholesky_ex(tenon.eye(3)).info.dtype is tenon.int32


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: L.inv(tenon.ones(2, 3)), RuntimeError, r"^linalg\.inv: `A` must be batches of square matrices, but they are 2 by 3 matrices"),
        (lambda: L.inv(tenon.ones(3)), RuntimeError, "at least 2 dimensions"),
        (lambda: L.inv(tenon.ones(2, 2).half()), NotImplementedError, r"^linalg\.inv: expected `A` of float32, .*got float16; convert it"),
        (lambda: L.inv(tenon.ones(2, 2).long()), NotImplementedError, "got int64"),
        (lambda: L.solve(tenon.eye(2), tenon.ones(3, 1)), RuntimeError, "expected `B` to have 2 rows"),
        (lambda: L.solve(tenon.eye(2), tenon.ones(3)), RuntimeError, "expected vectors of 2 elements"),
        (lambda: L.solve(tenon.eye(2), tenon.ones(2), left=False), RuntimeError, "`left` must be true"),
        (lambda: L.solve(tenon.eye(2), tenon.ones(2).double()), TypeError, "`B` is float64, `A` is float32"),
        (lambda: L.solve(tenon.eye(2).expand(3, 2, 2), tenon.ones(2, 2, 1)), RuntimeError, "do not broadcast"),
        (lambda: L.lu_solve(tenon.eye(2), tenon.ones(2).long(), tenon.ones(2, 1)), TypeError, "`pivots` of int32"),
        (lambda: L.lu_solve(tenon.eye(2), tenon.ones(3).int(), tenon.ones(2, 1)), RuntimeError, r"`pivots` of shape \[2\]"),
        (lambda: L.lu_solve(tenon.eye(2).requires_grad_(), tenon.ones(1).int(), tenon.ones(2, 1)), RuntimeError, r"^linalg\.lu_solve: expected `pivots` of shape \[2\]"),
        (lambda: tenon.lu_unpack(tenon.eye(2), tenon.ones(1).int()), RuntimeError, r"^lu_unpack: expected `LU_pivots` of shape \[2\] for `LU_data` \[2, 2\], got \[1\]"),
        (lambda: tenon.lu_unpack(tenon.ones(3, 2), tenon.ones(1, 2).int()), RuntimeError, r"`LU_pivots` of shape \[2\] for `LU_data` \[3, 2\]"),
        (lambda: L.lu_solve(tenon.eye(2), tenon.tensor([1, 7]).int(), tenon.ones(2, 1)), RuntimeError, "between 1 and 2, got 7"),
        (lambda: L.ldl_solve(tenon.eye(2), tenon.tensor([1, 7]).int(), tenon.ones(2, 1)), RuntimeError, "not those of linalg_ldl_factor, 7 in place 1"),
        (lambda: L.qr(tenon.eye(2), "full"), RuntimeError, "expected `mode` of 'reduced', 'complete' or 'r', got 'full'"),
        (lambda: L.eigh(tenon.eye(2), "X"), RuntimeError, "expected `UPLO` of 'L' or 'U', got 'X'"),
        (lambda: L.svd(tenon.eye(2), driver="gesvd"), RuntimeError, "`driver` is for CUDA devices alone"),
        (lambda: L.lstsq(tenon.eye(2), tenon.ones(2, 1), driver="qr"), RuntimeError, "expected `driver` of"),
        (lambda: L.lstsq(tenon.eye(2), tenon.ones(3, 1)), RuntimeError, "expected 2 rows"),
        (lambda: L.householder_product(tenon.ones(2, 3), tenon.ones(2)), RuntimeError, "at least as many rows as columns"),
        (lambda: L.householder_product(tenon.ones(3, 2), tenon.ones(3)), RuntimeError, "at most 2 elements"),
        (lambda: tenon.ormqr(tenon.ones(3, 2), tenon.ones(2), tenon.ones(2, 2)), RuntimeError, "expected `input3` with 3 rows"),
        (lambda: L.matrix_power(tenon.ones(2, 3), 2), RuntimeError, "square"),
        (lambda: L.multi_dot([tenon.ones(2, 2)]), RuntimeError, "at least 2 tensors"),
        (lambda: L.multi_dot([tenon.ones(2, 2), tenon.ones(3, 2)]), RuntimeError, "cannot be multiplied"),
        (lambda: L.multi_dot([tenon.ones(2, 2), tenon.ones(2), tenon.ones(2)]), RuntimeError, r"`tensors\[1\]` to be a matrix"),
        (lambda: L.matrix_norm(tenon.ones(3)), RuntimeError, "at least 2 dimensions"),
        (lambda: L.matrix_norm(tenon.ones(3, 3), 3), RuntimeError, "expected `ord` of"),
        (lambda: L.matrix_norm(tenon.ones(3, 3), dim=(0, 0)), RuntimeError, "two different dimensions"),
        (lambda: L.matrix_norm(tenon.ones(3, 3), dim=(0, 5)), IndexError, "out of range"),
        (lambda: L.matrix_norm(tenon.ones(3, 0), -2), IndexError, "matrix_norm: order -2 is the smallest .* without elements has none"),
        (lambda: L.norm(tenon.ones(0, 3), -math.inf), IndexError, "norm: order -inf is the smallest"),
        (lambda: L.vector_norm(tenon.ones(0, 3), math.inf), RuntimeError, "vector_norm: the norm of order inf of no elements does not exist"),
        (lambda: L.norm(tenon.ones(3), "fro"), RuntimeError, "one of matrices"),
        (lambda: L.norm(tenon.ones(3, 3, 3), 2), RuntimeError, "1 or 2 dimensions"),
        (lambda: L.cond(tenon.ones(3)), RuntimeError, "at least 2 dimensions"),
        (lambda: L.cond(tenon.ones(3, 2), 1), RuntimeError, "square"),
        (lambda: L.polar(tenon.ones(2, 3)), RuntimeError, "at least as many rows"),
        (lambda: L.tensorinv(tenon.ones(2, 3), 1), RuntimeError, "as many elements"),
        (lambda: L.tensorinv(tenon.ones(2, 2), 0), RuntimeError, "positive int"),
        (lambda: L.tensorsolve(tenon.ones(2, 3), tenon.ones(2)), RuntimeError, "square system"),
        (lambda: L.vander(tenon.tensor(1.0)), RuntimeError, "at least one dimension"),
        (lambda: L.vander(tenon.ones(2), 0), RuntimeError, "`N` must be at least 1"),
        (lambda: L.cross(tenon.ones(2), tenon.ones(2)), RuntimeError, "3 elements along"),
        (lambda: L.cross(tenon.ones(2, 3), tenon.ones(2, 3), dim=2), IndexError, r"^linalg\.cross: dimension out of range \(expected to be in \[-2, 1\], but got 2"),
        (lambda: L.cross(tenon.ones(3), tenon.ones(2, 3)), RuntimeError, "same number of dimensions"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_out_may_be_the_input():
    a = tenon.tensor([[4.0, 1.0], [2.0, 3.0]])
    expected = L.inv(a)
    assert tenon.equal(L.inv(a, out=a), expected) and tenon.equal(a, expected)


def test_meta_tensors_have_shapes_and_no_errors():
    a = tenon.empty(3, 4, 4, device="meta")
    assert L.inv(a).shape == L.cholesky(a).shape == L.eigh(a).eigenvectors.shape == (3, 4, 4)
    assert L.matrix_exp(a).shape == (3, 4, 4) and L.slogdet(a).logabsdet.shape == (3,)
    assert L.svd(tenon.empty(2, 5, 3, device="meta")).U.shape == (2, 5, 5)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_reflections_of_more_columns_than_rows_are_refused(requires_grad):
    wide = tenon.ones(2, 3, requires_grad=requires_grad)
    with pytest.raises(ValueError, match=r"^linalg\.householder_product: expected `input` with at least as many rows"):
        tenon.linalg.householder_product(wide, tenon.ones(2))


@pytest.mark.parametrize("ord", [1, 2, math.inf, "fro", "nuc"])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 0, 3), (2, 3, 0)])
def test_norms_of_matrices_without_elements_are_zero(ord, shape):
    """The largest of no sums is 0, as in PyTorch."""
    x = tenon.ones(shape, requires_grad=True)
    norm = L.matrix_norm(x, ord)
    assert norm.shape == shape[:-2] and (norm == 0).all()
    assert tenon.autograd.grad(norm.sum(), x)[0].shape == shape
    assert L.norm(x, ord, (-2, -1), keepdim=True).shape == (*shape[:-2], 1, 1)
