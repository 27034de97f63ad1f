"""Reductions."""

from functools import partial

import numpy as np
from scipy.special import logsumexp

from .. import complex_numbers
from ..dtypes import BY_NAME, real_of
from ..rows import (
    ONE_OPERAND as _ONE, Row, binary_samples, dim_samples, filled_samples, reduced_dims, reduction, reduction_along, shape_calls, unary_samples,
)  # fmt: skip
from ..samples import sample, with_options

_NO_EMPTY = {"empty": "the extremum of nothing is an error (errors)"}
_NO_GRADIENT = "gradients are floating numbers"


def _axes(dim):
    return None if dim is None or (isinstance(dim, list) and not dim) else tuple(dim) if isinstance(dim, list) else dim


def _along(f, x, dim=None, keepdim=False, **_):
    """NumPy's reduction over dims; 0-dim tensors have dimension 0 and -1 too."""
    if x.ndim == 0:
        return np.asarray(f(x.reshape(1), axis=0)).reshape(())
    return f(x, axis=_axes(dim), keepdims=keepdim)


def _whole(f):
    return lambda x, **_: f(x)


def _first(extreme, x, axis, keepdims=False):
    """The position of the first extremum; a NaN is one."""
    nan = np.isnan(x) if x.dtype.kind in "fc" else np.zeros(x.shape, bool)
    at = np.where(nan.any(axis), nan.argmax(axis), extreme(np.where(nan, 0, x), axis))
    return np.expand_dims(at, axis) if keepdims else at


def _arg_along(f, x, dim=None, keepdim=False):
    if dim is None:
        at = f(x.reshape(-1), 0)
        return np.asarray(at).reshape((1,) * x.ndim) if keepdim else at
    return _along(f, x, dim, keepdim)


def _arg_samples(m):
    for shape in m.shapes():
        if m.kind != "empty":
            yield sample(m.tensor(shape))
            for dim in reduced_dims(shape):
                yield sample(m.tensor(shape), dim, bool(m.rng.integers(2)))


def _pair(value, position):
    return lambda x, dim, keepdim=False: (_along(value, x, dim, keepdim), _along(position, x, dim, keepdim))


def _widened(f):
    """A NumPy reduction that has integers in int64."""
    return lambda x, axis=None, **options: f(x.astype(np.int64) if x.dtype.kind in "bi" else x, axis=axis, **options)


_sum, _prod = _widened(np.sum), _widened(np.prod)


def _running(f):
    """The same of a dimension as far as each element; 0-dim tensors have dimension 0."""
    return lambda x, dim, dtype=None: _widened(f)(x.reshape(1) if x.ndim == 0 else x, dim).reshape(x.shape)


_cumprod = _running(np.cumprod)


def _mean(x, axis=None, keepdims=False):
    total = np.sum(x, axis=axis, keepdims=keepdims)
    count = x.size // max(np.size(total), 1)
    if x.size == 0:
        return np.mean(x, axis=axis, keepdims=keepdims)
    return complex_numbers.divide(total, np.float64(count))


def _amax_samples(m):
    for shape in m.shapes():
        if 0 not in shape:
            yield sample(m.tensor(shape))
            yield sample(m.tensor(shape), [-1], True)
    if m.kind == "empty":
        yield sample(m.tensor((0, 3)), [1])


def _extremum_dim_samples(m):
    for shape in [(0, 3)] if m.kind == "empty" else m.shapes():
        for dim in [1] if m.kind == "empty" else reduced_dims(shape):
            yield sample(m.tensor(shape), dim, bool(m.rng.integers(2)))


def _moment(f, x, dim=None, correction=1, keepdim=False):
    if x.ndim == 0:
        x, dim, keepdim = x.reshape(1), [0], False
    return f(x, axis=_axes(dim), ddof=1 if correction is None else correction, keepdims=keepdim)


def _moment_samples(m):
    for shape in m.shapes():
        if m.kind == "grad" and not shape:
            continue  # one number has no variance, and no slope
        yield sample(m.tensor(shape))
        yield sample(m.tensor(shape), [0], correction=0)
        if len(shape) > 1:
            yield sample(m.tensor(shape), [-1], keepdim=True)


