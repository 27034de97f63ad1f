"""What nodes save: as PyTorch does, so that the same arguments may be written afterwards."""

import numpy as np
import pytest

import tenon


@pytest.mark.parametrize(
    ("dtype", "number"),
    [(t, n) for t in (tenon.float64, tenon.complex128) for n in (3, 2.5, -1e200, True, 0)] + [(tenon.complex128, 1 - 2j)],
)
def test_what_divides_a_number_may_be_written_afterwards(dtype, number):
    leaf = tenon.tensor([0.5, 2.0, -9.0], dtype=dtype, requires_grad=True)
    x = leaf * 1
    y = number / x
    np.testing.assert_allclose(y.detach().numpy(), number / leaf.detach().numpy(), rtol=1e-15)
    x.zero_()
    y.real.sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), np.conj(-complex(number) / leaf.detach().numpy() ** 2), rtol=1e-14)
    assert tenon.autograd.gradgradcheck(lambda x: number / x, leaf) if abs(number) < 10 else True


def test_gradients_of_quotients_of_unusual_numbers():
    inf, nan = float("inf"), float("nan")
    x = [0.0, -0.0, 2.0, -2.0, inf, 1e-20]
    for number, want in [
        (0.0, [nan, nan, 0, 0, 0, 0]),
        (inf, [-inf, -inf, -inf, -inf, -inf, -inf]),
        (-inf, [inf, inf, inf, inf, inf, inf]),
        (1.0, [-inf, -inf, -0.25, -0.25, 0, -inf]),
        (1e-10, [-inf, -inf, -2.5e-11, -2.5e-11, 0, -1e30]),
    ]:
        t = tenon.tensor(x, requires_grad=True)
        (number / t).sum().backward()
        if abs(number) == inf:
            want[4] = nan  # inf / inf is no number to tell a slope from
        np.testing.assert_allclose(t.grad.numpy(), np.array(want, np.float32), rtol=1e-6)


@pytest.mark.parametrize("name", ["rsqrt", "reciprocal"])
@pytest.mark.parametrize("dtype", [tenon.float64, tenon.complex128])
def test_their_argument_may_be_written_afterwards(name, dtype):
    leaf = tenon.tensor([0.5, 2.0, 9.0], dtype=dtype, requires_grad=True)
    x = leaf * 1
    y = getattr(x, name)()
    x.zero_()
    y.real.sum().backward()
    at = np.array([0.5, 2.0, 9.0])
    want = -0.5 * at**-1.5 if name == "rsqrt" else -(at**-2)
    np.testing.assert_allclose(leaf.grad.numpy().real, want, rtol=1e-14)
    y = getattr(leaf * 1, name)()
    y.mul_(2)
    with pytest.raises(RuntimeError, match=f"`{name}` saved its result"):
        y.real.sum().backward()


@pytest.mark.parametrize("name", ["rsqrt", "reciprocal"])
def test_their_gradients_at_the_ends(name):
    x = tenon.tensor([0.0, float("inf"), float("nan")], requires_grad=True)
    getattr(x, name)().sum().backward()
    got = x.grad.tolist()
    assert got[0] == -float("inf") and got[1] == 0 and got[2] != got[2]
    x = tenon.tensor([0.7, 1.3], dtype=tenon.float64, requires_grad=True)
    assert tenon.autograd.gradgradcheck(getattr(tenon, name), (x,))


@pytest.mark.parametrize("left, right", [((2, 3), (4, 3, 5)), ((2, 3), (2, 4, 3, 5)), ((3,), (4, 3, 5))])
def test_a_matrix_times_a_batch_saves_a_copy_of_the_batch(left, right):
    tenon.manual_seed(1)
    w = tenon.randn(*left, dtype=tenon.float64, requires_grad=True)
    batch = tenon.randn(*right, dtype=tenon.float64)
    kept = batch.numpy().copy()
    y = w @ batch
    batch.mul_(2)
    seed = tenon.randn(*y.shape, dtype=tenon.float64)
    y.backward(seed)
    g = seed.numpy() if len(left) == 2 else seed.numpy()[..., None, :]
    want = (g @ np.swapaxes(kept, -1, -2)).reshape(-1, *(left if len(left) == 2 else (1, *left))).sum(0).reshape(left)
    np.testing.assert_allclose(w.grad.numpy(), want, rtol=1e-12, atol=1e-12)


def test_a_matrix_times_a_batch_whose_columns_lie_in_order_saves_it_as_it_is():
    for batch in (tenon.ones(4, 5, 3).transpose(1, 2), tenon.ones(1, 3, 5)):
        w = tenon.ones(2, 3, requires_grad=True)
        y = w @ batch
        batch.mul_(2)
        with pytest.raises(RuntimeError, match="changed in place"):
            y.sum().backward()
    # Without a gradient for the matrix its batch is not needed at all.
    batch = tenon.ones(4, 3, 5, requires_grad=True)
    other = batch * 1
    z = tenon.ones(2, 3) @ other
    other.mul_(2)
    z.sum().backward()
    assert batch.grad.tolist() == [[[2.0] * 5] * 3] * 4
