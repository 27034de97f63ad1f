"""Linear algebra: matrices that are well-conditioned whatever their strides, against NumPy in float64."""

import numpy as np

from ..rows import Row
from ..samples import sample, with_options

_HALVES = ("integral", "bool", "float16", "bfloat16")
_REPEATED = "matrices of repeated elements are singular"
_TRIANGLE = "a triangle is read: tests/python/linalg differentiate symmetric matrices"
_PHASES = "vectors have any phase: tests/python/linalg differentiate what does not depend on it"
_ABSENT = {
    "zero_dim": "the rank is fixed", "channels_last": "the rank is fixed", "expanded": _REPEATED, "overlapping": _REPEATED,
    "special": "what is not finite has no factorization", "promotion": "operands must have one dtype",
}  # fmt: skip
_ONE = {**_ABSENT, "promotion": "one operand"}
#: How far results may be from the reference, relative to the largest element of any result and to the condition.
_ULPS, _COMPLEX_ULPS = 300, 3000


def _adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def _matrix(m, rows, columns, batch=()):
    """Far from singular: 6, 7, ... are added to the diagonal."""
    most = 3.0 / max(rows, columns, 1)
    spec = m.tensor((*batch, rows, columns), domain=(-most, most))
    a = spec.array()
    for i in range(min(rows, columns)):
        a[..., i, i] = np.asarray(6 + i + a[..., i, i].real * 0.25 + (a[..., i, i].imag * 0.25j if np.iscomplexobj(a) else 0))
    stored = spec.stored()
    spec.flat[...] = stored.astype(spec.flat.dtype)
    return spec


def _shapes(m):
    if m.ranked([0] * 2) is None:
        return []
    if m.kind == "empty":
        return [((), 0), ((0,), 2), ((2,), 0)]
    return [((), 2)] if m.kind == "grad" else [((), 3), ((2,), 3), ((), 35)] if m.kind == "plain" else [((2,), 3)]


@with_options
def _square(m, *arguments, **options):
    for batch, n in _shapes(m):
        yield sample(_matrix(m, n, n, batch), *arguments, **options)


@with_options
def _tall(m, *arguments, rows=1, **options):
    for batch, n in _shapes(m):
        yield sample(_matrix(m, n + rows, n, batch), *arguments, **options)


@with_options
def _with_right(m, right_first=False, rows=0, **options):
    for batch, n in _shapes(m):
        a = _matrix(m, n + rows, n, batch)
        b = m.tensor((*batch, n + rows, 2))
        yield sample(*((b, a) if right_first else (a, b)), **options)


def _as_bounds(reference):
    """Each result as large as the largest element of all, so that small ones may have its error."""

    def bound(*args, **kwargs):
        results = reference(*args, **kwargs)
        listed = results if isinstance(results, tuple) else (results,)
        most = max((float(np.max(np.abs(r), initial=1.0)) for r in listed), default=1.0)
        sizes = [float(np.max(np.abs(a), initial=1.0)) for a in args if isinstance(a, np.ndarray)]
        bounds = tuple(np.full(np.shape(r), max([most, *sizes])) for r in listed)
        return bounds if isinstance(results, tuple) else bounds[0]

    return bound


def _row(name, samples, reference, result="self", one=True, **options):
    absent = {**(_ONE if one else _ABSENT), **options.pop("absent", {})}
    options.setdefault("refuse", _HALVES)
    return Row(name, samples, reference, result=result, absent=absent, ulps=_ULPS, complex_ulps=_COMPLEX_ULPS,
               magnitude=_as_bounds(reference), signed_zeros=False, one_dtype=() if one else (0, 1), **options)  # fmt: skip


def _own(s):
    return s.specs()[0].dtype


def _real(s):
    return {"complex64": "float32", "complex128": "float64"}.get(_own(s), _own(s))


def _complex(s):
    return {"float32": "complex64", "float64": "complex128"}.get(_own(s), _own(s))


def _results(*names):
    """dtypes of several results: "self", "real", "complex" or a dtype."""
    kinds = {"self": _own, "real": _real, "complex": _complex}
    return lambda s: tuple(kinds[n](s) if n in kinds else n for n in names)


def _info(a):
    return np.zeros(a.shape[:-2], np.int64)


def _cholesky(a, upper=False):
    read = _adjoint(np.triu(a)) if upper else np.tril(a)
    diagonal = np.diagonal(read, 0, -2, -1).real[..., None] * np.eye(a.shape[-1])
    below = np.tril(read, -1)
    low = np.linalg.cholesky(below + _adjoint(below) + diagonal)
    return _adjoint(low) if upper else low