def _zeros_samples(m):
    """Gradients of products: without zeros, with one, with several."""
    for shape in m.shapes():
        for zeros in (0, 1, 3):
            x = m.tensor(shape, domain=(0.5, 2))
            if shape:
                x.flat[x.offset : x.offset + zeros] = 0
            yield sample(x, -1 if shape else 0)


def _cumprod_backward_samples(m):
    for s in dim_samples(m):
        x, dim = s.args
        if x.dim:
            yield sample(m.tensor(x.shape), x, dim, _result_of(m, x, _cumprod(x.array(), dim)))


def _result_of(m, x, values):
    """What an operator gave, as an argument of its gradient."""
    held = m.tensor(values.shape, x.dtype, layout="contiguous")
    held.flat[: values.size] = BY_NAME[x.dtype].store(values).reshape(-1)
    return held


def _cumprod_backward(g, x, dim, result):
    g, x = np.moveaxis(g, dim, -1), np.moveaxis(x, dim, -1)
    out = np.zeros(np.broadcast_shapes(g.shape, x.shape), np.result_type(g, x))
    for k in range(x.shape[-1]):
        others = x.copy()
        others[..., k] = 1
        out[..., k] = (g * np.conj(np.cumprod(others, -1)))[..., k:].sum(-1)
    return np.moveaxis(out, -1, dim)


def _aminmax_samples(m):
    for shape in [(0, 3)] if m.kind == "empty" else m.shapes():
        if m.kind != "empty":
            yield sample(m.tensor(shape))
        for dim in [1] if m.kind == "empty" else reduced_dims(shape):
            yield sample(m.tensor(shape), dim=dim, keepdim=bool(m.rng.integers(2)))


def _aminmax(x, dim=None, keepdim=False):
    if dim is None:
        return x.min(), x.max()
    return _along(np.min, x, dim, keepdim), _along(np.max, x, dim, keepdim)


def _aminmax_backward_samples(m):
    for shape in m.shapes():
        if 0 in shape or not shape:
            continue
        x, ends = m.tensor(shape, distinct=True), []
        for f in (np.min, np.max):
            ends.append(_result_of(m, x, f(x.array(), 0)))
        yield sample(m.tensor(shape[1:]), m.tensor(shape[1:]), x, *ends, 0, False)


def _aminmax_backward(low, high, x, least, most, dim, keepdim):
    def shared(g, end):
        ties = x == np.expand_dims(end, dim)
        return ties / ties.sum(dim, keepdims=True) * np.expand_dims(g, dim)

    return shared(low, least) + shared(high, most)


def _count(x, dim=None):
    return np.count_nonzero(x, None if x.ndim == 0 else _axes(dim))


def _with_mean(moment, f):
    return lambda x, *args, **options: (moment(f, x, *args, **options), moment(_plain_mean, x, *args, **options))


def _plain_mean(x, axis=None, ddof=0, keepdims=False):
    return np.mean(x, axis=axis, keepdims=keepdims)


def _mean_result(s):
    name = s.specs()[0].dtype
    return real_of(name), name


def _sum_to_size_samples(m):
    if m.kind in ("zero_dim", "empty"):
        yield sample(m.tensor((2, 0) if m.kind == "empty" else ()), [1, 0] if m.kind == "empty" else [])
    else:
        yield sample(m.tensor((2, 3)), [1, 3])
        yield sample(m.tensor((2, 3, 4)), [3, 1])
        yield sample(m.tensor((2, 3)), [])


def _sum_to_size(x, size):
    x = x.astype(np.int64) if x.dtype == bool else x
    lead = x.ndim - len(size)
    x = x.sum(tuple(range(lead)), dtype=x.dtype)
    axes = tuple(i for i, s in enumerate(size) if s == 1)
    return x.sum(axes, keepdims=True, dtype=x.dtype)


@with_options
def _with_dtype(m, samples):
    yield from samples(m)
    if m.kind == "plain" and m.dtype.category != "complex":
        yield sample(m.tensor((3, 2)), dtype="float64")


