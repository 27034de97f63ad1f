"""Random numbers: properties of what is drawn, and that a seed repeats it. Their values are tested in tests/random."""

import numpy as np

import tenon
from ..library import TENON
from ..rows import ONE_OPERAND as _ONE, Row, unary_calls, unary_samples
from ..samples import KINDS, sample, with_options

_WHY = "random: bounds, variety and repetition by the seed are checked"
_KINDS = {k: "takes sizes, no tensor" for k in
          ("transposed", "expanded", "negative", "sliced", "channels_last", "overlapping", "special", "promotion")}  # fmt: skip
_SIZES = {"plain": [[40, 5]], "empty": [[0], [2, 0]], "zero_dim": [[]], "large": [[2**17 + 1]]}
_NUMBERS_ONLY = {**_KINDS, "empty": "a count", "zero_dim": "a count"}


_COUNTS = {"plain": (40, 0), "large": (2**17 + 1,)}


@with_options
def _sized(m, *before, generator=False, sizes=_SIZES):
    for size in sizes.get(m.kind, ()):
        options = {"generator": tenon.Generator().manual_seed(5)} if generator else {}
        yield sample(*before, size, dtype=m.dtype.name, **options)


def _numbers(r):
    """The real numbers drawn; both parts of complex ones."""
    parts = tenon.view_as_real(r.detach()) if r.is_complex() else r.detach()
    return parts.reshape([-1]).to(tenon.float64).tolist()


def _within(low, high, whole=False):
    def check(r, *args, **kwargs):
        found = _numbers(r)
        assert all(low <= v < high for v in found), f"values outside [{low}, {high}): {found}"
        assert not whole or all(v == int(v) for v in found)
        if len(found) >= 100:
            assert len(set(found)) >= (high - low if whole else 40), f"little variety: {sorted(set(found))}"

    return check


def _normal(r, *args, **kwargs):
    found = _numbers(r)
    if len(found) >= 100:
        mean = sum(found) / len(found)
        spread = (sum((v - mean) ** 2 for v in found) / len(found)) ** 0.5
        # The variance of a complex number is that of both parts together.
        expected = 0.5**0.5 if r.is_complex() else 1
        assert abs(mean) < 6 / len(found) ** 0.5 and 0.75 < spread / expected < 1.3, (mean, spread)


def _order(r, *args, **kwargs):
    assert sorted(_numbers(r)) == list(range(r.numel()))


def _bernoulli(r, *args, **kwargs):
    assert set(_numbers(r)) <= {0.0, 1.0}


@with_options
def _two(m, first, second):
    """Two tensors of one shape, each with bounds."""
    for shape in m.shapes():
        yield sample(m.tensor(shape, domain=first), m.tensor(shape, domain=second))


def _lines(m):
    yield sample(m.tensor([0 if m.kind == "empty" else 40]), 7, 3)


def _dropped(r, x, *_):
    """About half of the elements are gone, the others doubled."""
    found, twice = TENON.array(r), 2 * x.array()
    gone, kept = found == 0, found == twice
    assert (gone | kept).all(), f"elements that are neither 0 nor twice what they were: {found[~(gone | kept)]}"
    if found.size >= 30 and 0 not in x.strides:
        assert 4 < gone.sum() < found.size - 4, f"{gone.sum()} of {found.size} are gone"


def _dtype(s):
    return s.kwargs["dtype"] if "dtype" in s.kwargs else s.specs()[0].dtype


_FLOATS = dict(refuse=("bool", "integral"))
#: As in PyTorch.
_NOTHING = {(c, "empty"): "nothing is dropped from no elements" for c in ("bool", "integral")}
_BITS = {"bool": "no truth value holds the numbers drawn"}


def _row(name, samples, check, absent, **options):
    return Row(name, samples, unreferenced=_WHY, properties=check, result=_dtype, no_peer="other random numbers",
               absent={"special": "the values are not read", **absent}, **options)  # fmt: skip


def _positive(r, *args, **kwargs):
    found = _numbers(r)
    assert all(v > 0 for v in found), f"values that are not positive: {found}"
    if len(found) >= 100:
        assert 0.6 < sum(found) / len(found) < 1.5


