"""einsum, tensordot and products with something added, against NumPy in float64."""

import numpy as np
import pytest

import tenon

rng = np.random.default_rng(0)


def arrays(*shapes):
    return [rng.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ij,jk->ki", [(2, 3), (3, 4)]),
        ("ij->ji", [(2, 3)]),
        ("ii", [(3, 3)]),
        ("ii->i", [(3, 3)]),
        ("iij->j", [(3, 3, 2)]),
        ("iji,j->i", [(3, 2, 3), (2,)]),
        ("ij->", [(2, 3)]),
        ("i,i->", [(4,), (4,)]),
        ("i,j,k->kji", [(2,), (3,), (4,)]),
        ("bij,bjk,bkl->bil", [(2, 3, 4), (2, 4, 2), (2, 2, 5)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
        ("...i->...", [(2, 3, 4)]),
        ("i...,i...->...", [(2, 3), (2, 3)]),
        ("ij,kl->ijkl", [(2, 3), (4, 5)]),
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        (" i j , j -> i ", [(2, 3), (3,)]),
        ("Ab,bA", [(2, 3), (3, 2)]),
        ("zyx->xz", [(2, 3, 4)]),
        ("ij,jk->ik", [(2, 0), (0, 3)]),
        (",ij->ij", [(), (2, 3)]),
        ("ijk,ijk,jk->i", [(2, 3, 4), (2, 3, 4), (3, 4)]),
    ],
)
def test_sums_of_products_follow_the_equation(equation, shapes):
    values = arrays(*shapes)
    want = np.einsum(equation, *values)
    got = tenon.einsum(equation, *map(tenon.tensor, values))
    assert tuple(got.shape) == want.shape
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(tenon.einsum(equation, list(map(tenon.tensor, values))).numpy(), want, rtol=1e-13, atol=1e-13)


def test_random_equations():
    for seed in range(150):
        r = np.random.default_rng(seed)
        sizes = {c: int(r.integers(1, 4)) for c in "abcde"}
        terms = ["".join(r.permutation(list("abcde"))[: r.integers(1, 4)]) for _ in range(r.integers(1, 4))]
        used = sorted(set("".join(terms)))
        result = "".join(r.permutation(used)[: r.integers(0, len(used) + 1)])
        equation = ",".join(terms) + "->" + result
        values = [r.standard_normal([sizes[c] for c in term]) for term in terms]
        got = tenon.einsum(equation, *map(tenon.tensor, values))
        np.testing.assert_allclose(got.numpy(), np.einsum(equation, *values), rtol=1e-12, atol=1e-12, err_msg=equation)


def test_dimensions_may_be_numbered_and_a_size_of_1_broadcasts():
    a, b = arrays((2, 3), (3, 4))
    x, y = tenon.tensor(a), tenon.tensor(b)
    np.testing.assert_allclose(tenon.einsum(x, [0, 1], y, [1, 2], [2, 0]).numpy(), (a @ b).T, rtol=1e-13)
    np.testing.assert_allclose(tenon.einsum(x, [0, 1], y, [1, 2]).numpy(), a @ b, rtol=1e-13)
    np.testing.assert_allclose(tenon.einsum(x, [..., 1], y, [1, 2], [..., 2]).numpy(), a @ b, rtol=1e-13)
    one = rng.standard_normal((1, 3))
    np.testing.assert_allclose(
        tenon.einsum("ij,ij->ij", tenon.tensor(one), x).numpy(), one * a, rtol=1e-13
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: tenon.einsum("ij,jk", x), "has 2 operands, and 1 tensor were given"),
        (lambda x: tenon.einsum("i", x), r"names 1 dimension, and the tensor has shape \[2, 3\]"),
        (lambda x: tenon.einsum("ij->k", x), "names 'k', a dimension that no operand has"),
        (lambda x: tenon.einsum("ij->ii", x), "names dimension 'i' twice"),
        (lambda x: tenon.einsum("i1", x), "'1' in 'i1' is no letter"),
        (lambda x: tenon.einsum("i.j", x), "not part of one ellipsis"),
        (lambda x: tenon.einsum("ii", x), "dimension 'i', .*, needs one size, got 2 and 3"),
        (lambda x: tenon.einsum("ij,jk", x, x), "dimension 'j' of 'ij,jk' has size 3 in operand 0 and 2 in operand 1"),
        (lambda x: tenon.einsum("ij,jk", x, x.double()), "must have one dtype"),
        (lambda x: tenon.tensordot(x, x, 3), "dims is 3, and the tensors have 2 and 2 dimensions"),
        (lambda x: tenon.tensordot(x, x, ([0], [1])), "dimension 0 of `self` has size 2, and dimension 1 of `other` 3"),
        (lambda x: tenon.baddbmm(x, x, x), "baddbmm: expected `batch1` of 3 dimensions"),
        (lambda x: tenon.addmv(x, x, x[0]), "does not broadcast to the product"),
        (lambda x: x.addr_(x[0], x[:, 0]), r"the result has shape \[3, 2\], and `self` \[2, 3\]|does not broadcast"),
    ],
)
def test_what_does_not_fit_is_named(call, message):
    with pytest.raises((ValueError, RuntimeError, TypeError), match=message):
        call(tenon.ones(2, 3))