def _logsumexp_samples(m):
    for shape in m.shapes():
        for dim in reduced_dims(shape):
            if m.kind != "empty" or shape[dim]:
                yield sample(m.tensor(shape), [dim], bool(m.rng.integers(2)))


def _logsumexp(x, axis, keepdims=False):
    if x.dtype.kind == "c":
        shift = np.max(np.where(np.isfinite(x.real), x.real, 0), axis=axis, keepdims=True, initial=-np.inf)
        shift = np.where(np.isfinite(shift), shift, 0).astype(np.longdouble)
        wide = complex_numbers.parts(x.real - shift, x.imag)
        total = np.log(np.exp(wide).sum(axis=axis, keepdims=True))
        result = complex_numbers.parts(total.real + shift, total.imag)
        return result if keepdims else result.reshape(np.max(x.real, axis=axis, initial=0).shape)
    return logsumexp(x.astype(np.float64), axis=axis, keepdims=keepdims)


def _logsumexp_backward_samples(m):
    for shape in m.shapes():
        if shape and 0 not in shape:
            x = m.tensor(shape)
            result = _result_of(m, x, _logsumexp(x.array(), 0))
            yield sample(m.tensor(shape[1:]), x, result, [0], False)


def _logsumexp_backward(g, x, result, dim, keepdim):
    return np.expand_dims(g, 0) * np.conj(np.exp(x - np.expand_dims(result, 0)))


def _float(s):
    name = s.specs()[0].dtype
    return name if name.startswith(("float", "bfloat", "complex")) else "float32"


def _truth(s):
    # uint8 was the dtype of truth values once, and stays it here, as in PyTorch.
    return "uint8" if s.specs()[0].dtype == "uint8" else "bool"


def _summed(s):
    spec, size = s.args
    whole = BY_NAME[spec.dtype].category in ("bool", "integral")
    return "int64" if whole and spec.shape != tuple(size) else spec.dtype


_FLOATS = ("bool", "integral")


@with_options
def _biased(m, *dims):
    """Samples of var and std with the flag `unbiased`."""
    for shape in m.shapes():
        if m.kind != "grad" or shape:
            yield sample(m.tensor(shape), *dims, True)
            yield sample(m.tensor(shape), *dims, False)


def _by_flag(f, x, *args, keepdim=False):
    *dims, unbiased = args
    return _moment(f, x, *dims, correction=int(unbiased), keepdim=keepdim)


def _own_moment_samples(m):
    for shape in m.shapes():
        for dim in reduced_dims(shape):
            yield sample(m.tensor(shape), [dim], 0, bool(m.rng.integers(2)))
    for shape in m.shapes():
        yield sample(m.tensor(shape), None, None, True)


#: Which of two zeros is the larger one is not said.
_ORDERED = dict(refuse=("complex",), signed_zeros=False)
#: Sums of parts; variances are real.
#: Their error is relative to the rounding of the mean too.
_SPREAD = dict(refuse=_FLOATS, ulps=16, absent=_ONE, extremes=False, real=True)
_VAR = dict(**_SPREAD, magnitude=lambda x, *_, **__: 2.0**-50 * np.max(np.abs(x) ** 2, initial=0))
_STD = dict(**_SPREAD, magnitude=lambda x, *_, **__: np.max(np.abs(x), initial=0) / 16)
#: Of real floating numbers, without a derivative: what var and std are made of.
_OWN = dict(direct=True, no_peer="an operator of ours", refuse=("complex",), real=False,
            absent={**_ONE, "bool": "var refuses them", "integral": "var refuses them"}, grad_constant=(0,))  # fmt: skip

_MOMENTS = dict(result=_mean_result, infinite="class", **{k: v for k, v in _SPREAD.items() if k != "real"},
                magnitude=lambda x, *_, **__: (np.max(np.abs(x), initial=0) ** 2, np.max(np.abs(x), initial=0)))  # fmt: skip

