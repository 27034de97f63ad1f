"""Version errors name the lines of Python that saved and that changed a tensor."""

import functools
import re
import sys
import textwrap
import weakref

import pytest

import tenon


def line():
    return sys._getframe(1).f_lineno


def leaf(*values):
    return tenon.tensor(values, requires_grad=True)


def lines_of(f):
    with pytest.raises(RuntimeError) as error:
        f()
    found = re.search(r"`(\w+)` saved (.*), which was changed in place .*Saved at (.*), changed at (.*)$", str(error.value))
    assert found, error.value
    return found.groups()


@pytest.mark.parametrize("size", [1, 100_000])  # the latter gives the interpreter lock away
def test_an_operator_and_a_method(size):
    x = tenon.ones(size, requires_grad=True)
    y = x.exp(); saved = line()  # noqa: E702
    y.add_(1); changed = line()  # noqa: E702
    assert lines_of(y.sum().backward) == ("exp", "its result", f"{__file__}:{saved}", f"{__file__}:{changed}")


def change(t):
    t[0] = 5.0


def test_an_argument_changed_elsewhere():
    x, c = leaf(1.0), tenon.ones(1)
    y = (
        x
        * c
    )
    change(c)
    operator, what, saved, changed = lines_of(y.backward)
    assert (operator, what) == ("mul", "`other`")
    assert saved.startswith(__file__) and changed == f"{__file__}:{change.__code__.co_firstlineno + 1}"


def test_a_custom_function():
    class Square(tenon.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return ctx.saved_tensors[0] * grad

    x = leaf(1.0) * 1
    y = Square.apply(x); saved = line()  # noqa: E702
    x.zero_(); changed = line()  # noqa: E702
    operator, _, *places = lines_of(y.backward)
    assert operator == "SquareBackward" and places == [f"{__file__}:{saved}", f"{__file__}:{changed}"]


def test_code_that_is_gone_is_told_by_its_file():
    x = leaf(1.0)
    scope = {"x": x}
    exec(compile(textwrap.dedent("""
        y = x.exp()
        y.add_(1)
    """), "made_up.py", "exec"), scope)
    y = scope["y"]
    _, _, saved, changed = lines_of(y.backward)
    assert saved == changed == "made_up.py, in code from line 1"


def test_marks_of_many_pieces_of_code_are_bounded_and_right():
    x = leaf(1.0)
    kept = []
    for i in range(3000):
        scope = {"x": x}
        exec(compile("\n" * (i % 7) + "y = x.exp()\ny.add_(1)", f"piece_{i}.py", "exec"), scope)
        if i % 500 == 0:
            kept.append((i, scope["y"]))
    for i, y in kept:
        saved = lines_of(y.backward)[2]
        assert saved == "code that is gone" or saved.startswith(f"piece_{i}.py")
    y = x.exp(); here = line()  # noqa: E702
    y.add_(1)
    assert lines_of(y.backward)[2] == f"{__file__}:{here}"


def test_loops_and_generators():
    x = leaf(1.0)

    def steps():
        y = x.exp(); yield line()  # noqa: E702
        y.add_(1); yield line()  # noqa: E702
        yield y

    saved, changed, y = steps()
    assert lines_of(y.backward)[2:] == (f"{__file__}:{saved}", f"{__file__}:{changed}")


class Local:
    pass


def end(at_end):
    local = Local()
    at_end(local)


class Ended:
    def __init__(self, at_end):
        local = Local()
        at_end(local)


@pytest.mark.parametrize("call", [functools.partial(end), Ended], ids=["by a function of C", "of a class"])
def test_what_runs_while_the_variables_of_a_function_are_freed(call):
    for _ in range(50):  # CPython specializes calls that come again
        y = leaf(1.0).exp()
        change = map(tenon.Tensor.add_, [y], [1])
        references = []
        call(lambda local: references.append(weakref.ref(local, functools.partial(next, change)))); changed = line()  # noqa: B023, E702
    assert lines_of(y.backward)[3] == f"{__file__}:{changed}"