def _weights(m):
    if m.kind not in ("zero_dim", "channels_last", "special"):
        for shape in ([5], [m.size(3), 4]) if m.kind != "empty" else ([0, 4],):
            yield sample(m.tensor(shape, domain=(0.5, 4.0)), 3)
            yield sample(m.tensor(shape, domain=(0.5, 4.0)), 9, True)


def _drawn(r, weights, n, replacement=False):
    assert r.dtype is tenon.int64 and tuple(r.shape) == (*weights.shape[:-1], n)
    for row in r.reshape([-1, n]).tolist() if r.numel() else []:
        assert all(0 <= c < weights.shape[-1] for c in row) and (replacement or len(set(row)) == n)


def _whole_or_zero(x, p, train):
    kept = p < 1 or not train
    return (x if kept else x * 0), np.full(x.shape, kept)


@with_options
def _placed(m, samples):
    for s in samples(m):
        yield sample(*s.args, 7, 3)


_means, _chances, _counts_and_chances = unary_samples(domain=(0.5, 30.0)), _two(None, (0, 1)), _two((20, 20), (0.2, 0.8))


def _whole(r, *args, **kwargs):
    assert all(v >= 0 and v == int(v) for v in _numbers(r))


def _simplex(r, *args, **kwargs):
    found = r.detach().to(tenon.float64)
    assert float((found.sum(-1) - 1).abs().max()) < 2e-2 if found.numel() else True


_SHAPE_FLOATS = dict(refuse=("bool", "integral", "complex"))