def _lu(a):
    """Elimination with partial pivoting, one matrix at a time: factors and exchanges from 1."""
    lu, (m, n) = a.copy(), a.shape[-2:]
    pivots = np.zeros((*a.shape[:-2], min(m, n)), np.int64)
    for entry in np.ndindex(a.shape[:-2]):
        x = lu[entry]
        for k in range(min(m, n)):
            p = k + int(np.argmax(np.abs(x[k:, k].real) + np.abs(x[k:, k].imag)))
            pivots[(*entry, k)] = p + 1
            x[[k, p]] = x[[p, k]]
            x[k + 1 :, k] /= x[k, k]
            x[k + 1 :, k + 1 :] -= np.outer(x[k + 1 :, k], x[k, k + 1 :])
    return lu, pivots


def _unpack(lu, pivots):
    m, n = lu.shape[-2:]
    k = min(m, n)
    p = np.zeros((*lu.shape[:-2], m, m))
    for entry in np.ndindex(lu.shape[:-2]):
        order = list(range(m))
        for i, j in enumerate(pivots[entry]):
            order[i], order[j - 1] = order[j - 1], order[i]
        p[entry][order, range(m)] = 1
    return p.astype(lu.dtype), np.tril(lu[..., :k], -1) + np.eye(m, k), np.triu(lu[..., :k, :])


def _solve(a, b, left=True, **_):
    return np.linalg.solve(a, b) if left else _adjoint(np.linalg.solve(_adjoint(a), _adjoint(b)))


def _triangle(a, b, upper, left=True, unitriangular=False):
    t = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        n = a.shape[-1]
        t = t * (1 - np.eye(n)) + np.eye(n)
    return _solve(t, b, left)


def _turned(v):
    """Columns with a real and positive largest element, of those that are nearly so the first."""
    if v.shape[-2] == 0 or v.size == 0:
        return v, np.ones((*v.shape[:-2], 1, v.shape[-1]))
    size = np.abs(v)
    first = np.argmax(size >= 0.998**0.5 * size.max(-2, keepdims=True), -2)[..., None, :]
    chosen = np.take_along_axis(v, first, -2)
    phase = np.conj(chosen) / np.abs(chosen)
    return v * phase, phase


def _eigh(a, UPLO="L", *_):
    t = np.tril(a, -1) if UPLO == "L" else _adjoint(np.triu(a, 1))
    h = t + _adjoint(t) + np.diagonal(a, 0, -2, -1).real[..., None] * np.eye(a.shape[-1])
    values, vectors = np.linalg.eigh(h)
    return values, _turned(vectors)[0]


def _svd(a, full_matrices=False, *_, **__):
    u, s, vh = np.linalg.svd(a, full_matrices=full_matrices)
    k = s.shape[-1]
    v, phase = _turned(_adjoint(vh)[..., :k])
    return u[..., :k] * phase, s, _adjoint(v)


def _qr(a, mode="reduced"):
    return tuple(np.linalg.qr(a, mode))


def _geqrf(a):
    if a.ndim > 2 or a.size == 0:
        parts = [_geqrf(x) for x in a.reshape(-1, *a.shape[-2:])] if a.size else []
        shape = (*a.shape[:-2], min(a.shape[-2:]))
        if not parts:
            return a.copy(), np.zeros(shape, a.dtype)
        return np.stack([p[0] for p in parts]).reshape(a.shape), np.stack([p[1] for p in parts]).reshape(shape)
    h, tau = np.linalg.qr(a, "raw")
    return h.T, tau


def _householder(v, tau):
    m, n = v.shape[-2:]
    q = np.broadcast_to(np.eye(m, dtype=v.dtype), (*v.shape[:-2], m, m)).copy()
    for i in range(tau.shape[-1]):
        w = np.tril(v, -1)[..., i] + np.eye(m)[i]
        q = q - tau[..., i, None, None] * (q @ w[..., None]) @ np.conj(w)[..., None, :]
    return q[..., :n]


def _permutation(pivots, rows):
    return np.argmax(np.swapaxes(_unpack(np.zeros((*pivots.shape[:-1], rows, pivots.shape[-1])), pivots)[0], -1, -2), -1)


def _expm(a):
    """By scaling, a long Taylor series and squaring."""
    one = np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    term, total = one, one
    for i in range(1, 30):
        term = term @ a / (4 * i)
        total = total + term
    return np.linalg.matrix_power(total, 4)


@with_options
def _small(m, *arguments):
    for batch, n in _shapes(m):
        if n != 35:
            yield sample(m.tensor((*batch, n, n), domain=(-1.0, 1.0)), *arguments)


def _factors(m, batch, n):
    """Factors, exchanges and a right side."""
    a = _matrix(m, n, n, batch)
    pivots = m.tensor((*batch, n), dtype="int32", domain=(n, n), layout="contiguous")
    pivots.flat[...] = np.maximum(pivots.flat, 1)
    return a, pivots


