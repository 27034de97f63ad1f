"""Operators written in Python, inside compiled functions: with and without fakes, that mutate, raise, lie or compile."""

import pytest
from beside_eager import CALLS, alike, same

import tenon
from tenon.library import Library, custom_op

calls = []


@custom_op("libcompile::scaled", mutates_args=())
def scaled(x: tenon.Tensor, by: float) -> tenon.Tensor:
    calls.append("scaled")
    return x * by


@custom_op("libcompile::with_fake", mutates_args=())
def with_fake(x: tenon.Tensor) -> tenon.Tensor:
    calls.append("with_fake")
    return tenon.from_numpy(x.detach().numpy() + 1)


@with_fake.register_fake
def _(x):
    return tenon.empty_like(x)


@custom_op("libcompile::by_value", mutates_args=())
def by_value(x: tenon.Tensor) -> tenon.Tensor:
    return x[x > 0].clone()


@custom_op("libcompile::fill_from", mutates_args=("out",))
def fill_from(x: tenon.Tensor, out: tenon.Tensor) -> None:
    out.copy_(x * 2)


@custom_op("libcompile::raising", mutates_args=())
def raising(x: tenon.Tensor) -> tenon.Tensor:
    if x.sum() > 0:
        raise LookupError(f"sum {x.sum().item()}")
    return x.clone()


@custom_op("libcompile::printing", mutates_args=())
def printing(x: tenon.Tensor) -> tenon.Tensor:
    print("sum", x.sum().item())
    return x.clone()


@custom_op("libcompile::compiling", mutates_args=())
def compiling(x: tenon.Tensor) -> tenon.Tensor:
    return tenon.compile(lambda t: (t * 2 + 1).relu(), threshold=0)(x)


@custom_op("libcompile::two", mutates_args=())
def two(x: tenon.Tensor) -> tuple[tenon.Tensor, tenon.Tensor]:
    return x * 2, x.sum()


def setup(ctx, inputs, output):
    ctx.by = inputs[1]


scaled.register_autograd(lambda ctx, g: (g * ctx.by, None), setup_context=setup)


def x_of(*shape):
    return tenon.linspace(-1, 2, tenon.ones(shape).numel()).reshape(shape)


@pytest.mark.parametrize("op", [lambda x: scaled(x, 3.0), with_fake, by_value, compiling, lambda x: two(x)[0] + two(x)[1]])
def test_results_go_on_as_eagers(op):
    def f(x):
        y = x * 2
        z = op(y)
        y.add_(1)
        w = op(y + z.sum())
        x.sub_(1)
        return y, z, w, z + w if z.shape == w.shape else z

    same(f, x_of(4))


def test_it_runs_once_for_each_call():
    def f(x):
        scaled(x, 2.0)
        y = with_fake(x)
        return scaled(y, 3.0)

    calls.clear()
    f(x_of(3))
    eager = list(calls)
    for _ in range(2):
        calls.clear()
        tenon.compile(f, threshold=0)(x_of(3))
        assert calls == eager


def test_effects_come_in_the_order_of_the_program(capsys):
    def f(x):
        y = printing(x * 2)
        print("between")
        z = printing(y + 1)
        print("end")
        return z

    same(f, x_of(3))
    printed = capsys.readouterr().out.splitlines()
    assert printed[:4] * CALLS == printed and printed[1] == "between"


def test_one_that_mutates():
    def f(x, out):
        y = out + 1
        fill_from(x, out)
        z = out * y
        fill_from(z, out[:2].t() if out.dim() == 2 and out.shape[0] == 2 else out)
        return y, z, out._version

    same(f, x_of(4), tenon.zeros(4))


def test_one_that_raises_raises_its_own_exception():
    def f(x):
        x.add_(5)
        return raising(x) * 2

    assert same(f, x_of(3), more_in_errors=True)["raised"][0] == "LookupError"
    compiled = tenon.compile(f, threshold=0)
    with pytest.raises(LookupError):
        compiled(x_of(3))
    assert compiled(x_of(3) - 50).tolist() == f(x_of(3) - 50).tolist()


def test_one_with_a_derivative():
    def f(x):
        y = scaled(x.sin(), 3.0)
        y.sum().backward()
        return y, x.grad

    same(f, x_of(4).requires_grad_())


def test_operators_that_replace_built_in_kernels():
    """A kernel that a program registers for a built-in operator is what compiled functions call."""
    seen = []
    with Library("aten", "IMPL") as lib:
        lib.impl("neg", lambda x: seen.append(x.shape) or x * -1, "CPU")

        def f(x):
            return (x * 2).neg() + 1

        same(f, x_of(3))
    assert len(seen) == CALLS


def test_one_that_lies_about_what_it_writes():
    """Its schema says that it reads. Eager shows the write to whoever looks; a compiled program never gives a wrong answer of
    operators that tell the truth: either the write is seen as eager's, or it is refused with the operator's name."""

    @custom_op("libcompile::liar", mutates_args=())
    def liar(x: tenon.Tensor) -> tenon.Tensor:
        x.add_(1)
        return x * 2

    def f(x):
        y = x * 3
        z = liar(y)
        return y + 0, z

    given = x_of(3)
    eager = f(given.clone())
    try:
        ours = tenon.compile(f, threshold=0)(given.clone())
    except RuntimeError as e:
        assert "libcompile::liar" in str(e)
    else:
        assert [t.tolist() for t in ours] == [t.tolist() for t in eager]


def test_functions_of_python_inside_are_called_as_often():
    counts = {"eager": 0, "compiled": 0}

    def f(x, who):
        for _ in range(3):
            counts[who] += 1
            x = x * 2
        return x

    f(x_of(3), "eager")
    tenon.compile(f, threshold=0)(x_of(3), "compiled")
    assert counts == {"eager": 3, "compiled": 3}


def test_a_program_that_registers_while_it_is_recorded():
    def program(c):
        def f(x):
            y = x * 2
            with Library("libcompiled", "FRAGMENT") as lib:
                lib.define("late(Tensor x) -> Tensor")
                lib.impl("late", lambda t: t + 1, "CPU")
                z = tenon.ops.libcompiled.late(y)
            return y, z

        return c(f)(x_of(3))

    alike(program)


def test_one_that_the_host_has_not():
    with Library("libcompiled_meta", "FRAGMENT") as lib:
        lib.define("far(Tensor x) -> Tensor")
        lib.impl("far", lambda x: tenon.empty(7, device=x.device), "Meta")
        far = tenon.ops.libcompiled_meta.far
        f = tenon.compile(lambda x: far(x.to("meta")).shape, threshold=0)
        assert f(x_of(3)) == (7,)
        same(lambda x: far(x * 2), x_of(3))
