"""Random numbers: where a call's place in the stream comes from, and what draws from it."""

import struct
import threading

import pytest

import tenon
from tenon import dispatch

SEED, OFFSET = 2**63 + 5, 11


def at(seed, offset=0):
    """Puts the default generator somewhere in a stream."""
    tenon.manual_seed(seed)
    if offset:
        tenon.rand(4 * offset)


def signed(n):
    return n - 2**64 if n >= 2**63 else n


PAIRS = {
    "uniform_": (lambda t, g: t.uniform_(-1, 3, generator=g), lambda t, *p: tenon.ops.aten._philox_uniform_(t, -1, 3, *p)),
    "normal_": (lambda t, g: t.normal_(2, 0.5, generator=g), lambda t, *p: tenon.ops.aten._philox_normal_(t, 2, 0.5, *p)),
    "bernoulli_": (lambda t, g: t.bernoulli_(0.3, generator=g), lambda t, *p: tenon.ops.aten._philox_bernoulli_(t, 0.3, *p)),
    "bernoulli_.Tensor": (
        lambda t, g: t.bernoulli_(tenon.full(t.shape, 0.3), generator=g),
        lambda t, *p: tenon.ops.aten._philox_bernoulli_(t, tenon.full(t.shape, 0.3), *p),
    ),
}


@pytest.mark.parametrize("dtype", [tenon.float16, tenon.float32, tenon.float64, tenon.complex64])
@pytest.mark.parametrize("name", PAIRS)
def test_a_call_is_its_place_and_what_draws_there(name, dtype):
    drawn, placed = PAIRS[name]
    if name.startswith("bernoulli") and dtype.is_complex:
        return
    generator = tenon.Generator().manual_seed(SEED)
    tenon.rand(4 * OFFSET, generator=generator)
    for make in (lambda: tenon.zeros(7, 5, dtype=dtype), lambda: tenon.zeros(5, 7, dtype=dtype).T, lambda: tenon.zeros(0, dtype=dtype)):
        state = generator.get_state()
        want = drawn(make(), generator)
        generator.set_state(state)
        place = [signed(SEED), OFFSET]
        assert tenon.equal(placed(make(), *place), want)
        # Again, whatever was drawn meanwhile.
        tenon.rand(100)
        assert tenon.equal(placed(make(), *place), want)


def test_integers_and_orders_from_a_place():
    tenon.manual_seed(9)
    want = tenon.randint(-3, 2**40, (50,))
    assert tenon.equal(tenon.ops.aten._philox_randint_(tenon.empty(50, dtype=tenon.int64), -3, 2**40, 9, 0), want)
    tenon.manual_seed(9)
    want = tenon.randperm(50)
    assert tenon.equal(tenon.ops.aten._philox_randperm_(tenon.empty(50, dtype=tenon.int64), 9, 0), want)


@pytest.mark.parametrize(
    "call, inner",
    [
        (lambda: tenon.rand(3), "_philox_uniform_"), (lambda: tenon.randn(3), "_philox_normal_"),
        (lambda: tenon.rand_like(tenon.ones(2)), "_philox_uniform_"), (lambda: tenon.randint(5, (2,)), "_philox_randint_"),
        (lambda: tenon.randperm(5), "_philox_randperm_"), (lambda: tenon.bernoulli(tenon.ones(2)), "_philox_bernoulli_.Tensor"),
        (lambda: tenon.nn.functional.dropout(tenon.ones(2)), "_philox_bernoulli_.float"),
    ],
)  # fmt: skip
def test_the_trace_shows_what_draws(call, inner):
    with dispatch.trace() as lines:
        call()
    assert sum(f"[aten::{inner}]" in line and "[call]" in line for line in lines) == 1