@with_options
def _lu_operands(m, *, right_first=False, right=True):
    for batch, n in _shapes(m):
        a, pivots = _factors(m, batch, n)
        m.made = 0
        b = m.tensor((*batch, n, 2), layout="contiguous")
        yield sample(b, a, pivots) if right_first else sample(a, pivots, b) if right else sample(a, pivots)


def _lu_solve(lu, pivots, b, **_):
    p, low, up = _unpack(lu, pivots)
    return np.linalg.solve(p @ low @ up, b)


@with_options
def _reflections(m, count):
    for batch, n in _shapes(m):
        v = m.tensor((*batch, n + 1, n), domain=(-0.4, 0.4))
        tau = m.tensor((*batch, n), domain=(0.2, 1.0))
        yield sample(v, tau, *([m.tensor((*batch, n + 1, 2))] if count == 3 else []))


def _chain(m):
    if m.ranked([0] * 2) is None:
        return
    n = m.size(3)
    yield sample([m.tensor((2, 4)), m.tensor((4, n)), m.tensor((n, 2))])
    yield sample([m.tensor((4,)), m.tensor((4, n)), m.tensor((n,))])


def _pinv(a, *_, **__):
    return np.linalg.pinv(a)


def _lstsq(a, b, *_, **__):
    empty = np.zeros(0)
    return np.linalg.pinv(a) @ b, empty, np.full(a.shape[:-2], min(a.shape[-2:])), empty


def _upper(m):
    """Triangles, whose eigenvalues have the order of the diagonal."""
    for batch, n in _shapes(m):
        spec = _matrix(m, n, n, batch)
        a = spec.array()
        a[...] = np.triu(a)
        yield sample(spec)


def _eig(a):
    if a.size == 0:
        return np.zeros(a.shape[:-1], complex), np.zeros(a.shape, complex)
    values, vectors = np.linalg.eig(a)
    return values.astype(complex), _turned(vectors.astype(complex))[0]


def _bounded(m):
    for batch, n in _shapes(m):
        yield sample(_matrix(m, n + 1, n, batch), rtol=m.tensor((), dtype="float32", domain=(1e-6, 1e-5), layout="contiguous"))


def _exchanges(m):
    for batch, n in _shapes(m):
        yield sample(m.tensor((*batch, n), dtype="int32", domain=(1, 1)), n + 1)


def _ldl(a):
    """Without exchanges, which a large diagonal needs none of: L below the diagonal, D on it."""
    low, n = np.tril(a), a.shape[-1]
    for k in range(n):
        column = low[..., k + 1 :, k] / low[..., k, k][..., None]
        low[..., k + 1 :, k + 1 :] -= np.tril(column[..., :, None] * low[..., None, k + 1 :, k])
        low[..., k + 1 :, k] = column
    return low, np.broadcast_to(np.arange(1, n + 1), a.shape[:-1]).copy()


def _ldl_operands(m):
    for batch, n in _shapes(m):
        a = _matrix(m, n, n, batch)
        pivots = m.tensor((*batch, n), dtype="int32", layout="contiguous")
        pivots.flat[...] = np.arange(len(pivots.flat)) % max(n, 1) + 1
        m.made = 0
        yield sample(a, pivots, m.tensor((*batch, n, 2), layout="contiguous"))


def _ldl_solve(a, pivots, b):
    n = a.shape[-1]
    low = np.tril(a, -1) + np.eye(n)
    return np.linalg.solve(low @ (np.diagonal(a, 0, -2, -1)[..., None] * np.swapaxes(low, -1, -2)), b)


def _ormqr(v, tau, c):
    m, n = v.shape[-2:]
    whole = np.concatenate([v, np.zeros((*v.shape[:-1], m - n))], -1)
    return _householder(whole, tau) @ c


def _svd_turned(a):
    u, s, vh = _svd(a)
    return u, s, _adjoint(vh)


_HALF_READ = {"absent": {"grad": _TRIANGLE}}


