"""out= of factories: dtype and device are those of out; shapes, strides, versions and refusals are as for any other out=."""

import numpy as np
import pytest

import tenon

CALLS = {
    "zeros": (lambda **o: tenon.zeros(4, 3, **o), np.zeros((4, 3))),
    "zeros of a list": (lambda **o: tenon.zeros((4, 3), **o), np.zeros((4, 3))),
    "ones": (lambda **o: tenon.ones(4, 3, **o), np.ones((4, 3))),
    "full": (lambda **o: tenon.full((4, 3), 7, **o), np.full((4, 3), 7)),
    "full of zeros": (lambda **o: tenon.full((4, 3), 0, **o), np.zeros((4, 3))),
    "eye": (lambda **o: tenon.eye(4, **o), np.eye(4)),
    "eye of a matrix": (lambda **o: tenon.eye(4, 3, **o), np.eye(4, 3)),
    "arange": (lambda **o: tenon.arange(5, **o), np.arange(5)),
    "arange with a start": (lambda **o: tenon.arange(2, 8, **o), np.arange(2, 8)),
    "arange with a step": (lambda **o: tenon.arange(9, 1, -2, **o), np.arange(9, 1, -2)),
    "linspace": (lambda **o: tenon.linspace(0, 8, 5, **o), np.linspace(0, 8, 5)),
    "no elements": (lambda **o: tenon.zeros(2, 0, **o), np.zeros((2, 0))),
    "no dimensions": (lambda **o: tenon.full((), 3, **o), np.full((), 3)),
}

RANDOM = {
    "rand": lambda **o: tenon.rand(4, 3, **o),
    "randn": lambda **o: tenon.randn(4, 3, **o),
    "normal": lambda **o: tenon.normal(2.0, 3.0, (4, 3), **o),
    "randint": lambda **o: tenon.randint(100, (4, 3), **o),
    "randint with a low": lambda **o: tenon.randint(-5, 100, (4, 3), **o),
    "randperm": lambda **o: tenon.randperm(12, **o),
}

LAYOUTS = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.movedim(0, -1).contiguous().movedim(-1, 0) if t.dim() > 1 else t,
    "backwards": lambda t: t.flip(0) if t.dim() else t,
    "every second": lambda t: tenon.stack([t, t], -1)[..., 0],
}


def out_of(shape, dtype, layout):
    return LAYOUTS[layout](tenon.full(list(shape), 9).to(dtype))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, getattr(tenon, dtype)) for name in CALLS for dtype in ("float32", "float64", "bfloat16", "int32", "uint8", "complex64")
     if not (name.startswith("arange") and dtype == "complex64")],  # complex numbers have no order
)  # fmt: skip
def test_values_are_written_to_out(name, dtype, layout):
    call, want = CALLS[name]
    out = out_of(want.shape, dtype, layout)
    strides, version = out.stride(), out._version
    assert call(out=out) is out
    assert out.dtype is dtype and out.stride() == strides and out._version == version + 1
    np.testing.assert_array_equal(out.to(tenon.complex128).numpy(), want)


@pytest.mark.parametrize("name", CALLS)
def test_an_empty_out_is_resized_and_another_shape_refused(name):
    call, want = CALLS[name]
    out = tenon.empty(0)
    assert call(out=out) is out and out.shape == want.shape
    np.testing.assert_array_equal(out.numpy(), want)
    wrong = tenon.full((7, 2), 9.0)
    with pytest.raises(ValueError, match=rf"^{name.split()[0] if name[:2] != 'no' else '.*'}: `out` has shape \[7, 2\]"):
        call(out=wrong)
    assert (wrong == 9).all()
    places = tenon.full((1,), 9.0).expand(4, 3)
    if want.shape == (4, 3):
        with pytest.raises(RuntimeError, match="single memory location"):
            call(out=places)
        assert (places == 9).all()


@pytest.mark.parametrize("call", [c for c, _ in CALLS.values()] + list(RANDOM.values()))
def test_options_beside_out_are_those_of_out(call):
    shape = call().shape
    out = tenon.full(shape, 9, dtype=tenon.float64)
    assert call(out=out, dtype=tenon.float64, device="cpu", layout=tenon.strided, pin_memory=False) is out
    assert call(out=out, dtype=None, device=None) is out
    out.fill_(9)
    for option, value, has in [("dtype", tenon.float32, "float64"), ("device", "meta", "on cpu"), ("pin_memory", True, "not pinned")]:
        with pytest.raises(TypeError, match=rf"{option}={value} does not match `out`, which is {has}"):
            call(out=out, **{option: value})
    assert (out == 9).all()
    with pytest.raises(TypeError, match="'dtype' must be dtype"):
        call(out=out, dtype="nonsense")
    with pytest.raises(TypeError, match="unexpected keyword argument 'shape'"):
        call(out=out, shape=3)
    with pytest.raises(TypeError):
        call(out=3)
    assert call(out=None).shape == shape