@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan"), float("inf")])
def test_probabilities_are_checked_by_what_draws(p):
    x = tenon.full((3, 4), 7.0)
    chances = tenon.full((3, 4), 0.5)
    chances[1, 2] = p
    for call in (lambda: x.bernoulli_(chances), lambda: x.bernoulli_(chances.T.contiguous().T), lambda: tenon.bernoulli(chances)):
        with pytest.raises(ValueError, match=r"^bernoulli_?: expects all .* in \[0, 1\], but they are in \["):
            call()
    assert (x == 7).all()
    with dispatch.trace() as lines:
        tenon.bernoulli(tenon.full((3,), 0.5))
    assert not any("_local_scalar_dense" in line or "amin" in line for line in lines)


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda x: tenon.ops.aten._philox_uniform_(x, 3, 1, 0, 0), ValueError),
        (lambda x: tenon.ops.aten._philox_normal_(x, 0, -1, 0, 0), ValueError),
        (lambda x: tenon.ops.aten._philox_bernoulli_(x, 2.0, 0, 0), ValueError),
        (lambda x: tenon.ops.aten._philox_bernoulli_(x, tenon.ones(5), 0, 0), ValueError),
        (lambda x: tenon.ops.aten._philox_randint_(x, 5, 5, 0, 0), ValueError),
        (lambda x: tenon.ops.aten._philox_randint_(x.to(tenon.int8), 0, 500, 0, 0), ValueError),
        (lambda x: tenon.ops.aten._philox_randperm_(x.reshape(3, 1), 0, 0), ValueError),
        (lambda x: tenon.ops.aten._philox_randperm_(tenon.ones(600, dtype=tenon.uint8), 0, 0), ValueError),
        (lambda x: tenon.ops.aten._philox_normal_(x.to(tenon.int64), 0, 1, 0, 0), NotImplementedError),
        (lambda x: tenon.ops.aten._philox_uniform_(x[:1].expand(3), 0, 1, 0, 0), RuntimeError),
    ],
)
def test_what_draws_checks_its_arguments(call, error):
    with pytest.raises(error):
        call(tenon.ones(3))


def test_a_call_that_fails_takes_nothing():
    at(4)
    x = tenon.ones(3)
    for call in (lambda: x.normal_(0, -1), lambda: x.uniform_(2, 1), lambda: x.to(tenon.int64).normal_(), lambda: x[:1].expand(9).normal_(), lambda: x.bernoulli_(3.0), lambda: x.bernoulli_(tenon.ones(7))):
        with pytest.raises((ValueError, RuntimeError, NotImplementedError)):
            call()
    after = tenon.rand(3)
    at(4)
    assert tenon.equal(tenon.rand(3), after)


def test_gradients_stop():
    x = tenon.ones(3, requires_grad=True)
    y = x * 2
    y.normal_()
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
    p = tenon.full((3,), 0.5, requires_grad=True)
    (tenon.bernoulli(p) + p).sum().backward()
    assert p.grad.tolist() == [1, 1, 1]


def test_threads_take_different_places():
    tenon.manual_seed(1)
    drawn = []
    threads = [threading.Thread(target=lambda: drawn.extend(tenon.rand(4).tolist() for _ in range(50))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len({tuple(d) for d in drawn}) == 200
    at(1)
    assert sorted(map(tuple, drawn)) == sorted(map(tuple, (tenon.rand(4).tolist() for _ in range(200))))


@pytest.mark.parametrize(
    "call",
    [
        lambda: tenon.rand(3, device="meta"),
        lambda: tenon.randn(3, device="meta"),
        lambda: tenon.randint(9, (3,), device="meta"),
        lambda: tenon.randperm(3, device="meta"),
        lambda: tenon.bernoulli(tenon.empty(3, device="meta")),
        lambda: tenon.empty(3, device="meta").normal_(),
        lambda: tenon.empty(3, device="meta").uniform_(),
        lambda: tenon.empty(3, device="meta").bernoulli_(0.5),
        lambda: tenon.empty(3, device="meta").bernoulli_(tenon.empty(3, device="meta")),
    ],
)
def test_meta_takes_nothing_from_the_stream(call):
    tenon.manual_seed(5)
    want = tenon.rand(3)
    tenon.manual_seed(5)
    assert call().is_meta
    assert tenon.equal(tenon.rand(3), want)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("float32", 0, 1e39), ("float32", -1e300, 1e300), ("float32", -3e38, 3e38), ("float64", -1.7e308, 1.7e308),
     ("float16", 0, 65520), ("bfloat16", 0, 3.4e38), ("complex64", 0, 1e39)],
)  # fmt: skip
def test_uniform_refuses_bounds_that_the_dtype_does_not_hold(dtype, low, high):
    x = tenon.zeros(4, dtype=getattr(tenon, dtype))
    with pytest.raises(ValueError, match="uniform_: expected bounds that (float|bfloat)[0-9]+ holds"):
        x.uniform_(low, high)
    assert x.abs().sum().item() == 0