def test_tensordot_takes_numbers_and_lists():
    a, b = arrays((2, 3, 4), (3, 4, 5))
    x, y = tenon.tensor(a), tenon.tensor(b)
    np.testing.assert_allclose(tenon.tensordot(x, y).numpy(), np.tensordot(a, b), rtol=1e-13)
    np.testing.assert_allclose(tenon.tensordot(x, y, dims=([1, 2], [0, 1])).numpy(), np.tensordot(a, b), rtol=1e-13)
    np.testing.assert_allclose(tenon.tensordot(x, y, 0).numpy(), np.tensordot(a, b, 0), rtol=1e-13)
    out = tenon.empty(2, 5, dtype=tenon.float64)
    assert tenon.tensordot(x, y, 2, out=out) is out


def test_derivatives():
    x = tenon.tensor(rng.standard_normal((2, 3)), requires_grad=True)
    y = tenon.tensor(rng.standard_normal((3, 2)), requires_grad=True)
    c = tenon.tensor(rng.standard_normal((2,)), requires_grad=True)
    check = tenon.autograd.gradcheck
    assert check(lambda a, b: tenon.einsum("ij,jk->k", a, b), (x, y))
    assert check(lambda a, b: tenon.einsum("ij,ji->i", a, b), (x, y))
    assert check(lambda c, a, b: tenon.addmv(c, a, b[:, 0], beta=2, alpha=3), (c, x, y))
    assert check(lambda a, b: tenon.tensordot(a, b, ([0], [1])), (x, y))


def test_a_factor_of_zero_does_not_read():
    bad = tenon.full((2, 2), float("nan"))
    assert tenon.addr(bad, tenon.ones(2), tenon.ones(2), beta=0).tolist() == [[1.0, 1.0]] * 2
    assert tenon.baddbmm(bad, tenon.ones(1, 2, 2), tenon.ones(1, 2, 2), beta=0).tolist() == [[[2.0, 2.0]] * 2]


@pytest.mark.parametrize("dtype", [tenon.int64, tenon.int32, tenon.int8])
@pytest.mark.parametrize(("beta", "alpha"), [(2.5, 1.5), (1, -1.9), (-2.9, 1), (0.5, 1), (1, 0.5)])
def test_integers_cut_the_fraction_of_factors_off(dtype, beta, alpha):
    vector, matrix = np.array([10, 20]), np.array([[1, 2], [3, 4]])
    v, m, ones = tenon.tensor(vector).to(dtype), tenon.tensor(matrix).to(dtype), tenon.ones(2, dtype=dtype)
    b, a = int(beta), int(alpha)
    factors = {"beta": beta, "alpha": alpha}
    sums = b * vector + a * matrix.sum(1)
    products = b * vector + a * (matrix @ matrix)
    calls = {
        "addmv": ((v, m, ones), sums),
        "addmm": ((v, m, m), products),
        "addbmm": ((v, m[None], m[None]), products),
        "baddbmm": ((v, m[None], m[None]), products[None]),
    }
    for name, (arguments, want) in calls.items():
        got = getattr(tenon, name)(*arguments, **factors)
        assert (got.dtype, got.tolist()) == (dtype, want.tolist()), name
        first = arguments[0].expand(want.shape).clone()
        written = getattr(first, name + "_")(*arguments[1:], **factors)
        assert written is first and written.tolist() == want.tolist(), name
        out = tenon.empty(0, dtype=dtype)
        assert getattr(tenon, name)(*arguments, **factors, out=out) is out and out.tolist() == want.tolist(), name


def test_factors_that_integers_do_not_have_are_refused():
    v, m = tenon.tensor([10, 20]), tenon.tensor([[1, 2], [3, 4]])
    for value in (float("nan"), float("inf"), 1e30):
        with pytest.raises(ValueError, match=r"^addmv: for int64 tensors, `beta` must be a number within int64"):
            tenon.addmv(v, m, v, beta=value)
        with pytest.raises(ValueError, match=r"^addmm: for int64 tensors, `alpha` must be a number within int64"):
            tenon.addmm(v, m, m, alpha=value)
    for call in (lambda: tenon.addmm(v, m, m, alpha=1j), lambda: tenon.addmm(v * 1.0, m * 1.0, m * 1.0, alpha=1j)):
        with pytest.raises(TypeError, match=r"^addmm: for \w+ tensors, `alpha` must not be a complex number"):
            call()
    # PyTorch asks addr alone for integers.
    for factors in ({"beta": 2.5}, {"alpha": 0.5}):
        with pytest.raises(TypeError, match=r"^addr: for int64 tensors, `\w+` must be an integer, got \d\.5$"):
            tenon.addr(m, v, v, **factors)