ROWS = [
    _row("_standard_gamma", _means, lambda r, *a: None, _ONE, grad_constant=(0,), **_SHAPE_FLOATS),
    _row("_philox_standard_gamma", _placed(_means), lambda r, *a: None, _ONE, inner="_standard_gamma", grad_constant=(0,), **_SHAPE_FLOATS),
    _row("_standard_gamma_grad", _two((0.5, 9.0), (0.5, 9.0)), lambda r, *a: None,
         {"promotion": "one dtype"}, one_dtype=True, grad_constant=(0, 1), **_SHAPE_FLOATS),
    _row("_standard_gamma_second_gradient", lambda m: (), lambda r, *a: None, {k: "it always throws" for k in KINDS}, direct=True),
    _row("cauchy_ log_normal_", unary_samples(), lambda r, *a: None, {}, **_SHAPE_FLOATS),
    _row("geometric_", unary_samples(0.5), lambda r, *a: None, {}, refuse=("bool", "complex")),
    _row("poisson", _means, _whole, _ONE, **_SHAPE_FLOATS),
    _row("_philox_poisson", _placed(_means), _whole, _ONE, inner="poisson", **_SHAPE_FLOATS),
    _row("binomial", _counts_and_chances, _whole, {"promotion": "one dtype (distributions/samplers_test.py)"}, **_SHAPE_FLOATS),
    _row("_philox_binomial", _placed(_counts_and_chances), _whole, {"promotion": "one dtype"}, inner="binomial", **_SHAPE_FLOATS),
    _row("_sample_dirichlet", _means, _simplex, {**_ONE, "zero_dim": "one dimension or more"}, grad_constant=(0,), **_SHAPE_FLOATS),
    _row("rand", _sized(), _within(0, 1), _KINDS, **_FLOATS),
    _row("rand.generator", _sized(generator=True), _within(0, 1), _KINDS, **_FLOATS),
    _row("randn", _sized(), _normal, _KINDS, **_FLOATS),
    _row("randn.generator", _sized(generator=True), _normal, _KINDS, **_FLOATS),
    _row("rand_like uniform_", unary_samples(), _within(0, 1), {}, **_FLOATS),
    _row("randn_like normal_", unary_samples(), _normal, {}, **_FLOATS),
    _row("randint", _sized(7), _within(0, 7, True), {**_KINDS, **_BITS}, refuse=("complex",)),
    _row("randint.low", _sized(2, 9), _within(2, 9, True), {**_KINDS, **_BITS}, refuse=("complex",)),
    _row("randint.generator", _sized(7, generator=True), _within(0, 7, True), {**_KINDS, **_BITS}, refuse=("complex",)),
    _row("randint.low_generator", _sized(2, 9, generator=True), _within(2, 9, True), {**_KINDS, **_BITS}, refuse=("complex",)),
    _row("randperm", _sized(sizes=_COUNTS), _order, _NUMBERS_ONLY, refuse=("bool", "complex")),
    _row("randperm.generator", _sized(generator=True, sizes=_COUNTS), _order, _NUMBERS_ONLY, refuse=("bool", "complex")),
    _row("bernoulli", unary_samples(domain=(0, 1)), _bernoulli, {}, refuse=("bool", "integral", "complex")),
    _row("bernoulli.p bernoulli_.float", unary_samples(0.5), _bernoulli, {}, refuse=("complex",)),
    _row("bernoulli_.Tensor", _chances, _bernoulli, {("complex", "promotion"): "refused with any probabilities"}, operands=(1,), refuse=("bool", "integral", "complex")),
    _row("_philox_bernoulli_.Tensor", _placed(_chances), _bernoulli, {("complex", "promotion"): "refused with any probabilities"}, operands=(1,), refuse=("bool", "integral", "complex")),
    _row("_philox_bernoulli_.float", unary_samples(0.5, 7, 3), _bernoulli, {}, refuse=("complex",)),
    _row("_philox_normal_", unary_samples(0, 1, 7, 3), _normal, {}, **_FLOATS),
    _row("_philox_randint_", unary_samples(0, 7, 7, 3), _within(0, 7, True), _BITS, refuse=("complex",)),
    _row("_philox_randperm_", _lines, _order, {k: "one dimension" for k in ("transposed", "channels_last", "zero_dim")}, refuse=("bool", "complex")),
    _row("_philox_uniform_", unary_samples(0, 1, 7, 3), _within(0, 1), {}, **_FLOATS),
    _row("exponential_", unary_samples(), _positive, {}, refuse=("bool", "integral", "complex")),
    Row("multinomial", _weights, unreferenced=_WHY, properties=_drawn, result="int64", no_peer="other random numbers",
        absent={"special": "weights are finite", "zero_dim": "the rank is fixed", "channels_last": "the rank is fixed", "promotion": "one operand"},
        refuse=("bool", "integral", "complex")),
    Row("native_dropout", unary_calls((0.0, True), (1.0, True), (0.5, False)), _whole_or_zero, inner="dropout", result=lambda s: (s.args[0].dtype, "bool"),
        absent={"special": "infinity times zero", "promotion": "one operand"}, refuse=("bool", "integral")),
    Row("native_dropout_backward", lambda m: (sample(m.tensor(s), m.mask(s), 2.0) for s in m.shapes()),
        lambda g, mask, scale: g * mask * scale, inner="dropout", result="self",
        absent={"special": "infinity times zero", "promotion": "one operand"}, refuse=("bool", "integral")),
    _row("normal.Tensor_float", unary_samples(1.0, domain=(0, 0)), _normal, _ONE, **_FLOATS),
    _row("normal.float_Tensor", lambda m: (sample(0.0, m.tensor(s, domain=(1, 1))) for s in m.shapes()), _normal, _ONE, **_FLOATS),
    _row("normal.Tensor_Tensor", _two((0, 0), (1, 1)), _normal, {"promotion": "dtypes promote (random_test.py)"}, **_FLOATS),
    _row("normal.float_float", _sized(0.0, 1.0), _normal, _KINDS, **_FLOATS),
    _row("randint_like random_.to", unary_samples(7), _within(0, 7, True), _BITS, refuse=("complex",)),
    _row("randint_like.low_dtype random_.from", unary_samples(2, 9), _within(2, 9, True), _BITS, refuse=("complex",)),
    _row("random_", unary_samples(), lambda r, *a: None, {}, refuse=("complex",)),
    _row("dropout dropout_", unary_samples(0.5, True), _dropped, _NOTHING, **_FLOATS),
]
