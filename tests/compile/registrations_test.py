"""Kernels that come and go while calls wait: each call runs what was registered when it was made."""

import pytest
from beside_eager import alike

import tenon
from tenon.library import Library


@pytest.mark.parametrize("times", [1, 2])
def test_a_kernel_that_is_registered_between_calls(times):
    def program(c):
        def f(x):
            first = x.abs() + 1
            mine = Library("aten", "IMPL", "CPU")
            mine.impl("abs", lambda x: x * 100)
            second = x.abs() + 1
            mine._destroy()
            return first, second, x.abs() + 1

        g = c(f)
        return [g(tenon.tensor([-1.0, 2.0])) for _ in range(times)]

    alike(program)


def test_what_cannot_be_computed_then_raises_at_the_next_call():
    def f(x, i):
        y = x.index_select(0, i)
        mine = Library("aten", "IMPL", "CPU")
        mine.impl("index_select", lambda x, dim, i: x)
        mine._destroy()
        done.append("registered")
        return y * 2

    done = []
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        tenon.compile(f, threshold=0)(tenon.ones(3), tenon.tensor([9]))
    assert done == ["registered"]