def test_uniform_takes_all_of_a_dtypes_range():
    x = tenon.empty(1000).uniform_(0, 3.4e38)
    assert x.isfinite().all().item() and 1.5e38 < x.double().mean().item() < 1.9e38
    assert tenon.empty(1000, dtype=tenon.float16).uniform_(-60000, 5000).isfinite().all().item()


@pytest.mark.parametrize(
    "set_state, name",
    [(tenon.set_rng_state, "set_rng_state"), (tenon.Generator().set_state, "set_state")],
)
@pytest.mark.parametrize(
    "state, error, message",
    [
        ((5, 2**64), ValueError, "the offset of a state is from 0 to 2\\*\\*64 - 1, got 18446744073709551616"),
        ((5, -1), ValueError, "the offset of a state is from 0 to 2\\*\\*64 - 1, got -1"),
        ((2**64, 0), ValueError, "the seed of a state is from 0"),
        ((-1, 0), ValueError, "the seed of a state is from 0"),
        ((5, 1.0), TypeError, "the offset of a state is an int, got float"),
        (("5", 1), TypeError, "the seed of a state is an int, got str"),
        ((5,), TypeError, "expected the tensor that get_state.. returns, or a tuple of seed and offset"),
        ((5, 1, 2), TypeError, "expected the tensor"),
        (5, TypeError, "expected the tensor"),
        (tenon.zeros(15, dtype=tenon.uint8), TypeError, "expected the 16 uint8 in host memory"),
        (tenon.zeros(16), TypeError, "expected the 16 uint8"),
    ],
)
def test_what_is_no_state_is_refused(set_state, name, state, error, message):
    before = tenon.get_rng_state()
    with pytest.raises(error, match=f"^{name}: {message}"):
        set_state(state)
    assert tenon.get_rng_state().equal(before)


def test_states_at_the_ends_of_their_range():
    before = tenon.get_rng_state()
    for state in ((0, 0), (2**64 - 1, 2**64 - 1)):
        tenon.set_rng_state(state)
        assert struct.unpack("<QQ", bytes(tenon.get_rng_state().tolist())) == state
        tenon.set_rng_state(tenon.get_rng_state())
        assert struct.unpack("<QQ", bytes(tenon.get_rng_state().tolist())) == state
    tenon.set_rng_state(before)


@pytest.mark.parametrize("least", [-1.0, -1e-3, float("nan")])
def test_normal_refuses_negative_deviations(least):
    std = tenon.tensor([1.0, least, 2.0])
    for mean in (tenon.zeros(3), 0.0):
        with pytest.raises(ValueError, match=r"^normal: expects all elements of std >= 0.0, but the least is (-|nan)"):
            tenon.normal(mean, std)
    tenon.normal(tenon.zeros(3), std.abs().nan_to_num())
    assert tenon.normal(tenon.zeros(0), tenon.zeros(0)).shape == (0,)
    assert tenon.normal(tenon.zeros(2, device="meta"), tenon.ones(2, device="meta")).shape == (2,)


@pytest.mark.parametrize("dtype", [tenon.float16, tenon.float32, tenon.float64])
@pytest.mark.parametrize("of_std", [tenon.float16, tenon.float64])
def test_normal_has_the_dtype_of_its_means(dtype, of_std):
    x = tenon.normal(tenon.full((2,), 3.0, dtype=dtype), tenon.zeros(2, dtype=of_std))
    assert x.dtype is dtype and x.tolist() == [3, 3]
