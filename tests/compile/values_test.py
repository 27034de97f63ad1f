"""When a value is computed: printing, conditions, loops over values, debuggers; and what needs no value."""

import copy
import io
import pdb
import pickle

import numpy as np
import pytest
from beside_eager import CALLS, alike, counted, plans_of, same

import tenon


def x_of(*shape):
    return tenon.linspace(-2, 3, int(np.prod(shape))).reshape(shape)


def test_printing_shows_the_values_of_its_moment(capsys):
    def f(x):
        y = x.exp()
        print(y)
        y.add_(1)
        print(y)
        return y.sum()

    same(f, x_of(4))
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] * CALLS == printed


@pytest.mark.parametrize("show", [
    repr, str, "{}".format, lambda y: f"{y}", lambda y: f"{y.sum():.3f}", lambda y: f"{y[0]!r}", tenon.Tensor.tolist,
    lambda y: y.sum().item(), lambda y: float(y[0]), lambda y: int(y[0]), lambda y: bool(y[0] > 0), lambda y: y[0] == y[0],
    lambda y: complex(y[0]), lambda y: list(y), lambda y: [float(v) for v in y], lambda y: y.numpy().tobytes(),
    lambda y: np.asarray(y).sum(), lambda y: np.from_dlpack(y).tobytes(), lambda y: tenon.equal(y, y + 0),
    lambda y: tenon.allclose(y, y), lambda y: y.any().item(), lambda y: 0.5 in y, lambda y: max(y).item(),
    lambda y: sorted(y.tolist()), lambda y: y.is_nonzero() if y.numel() == 1 else y[0].is_nonzero(),
    lambda y: bytes(y.untyped_storage()) if hasattr(y.untyped_storage(), "__bytes__") else y.untyped_storage().tolist(),
    lambda y: y.nonzero(), lambda y: y[y > 0], lambda y: y.unique() if hasattr(y, "unique") else y.masked_select(y > 0),
    lambda y: hash(y.sum().item()), lambda y: tenon.arange(int(y.abs().sum())), lambda y: range(int(y[-1])),
    lambda y: y.new_zeros(int(y[-1])), lambda y: y.repeat_interleave(y.abs().long()),
])  # fmt: skip
def test_whatever_shows_a_value_shows_eagers(show):
    def f(x):
        y = x * 2 + 1
        x.mul_(3)
        seen = show(y)
        y.sub_(1)
        return seen, y, show(y)

    same(f, x_of(4))


@pytest.mark.parametrize("ask", [
    len, lambda y: y.shape, lambda y: y.dtype, lambda y: y.stride(), lambda y: y.is_contiguous(), lambda y: y.numel(),
    lambda y: y.storage_offset(), lambda y: y.device, lambda y: y.requires_grad, lambda y: y._version, lambda y: y.dim(),
    lambda y: y.untyped_storage().nbytes(), lambda y: y.element_size(), lambda y: y.t().shape, lambda y: y[1:].shape,
    lambda y: y.is_floating_point(), lambda y: y is y, lambda y: y.nbytes, lambda y: y.is_leaf, lambda y: id(y) > 0,
    lambda y: [v.shape for v in y], lambda y: y.expand(2, *y.shape).stride(), hash,
])  # fmt: skip
def test_headers_are_told_without_values(ask):
    """No flush: the segment goes on, and all of it is computed at the end."""
    x = x_of(3, 4)

    def f():
        y = x * 2
        asked = ask(y)
        z = y + asked.numel() if isinstance(asked, tenon.Tensor) else y + 1
        return None if ask in (hash,) else asked, z

    alike(lambda c: c(f)())
    before = counted("segments")
    tenon.compile(f, threshold=0)()
    assert counted("segments") - before == 1


def collatz_like(x):
    steps = 0
    while (x * x).sum() > 1:
        x = x * 0.5
        steps += 1
    return x, steps


def counted_loop(x):
    for _ in range(int(x.abs().max())):
        x = x.sin() + 1
    return x