@pytest.mark.parametrize("call", [c for c, _ in CALLS.values()] + list(RANDOM.values()))
def test_out_on_meta_stays_there(call):
    out = tenon.empty(0, dtype=tenon.float64, device="meta")
    assert call(out=out) is out and out.is_meta and out.shape == call().shape
    with pytest.raises(ValueError, match=r"`out` has shape \[9\]"):
        call(out=tenon.empty(9, device="meta"))


@pytest.mark.parametrize("call", [c for c, _ in CALLS.values()] + list(RANDOM.values()))
def test_nothing_is_recorded(call):
    leaf = tenon.zeros(call().shape, requires_grad=True)
    for out in (leaf, leaf * 2):
        with pytest.raises(RuntimeError, match="out=... arguments don't support automatic differentiation"):
            call(out=out)
    with tenon.no_grad():
        assert call(out=leaf) is leaf and leaf.requires_grad
    out = tenon.zeros(call().shape)
    assert call(out=out, requires_grad=True) is out and out.requires_grad


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "rand", "randn"])
@pytest.mark.parametrize(("size", "match"), [((-1,), "negative size"), ((2, -3), "negative size"), ((2**40, 2**40), "int64")])
def test_sizes_that_make_no_sense_are_refused(name, size, match):
    for out in (tenon.empty(0), tenon.ones(2), tenon.empty(0, device="meta")):
        shape = out.shape
        with pytest.raises(ValueError, match=f"^{name}: .*{match}"):
            getattr(tenon, name)(size, out=out)
        assert out.shape == shape


def test_a_saved_tensor_that_is_written_is_noticed():
    x = tenon.ones(3, requires_grad=True)
    w = tenon.ones(3)
    y = (x * w).sum()
    tenon.zeros(3, out=w)
    with pytest.raises(RuntimeError, match="`mul` saved `other`, which was changed in place"):
        y.backward()


def test_empty_leaves_elements_as_they_are():
    out = tenon.full((2, 3), 9.0)
    assert tenon.empty(2, 3, out=out) is out and (out == 9).all()
    out = tenon.empty(0)
    assert tenon.empty(2, 3, 4, 5, memory_format=tenon.channels_last, out=out).is_contiguous(memory_format=tenon.channels_last)


def test_numbers_that_the_dtype_of_out_does_not_hold_are_refused():
    out = tenon.full((2,), 9, dtype=tenon.int8)
    with pytest.raises(ValueError, match="full: value 300 cannot be converted to int8"):
        tenon.full((2,), 300, out=out)
    with pytest.raises(ValueError, match="randint: numbers from 0 to 499 are out of bounds for int8"):
        tenon.randint(500, (2,), out=out)
    with pytest.raises(NotImplementedError, match="randn: not implemented for int8"):
        tenon.randn(2, out=out)
    assert out.tolist() == [9, 9]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("name", "own"), [(name, own) for name in RANDOM for own in (False, True) if not (own and name.startswith("randint"))]
)
def test_random_numbers_are_those_of_the_functional_form(name, own, layout):
    call = RANDOM[name]
    def seeded():
        tenon.manual_seed(5)
        return {"generator": tenon.Generator().manual_seed(5)} if own else {}

    want = call(dtype=tenon.float32, **seeded())
    out = out_of(want.shape, tenon.float32, layout)
    assert call(out=out, **seeded()) is out and tenon.equal(out, want)


@pytest.mark.parametrize("name", RANDOM)
def test_a_call_that_fails_takes_nothing_from_the_stream(name):
    tenon.manual_seed(5)
    want = tenon.rand(3)
    tenon.manual_seed(5)
    for out in (tenon.ones(5, 5), tenon.ones(1).expand(4, 3), tenon.ones(5, 5, dtype=tenon.bool)):
        with pytest.raises((ValueError, RuntimeError, NotImplementedError)):
            RANDOM[name](out=out)
    assert tenon.equal(tenon.rand(3), want)
