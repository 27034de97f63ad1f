"""Which dtypes `out=` may have: for some operators the result's own alone, for others any that it can be cast to; as in PyTorch."""

import pytest

import tenon

X = tenon.tensor([[3.0, -1.5, 2.0], [0.5, 4.0, -2.0]])
V, SQUARE, MASK, PLACES = X[0], tenon.ones(3, 3), X > 0, tenon.tensor([[0, 1, 0], [1, 0, 1]])

#: What PyTorch 2 says "Expected out tensor to have dtype ..." of, or the like.
SAME = {
    "abs": lambda **o: tenon.abs(X, **o), "neg": lambda **o: tenon.neg(X, **o), "ceil": lambda **o: tenon.ceil(X, **o),
    "floor": lambda **o: tenon.floor(X, **o), "round": lambda **o: tenon.round(X, **o), "trunc": lambda **o: tenon.trunc(X, **o),
    "frac": lambda **o: tenon.frac(X, **o), "sign": lambda **o: tenon.sign(X, **o), "sgn": lambda **o: tenon.sgn(X, **o),
    "nan_to_num": lambda **o: tenon.nan_to_num(X, **o), "amax": lambda **o: tenon.amax(X, 0, **o),
    "amin": lambda **o: tenon.amin(X, 0, **o), "gather": lambda **o: tenon.gather(X, 0, PLACES, **o),
    "index_select": lambda **o: tenon.index_select(X, 0, tenon.tensor([1, 0]), **o),
    "take": lambda **o: tenon.take(X, tenon.tensor([1, 5]), **o), "masked_select": lambda **o: tenon.masked_select(X, MASK, **o),
    "scatter": lambda **o: tenon.scatter(X, 0, PLACES, 2.0, **o), "scatter_add": lambda **o: tenon.scatter_add(X, 0, PLACES, X, **o),
    "scatter_reduce": lambda **o: tenon.scatter_reduce(X, 0, PLACES, X, "amax", **o),
    "index_add": lambda **o: tenon.index_add(X, 0, tenon.tensor([1]), X[:1], **o),
    "index_copy": lambda **o: tenon.index_copy(X, 0, tenon.tensor([1]), X[:1], **o),
    "take_along_dim": lambda **o: tenon.take_along_dim(X, PLACES, 0, **o), "msort": lambda **o: tenon.msort(X, **o),
    "tril": lambda **o: tenon.tril(X, **o), "triu": lambda **o: tenon.triu(X, **o), "diag": lambda **o: tenon.diag(V, **o),
    "where": lambda **o: tenon.where(MASK, X, X, **o), "softmax": lambda **o: tenon.softmax(X, 1, **o),
    "log_softmax": lambda **o: tenon.log_softmax(X, 1, **o), "norm": lambda **o: tenon.norm(X, **o),
    "vector_norm": lambda **o: tenon.linalg.vector_norm(X, **o), "mm": lambda **o: tenon.mm(X, SQUARE, **o),
    "matmul": lambda **o: tenon.matmul(X, SQUARE, **o), "bmm": lambda **o: tenon.bmm(X[None], SQUARE[None], **o),
    "mv": lambda **o: tenon.mv(X, V, **o), "dot": lambda **o: tenon.dot(V, V, **o), "addmm": lambda **o: tenon.addmm(X, X, SQUARE, **o),
    "addmv": lambda **o: tenon.addmv(X[:, 0], X, V, **o), "tensordot": lambda **o: tenon.tensordot(X, X, out=None, **o) if not o
    else tenon.tensordot(X, X, **o), "argmax": lambda **o: tenon.argmax(X, 1, **o), "argmin": lambda **o: tenon.argmin(X, 1, **o),
    "clamp": lambda **o: tenon.clamp(X, 0, **o), "hardtanh": lambda **o: tenon.hardtanh(X, **o), "gelu": lambda **o: tenon.gelu(X, **o),
    "nonzero": lambda **o: tenon.nonzero(X, **o), "multinomial": lambda **o: tenon.multinomial(tenon.eye(2), 1, **o),
}  # fmt: skip
#: What PyTorch computes in the dtype of `out`, or casts.
CAST = {
    "add": lambda **o: tenon.add(X, X, **o), "mul": lambda **o: tenon.mul(X, X, **o), "exp": lambda **o: tenon.exp(X, **o),
    "maximum": lambda **o: tenon.maximum(X, X, **o), "sum": lambda **o: tenon.sum(X, 0, **o),
    "cat": lambda **o: tenon.cat([X, X], **o), "sqrt": lambda **o: tenon.sqrt(X, **o), "lt": lambda **o: tenon.lt(X, X, **o),
    "logsumexp": lambda **o: tenon.logsumexp(X, 0, **o), "mean": lambda **o: tenon.mean(X, 0, **o),
    "prod": lambda **o: tenon.prod(X, 0, **o), "bernoulli": lambda **o: tenon.bernoulli(MASK.float(), **o),
    "normal": lambda **o: tenon.normal(X, 0.0, **o), "normal of two": lambda **o: tenon.normal(X, 0 * X, **o),
    "normal of deviations": lambda **o: tenon.normal(0.5, 0 * X, **o),
}  # fmt: skip