ROWS = [
    _row("cholesky linalg_cholesky", _square(), _cholesky, **_HALF_READ),
    _row("linalg_cholesky_ex", _square(), lambda a: (_cholesky(a), _info(a)), _results("self", "int32"), **_HALF_READ),
    _row("cholesky_inverse", _square(), lambda a: np.linalg.inv(np.tril(a) @ _adjoint(np.tril(a)))),
    _row("cholesky_solve", _with_right(True), lambda b, a: np.linalg.solve(np.tril(a) @ _adjoint(np.tril(a)), b), one=False),
    _row("linalg_inv inverse", _square(), np.linalg.inv),
    _row("linalg_inv_ex", _square(), lambda a: (np.linalg.inv(a), _info(a)), _results("self", "int32")),
    _row("linalg_solve", _with_right(), _solve, one=False),
    _row("linalg_solve_ex", _with_right(), lambda a, b: (_solve(a, b), _info(a)), _results("self", "int32"), one=False),
    _row("_linalg_solve_ex", _with_right(), lambda a, b: (_solve(a, b), *_lu(a), _info(a)), _results("self", "self", "int32", "int32"), one=False),
    _row("linalg_solve_triangular", _with_right(upper=True), _triangle, one=False),
    _row("triangular_solve", _with_right(True), lambda b, a: (_triangle(a, b, True), a), _results("self", "self"), one=False),
    _row("linalg_lu_factor", _tall(), _lu, _results("self", "int32")),
    _row("linalg_lu_factor_ex", _tall(), lambda a: (*_lu(a), _info(a)), _results("self", "int32", "int32")),
    _row("linalg_lu", _tall(), lambda a: _unpack(*_lu(a)), _results("self", "self", "self")),
    _row("lu_unpack", _lu_operands(right=False), _unpack, _results("self", "self", "self")),
    _row("linalg_lu_solve", _lu_operands(), _lu_solve),
    _row("_linalg_lu_solve", _lu_operands(), _lu_solve, grad_constant=(0,)),
    _row("lu_solve", _lu_operands(right_first=True), lambda b, lu, pivots: _lu_solve(lu, pivots, b)),
    _row("_linalg_det", _square(), lambda a: (np.linalg.det(a), *_lu(a)), _results("self", "self", "int32")),
    _row("linalg_det det", _small(), np.linalg.det),
    _row("linalg_slogdet slogdet", _square(), lambda a: tuple(np.linalg.slogdet(a)), _results("self", "real")),
    _row("linalg_qr qr", _tall(), _qr, _results("self", "self")),
    _row("geqrf", _tall(), _geqrf, _results("self", "self")),
    _row("_householder_product linalg_householder_product orgqr", _reflections(2), _householder, one=False),
    _row("_linalg_eigh", _square("L", True), _eigh, _results("real", "self"), absent={"grad": _TRIANGLE}),
    _row("linalg_eigh", _square(), _eigh, _results("real", "self"), absent={"grad": _TRIANGLE}),
    _row("linalg_eigvalsh", _square(), lambda a: _eigh(a)[0], _real, absent={"grad": _TRIANGLE}),
    _row("_linalg_svd", _tall(), _svd, _results("self", "real", "self"), absent={("complex", "grad"): _PHASES}),
    _row("linalg_svd", _square(), _svd, _results("self", "real", "self"), absent={("complex", "grad"): _PHASES}),
    _row("linalg_svdvals", _tall(), lambda a: np.linalg.svd(a, compute_uv=False), _real),
    _row("linalg_matrix_exp matrix_exp", _small(), _expm),
    _row("linalg_matrix_power matrix_power", _small(3), lambda a, n: np.linalg.matrix_power(a, n), refuse=("bool",)),
    _row("linalg_pinv", _tall(1e-6), _pinv),
    _row("linalg_pinv.atol_rtol_float", _tall(rtol=1e-6), _pinv),
    _row("pinverse", _tall(), _pinv),
    _row("linalg_lstsq", _with_right(rows=1), _lstsq, _results("self", "real", "int64", "real"), one=False),
    _row("linalg_ldl_factor", _square(), _ldl, _results("self", "int32")),
    _row("linalg_ldl_factor_ex", _square(), lambda a: (*_ldl(a), _info(a)), _results("self", "int32", "int32")),
    _row("linalg_ldl_solve", _ldl_operands, _ldl_solve),
    _row("ormqr", _reflections(3), _ormqr, one=False),
    _row("svd", _tall(), _svd_turned, _results("self", "real", "self"), absent={("complex", "grad"): _PHASES}),
    _row("logdet", _small(), lambda a: np.log(np.linalg.det(a)), absent={"grad": "a determinant below 0 has none"}),
    _row("linalg_multi_dot", _chain, lambda chain: np.linalg.multi_dot(chain), refuse=("bool",)),
    _row("_linalg_eig", lambda m: (sample(s.args[0], True) for s in _upper(m)), lambda a, _: _eig(a), _results("complex", "complex"),
         absent={"grad": _PHASES}),
    _row("linalg_eig", _upper, _eig, _results("complex", "complex"), absent={"grad": _PHASES}),
    _row("linalg_eigvals", _upper, lambda a: _eig(a)[0], _complex, absent={"grad": "samples are triangles: tests/python/linalg"}),
    _row("linalg_pinv.atol_rtol_tensor", _bounded, _pinv, absent={"grad": "bounds have no derivative"}),
    Row("_pivots_to_permutation", _exchanges, _permutation, result="int64",
        absent={**_ONE, "expanded": "exchanges are int32", "overlapping": "exchanges are int32"}),
]  # fmt: skip