ROWS = [
    Row("_row_std_mean", _own_moment_samples, _with_mean(_moment, np.std), result=_mean_result, **{**_STD, **_OWN}),
    Row("_row_var_mean", _own_moment_samples, _with_mean(_moment, np.var), result=_mean_result,
        **{**_VAR, **_OWN, "magnitude": lambda x, *_, **__: (2.0**-50 * np.max(np.abs(x) ** 2, initial=0), np.max(np.abs(x), initial=0))}),
    Row("aminmax", _aminmax_samples, _aminmax, result=lambda s: (s.specs()[0].dtype,) * 2, absent=_ONE, **_ORDERED),
    Row("aminmax_backward", _aminmax_backward_samples, _aminmax_backward, result="self", ulps=4, one_dtype=True,
        grad_constant=(2, 3, 4), no_peer="other signatures",
        absent={**_ONE, "bool": _NO_GRADIENT, "integral": _NO_GRADIENT, "complex": "aminmax refuses them", "promotion": "operands have one dtype", "zero_dim": "amax_backward covers it", "empty": "amax_backward covers it",
                "special": "amax_backward covers it"}),
    Row("count_nonzero", shape_calls(lambda s: [(), *((d,) for d in reduced_dims(s))]), _count, result="int64", absent=_ONE),
    Row("count_nonzero.dim_IntList", shape_calls(lambda s: [([],), ([-1],)] + [([1, 0],)] * (len(s) > 1)),
        lambda x, dim: _count(x, dim or None), result="int64", absent=_ONE),
    Row("cumprod", dim_samples, _cumprod, result="sum", ulps=8, complex_ulps=64, domain=(-2, 2), extremes=False, infinite="order",
        grad_samples=_zeros_samples, absent=_ONE),
    Row("cumprod_backward", _cumprod_backward_samples, _cumprod_backward, result="self", ulps=64, domain=(0.5, 2),
        complex_ulps=256, magnitude=True, one_dtype=True, no_peer="its own derivative is another",
        absent={**_ONE, "bool": _NO_GRADIENT, "integral": _NO_GRADIENT, "promotion": "operands have one dtype", "zero_dim": "cumprod covers it", "special": "cumprod covers it",
                "empty": "cumprod covers it"}, grad_constant=(3,)),
    Row("std_mean.correction", _moment_samples, _with_mean(_moment, np.std), inner="std", **_MOMENTS),
    Row("std_mean", _biased(), _with_mean(_by_flag, np.std), inner="std", **_MOMENTS),
    Row("std_mean.dim", _biased([0]), _with_mean(_by_flag, np.std), inner="std", **_MOMENTS),
    Row("var_mean.correction", _moment_samples, _with_mean(_moment, np.var), inner="var", **_MOMENTS),
    Row("var_mean", _biased(), _with_mean(_by_flag, np.var), inner="var", **_MOMENTS),
    Row("var_mean.dim", _biased([0]), _with_mean(_by_flag, np.var), inner="var", **_MOMENTS),
    reduction("all", lambda x: np.all(x), result=_truth, absent=_ONE),
    reduction("any", lambda x: np.any(x), result=_truth, absent=_ONE),
    reduction_along("all.dim", partial(_along, np.all), result=_truth, absent=_ONE),
    reduction_along("any.dim", partial(_along, np.any), result=_truth, absent=_ONE),
    reduction_along("all.dims", partial(_along, np.all), lists=True, result=_truth, absent=_ONE),
    reduction_along("any.dims", partial(_along, np.any), lists=True, result=_truth, absent=_ONE),
    Row("amax", _amax_samples, partial(_along, np.max), result="self", absent=_ONE, **_ORDERED),
    Row("amin", _amax_samples, partial(_along, np.min), result="self", absent=_ONE, **_ORDERED),
    Row("argmax", _arg_samples, partial(_arg_along, partial(_first, np.argmax)), result="int64", absent={**_NO_EMPTY, **_ONE}, **_ORDERED),
    Row("argmin", _arg_samples, partial(_arg_along, partial(_first, np.argmin)), result="int64", absent={**_NO_EMPTY, **_ONE}, **_ORDERED),
    Row("cumsum", dim_samples, _running(np.cumsum), result="sum", ulps=4, magnitude=True, infinite="class", absent=_ONE),
    Row("logsumexp", _logsumexp_samples, partial(_along, _logsumexp), result=_float, ulps=6, 
        complex_ulps=16, infinite="class", absent=_ONE,
        magnitude=lambda x, *_: np.max(x.real, initial=1)),
    Row("_row_logsumexp", _logsumexp_samples, partial(_along, _logsumexp), result=_float, ulps=6, infinite="class",
        direct=True, no_peer="an operator of ours", refuse=("complex",), absent=_ONE, magnitude=lambda x, *_: np.max(x.real, initial=1)),
    Row("logsumexp_backward", _logsumexp_backward_samples, _logsumexp_backward, result="self", ulps=64, magnitude=True,
        grad_constant=(2,), no_peer="its own derivative is another", absent={**_ONE, "bool": _NO_GRADIENT, "integral": _NO_GRADIENT,
        "promotion": "operands have one dtype", "zero_dim": "logsumexp covers it", "empty": "logsumexp covers it",
        "special": "logsumexp covers it"}),
    Row("max", filled_samples, np.max, result="self", absent={**_NO_EMPTY, **_ONE}, **_ORDERED),
    Row("min", filled_samples, np.min, result="self", absent={**_NO_EMPTY, **_ONE}, **_ORDERED),
    Row("max.dim", _extremum_dim_samples, _pair(np.max, partial(_first, np.argmax)), absent=_ONE,
        result=lambda s: (s.specs()[0].dtype, "int64"), **_ORDERED),
    Row("min.dim", _extremum_dim_samples, _pair(np.min, partial(_first, np.argmin)), absent=_ONE,
        result=lambda s: (s.specs()[0].dtype, "int64"), **_ORDERED),
    Row("max.other", binary_samples(), np.maximum, operands=(0, 1), **_ORDERED),
    Row("min.other", binary_samples(), np.minimum, operands=(0, 1), **_ORDERED),
    reduction("mean", lambda x, dtype=None: _mean(x), samples=unary_samples(), result="self", refuse=_FLOATS, ulps=4,
              magnitude=True, absent=_ONE),
    reduction_along("mean.dim", partial(_along, _mean), lists=True, result="self", refuse=_FLOATS, ulps=4, magnitude=True,
                    absent=_ONE),
    reduction("prod", _whole(_prod), result="sum", ulps=8, complex_ulps=64, absent=_ONE, domain=(-2, 2), extremes=False, infinite="order", samples=_with_dtype(unary_samples())),
    reduction_along("prod.dim_int", partial(_along, _prod), result="sum", ulps=8, complex_ulps=64, absent=_ONE, domain=(-2, 2), extremes=False, infinite="order"),
    reduction("sum", _whole(_sum), result="sum", ulps=4, magnitude=True, infinite="class", absent=_ONE, samples=_with_dtype(unary_samples())),
    reduction_along("sum.dim_IntList", partial(_along, _sum), lists=True, result="sum", ulps=4, magnitude=True, infinite="class", absent=_ONE),
    Row("sum_to_size", _sum_to_size_samples, _sum_to_size, result=_summed, ulps=4, magnitude=True, infinite="class", absent=_ONE),
    Row("_row_std", _own_moment_samples, partial(_moment, np.std), result="self", **{**_STD, **_OWN}),
    Row("_row_var", _own_moment_samples, partial(_moment, np.var), result="self", **{**_VAR, **_OWN}),
    Row("std.correction", _moment_samples, partial(_moment, np.std), result="self", inner="var", **_STD),
    Row("std", _biased(), partial(_by_flag, np.std), result="self", **_STD),
    Row("std.dim", _biased([0]), partial(_by_flag, np.std), result="self", **_STD),
    Row("var", _biased(), partial(_by_flag, np.var), result="self", **_VAR),
    Row("var.dim", _biased([0]), partial(_by_flag, np.var), result="self", **_VAR),
    Row("var.correction", _moment_samples, partial(_moment, np.var), result="self", **_VAR),
]  # fmt: skip