def others(dtype):
    """Wider and narrower ones that the result could be cast to, each of the same or a higher kind."""
    if dtype is tenon.float32:
        return [tenon.float64, tenon.float16, tenon.complex64]
    return [tenon.int32, tenon.uint8, tenon.float32] if dtype is tenon.int64 else [tenon.int64, tenon.float32]


@pytest.mark.parametrize("name", SAME)
def test_the_results_dtype_alone(name):
    call = SAME[name]
    result = call()
    out = tenon.empty(result.shape, dtype=result.dtype)
    assert call(out=out) is out and out.tolist() == result.tolist()
    for dtype in others(result.dtype):
        out = tenon.full(result.shape, 1, dtype=dtype)
        with pytest.raises(TypeError, match=f"`out` of {str(result.dtype)[6:]}, the dtype of the result, got {str(dtype)[6:]}$"):
            call(out=out)
        assert out.eq(1).all()
        with pytest.raises(TypeError, match="the dtype of the result"):
            call(out=tenon.empty(0, dtype=dtype))


@pytest.mark.parametrize("name", CAST)
def test_any_dtype_that_the_result_can_be_cast_to(name):
    result = CAST[name]()
    for dtype in others(result.dtype):
        out = tenon.empty(result.shape, dtype=dtype)
        assert CAST[name](out=out) is out
        assert out.isclose(result.to(dtype), rtol=1e-2, equal_nan=True).all()


@pytest.mark.parametrize("name", ["all", "any"])
def test_truth_values_are_bool_or_bytes(name):
    function = getattr(tenon, name)
    for dtype in (tenon.bool, tenon.uint8):
        assert function(MASK, 0, out=tenon.empty(3, dtype=dtype)).tolist() == function(MASK, 0).tolist()
    for dtype in (tenon.int64, tenon.float32):
        with pytest.raises(TypeError, match="`out` of bool"):
            function(MASK, 0, out=tenon.empty(3, dtype=dtype))


@pytest.mark.parametrize(
    "call",
    [
        lambda **o: tenon.max(X, 0, **o), lambda **o: tenon.min(X, 0, **o), lambda **o: tenon.sort(X, **o),
        lambda **o: tenon.topk(X, 2, **o), lambda **o: tenon.sort(X, stable=True, **o),
    ],
    ids=["max", "min", "sort", "topk", "stable sort"],
)  # fmt: skip
def test_both_of_two_results(call):
    values, indices = call()
    good = (tenon.empty(values.shape), tenon.empty(indices.shape, dtype=tenon.int64))
    assert call(out=good)[1].tolist() == indices.tolist()
    for outs in ((good[0].double(), good[1]), (good[0], good[1].int())):
        with pytest.raises(TypeError, match="the dtype of the result"):
            call(out=outs)


def test_aminmax_takes_two_of_the_same():
    with pytest.raises(TypeError, match="aminmax: expected `out` of float32"):
        tenon.aminmax(X, dim=0, out=(tenon.empty(3), tenon.empty(3, dtype=tenon.float64)))