def branches(x):
    if x.isnan().any():
        return x.nan_to_num(0)
    elif (x > 2).all():
        return x - 2
    return x + 2 if x.sum() else x * 0


def early_return(xs):
    for i, x in enumerate(xs):
        y = x.square().mean()
        if y > 1:
            return i, y
    return None


def short_circuit(x):
    return [v.item() for v in x if v > 0 and v < 2 or v == -2]


@pytest.mark.parametrize("f", [collatz_like, counted_loop, branches, early_return, short_circuit])
@pytest.mark.parametrize("x", [x_of(5), x_of(3, 4) * 4, x_of(4) + 5, tenon.tensor([1.0, float("nan")]), tenon.zeros(3)])
def test_control_flow_on_values(f, x):
    if f in (early_return, short_circuit) and x.dim() == 2:
        x = x.flatten()
    same(f, x)


def test_a_branch_that_changes_between_calls():
    def program(c):
        f = c(branches)
        return [f(x) for x in (x_of(5), x_of(4) + 5, tenon.tensor([float("nan")]), x_of(5), x_of(4) + 5)]

    alike(program)


def test_item_in_a_loop_over_rows():
    def f(x):
        s = 0.0
        for row in x:
            s += row.sum().item()
        return s

    same(f, x_of(50, 7))
    compiled = tenon.compile(f, threshold=0)
    compiled(x_of(50, 7))
    # Rows differ in their offset alone; a second pass knows every one of them.
    assert plans_of(compiled, (x_of(50, 7),)) == [0]


def test_item_between_the_steps_of_a_computation():
    def f(x):
        seen = []
        for i in range(20):
            x = x * 1.5 + 1
            if i % 3 == 0:
                seen.append(x[0].item())
            x.clamp_(-10, 10)
        return x, seen

    same(f, x_of(6))


def test_a_debugger_inside():
    """pdb reads variables of the frame, and may change them."""

    def program(c):
        commands = io.StringIO("p y.tolist()\np x._version\n!x.add_(1)\np (x + y).sum().item()\nc\n")
        told = io.StringIO()

        def f(x):
            y = x * 2
            x.mul_(3)
            pdb.Pdb(stdin=commands, stdout=told, nosigint=True, readrc=False).set_trace()
            return x + y

        result = c(f)(x_of(3))
        lines = [line.removeprefix("(Pdb) ") for line in told.getvalue().splitlines()]
        return result, [line for line in lines if not line.startswith(("> ", "->"))]

    assert len(alike(program)["result"][2]) >= 3


def test_values_that_are_pickled_and_copied():
    def f(x):
        y = x * 2
        again = pickle.loads(pickle.dumps(y[1:]))
        deep = copy.deepcopy(y)
        y.add_(1)
        return again, deep, copy.copy(y), y

    same(f, x_of(4))


def test_values_that_are_saved(tmp_path):
    def f(x):
        y = x.exp()
        tenon.save({"y": y, "v": y[1:]}, tmp_path / "y")
        y.zero_()
        return tenon.load(tmp_path / "y"), y

    same(f, x_of(4))


def test_a_value_after_the_end():
    def program(c):
        y = c(lambda x: (x * 2).t())(x_of(3, 4))
        return y, y.data_ptr() == y.data_ptr(), (y + 1).tolist(), y.numpy().sum().item()

    alike(program)


def test_many_operators_without_a_read_are_computed_in_bounded_pieces():
    """Nodes, memory and plans are bounded: one plan serves all pieces."""

    def f(x, n):
        for _ in range(n):
            x = x * 1.0000001
        return x

    same(f, x_of(3), 10_000)
    before = tenon.cpu.memory_stats()["allocation.all.current"]
    compiled = tenon.compile(f, threshold=0)
    compiled(x_of(3), 100_000)
    assert tenon.cpu.memory_stats()["allocation.all.current"] - before < 1000
    assert plans_of(compiled, (x_of(3), 100_000)) == [0]