def test_on_meta_too():
    with pytest.raises(TypeError, match="the dtype of the result"):
        tenon.amax(X.to("meta"), 0, out=tenon.empty(3, dtype=tenon.float64, device="meta"))


def test_in_place_forms_cast():
    x = tenon.ones(2, dtype=tenon.float32)
    assert x.mul_(tenon.ones(2, dtype=tenon.float64)).dtype is tenon.float32


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_absolute_values_of_complex_numbers(device):
    """A real result of complex operands: any real floating dtype, or the operands' own; of PyTorch 2.15."""
    z = tenon.tensor([3 + 4j, -1], dtype=tenon.complex64).to(device)
    for dtype in (tenon.float32, tenon.float64, tenon.complex64):
        out = tenon.empty(2, dtype=dtype, device=device)
        assert tenon.abs(z, out=out) is out
        assert device == "meta" or out.tolist() == [5, 1]
    for dtype in (tenon.complex128, tenon.int32):
        with pytest.raises(TypeError, match="^abs: "):
            tenon.abs(z, out=tenon.empty(2, dtype=dtype, device=device))
    with pytest.raises(TypeError, match="^abs: expected `out` of float32"):
        tenon.abs(z.real, out=tenon.empty(2, dtype=tenon.complex64, device=device))


def in_scope(call):
    """The call recorded, as compiled programs record it."""
    with tenon.recording(threshold=0):
        return call()


@pytest.mark.parametrize("run", [lambda call: call(), in_scope], ids=["eager", "recorded"])
@pytest.mark.parametrize(
    ("call", "values", "dtype", "out", "want"),
    [
        (tenon.prod, [1e30, 1e30], tenon.float32, tenon.float64, 1e60), (tenon.sum, [300.0] * 300, tenon.float16, tenon.float32, 9e4),
        (tenon.prod, [2**40, 2**40], tenon.int64, tenon.float32, 2.0**80), (tenon.sum, [1.5, 2.25, -2.75], tenon.float32, tenon.int64, 1),
        (tenon.sum, [200, 100], tenon.int64, tenon.uint8, 44), (tenon.mean, [6e4, 6e4, 3e4], tenon.float16, tenon.float64, 5e4),
        (tenon.nansum, [float("nan")] + [300.0] * 300, tenon.float16, tenon.float32, 9e4),
        (tenon.cumprod, [1e30, 1e30], tenon.float32, tenon.float64, 1e60), (tenon.cumsum, [4e4, 4e4], tenon.float16, tenon.float64, 8e4),
        (tenon.cumsum, [1.5, 1.75], tenon.float32, tenon.int32, 2),
    ],
)  # fmt: skip
def test_reductions_compute_in_the_dtype_of_out(run, call, values, dtype, out, want):
    """Operands are converted first, as where dtype= is given; of PyTorch 2."""
    x = tenon.tensor([values], dtype=dtype)
    result = tenon.empty(0, dtype=out)
    assert run(lambda: call(x, 1, out=result)) is result
    assert result.flatten()[-1].item() == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize("name", ["prod", "sum", "mean", "nansum", "cumsum", "cumprod"])
def test_a_dtype_next_to_out_is_that_of_out(name):
    x, call = tenon.ones(1, 1), getattr(tenon, name)
    out = tenon.full_like(call(x, 1), 7)
    with pytest.raises(TypeError, match=f"^{name}: dtype=float64 does not match `out`, which is float32$"):
        call(x, 1, dtype=tenon.float64, out=out)
    assert out.item() == 7
    assert call(x, 1, dtype=tenon.float32, out=out) is out and out.item() == 1


def test_a_mean_of_integers_and_in_integers_is_refused():
    with pytest.raises(TypeError, match="^mean: could not infer output dtype"):
        tenon.mean(tenon.ones(2, dtype=tenon.int64), 0, out=tenon.empty(()))
    with pytest.raises(TypeError, match="^mean: the result is float32, which cannot be cast to `out` of int64"):
        tenon.mean(tenon.ones(2), 0, out=tenon.empty((), dtype=tenon.int64))
