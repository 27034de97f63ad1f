"""What a compiled function reads from around it may change between calls: closures, globals, lists, attributes, methods."""

import functools

import beside_eager
import pytest
from beside_eager import RECORDED, plans_of, same

import tenon
from tenon import nn

SCALE = 2
alike = functools.partial(beside_eager.alike, ways=RECORDED)


def reads_a_global(x):
    return x * SCALE


def test_a_closure():
    def program(c):
        k = 2
        g = c(lambda x: x * k)
        first = g(tenon.ones(3))
        k = 3
        return first, g(tenon.ones(3)), k

    assert alike(program)["result"][2]["bits"] != alike(program)["result"][1]["bits"]


def test_a_global(monkeypatch):
    def program(c):
        f = c(reads_a_global)
        monkeypatch.setitem(globals(), "SCALE", 2)
        first = f(tenon.ones(3))
        monkeypatch.setitem(globals(), "SCALE", tenon.tensor([1.0, 2.0, 3.0]))
        second = f(tenon.ones(3))
        monkeypatch.setitem(globals(), "SCALE", 2.5)
        return first, second, f(tenon.ones(3))

    alike(program)


def test_an_element_of_a_list_and_of_a_dict():
    def program(c):
        numbers, named = [2, tenon.ones(3)], {"a": 1.0}
        f = c(lambda x: x * numbers[0] + numbers[1] - named["a"])
        results = [f(tenon.ones(3))]
        numbers[0] = -1
        results.append(f(tenon.ones(3)))
        numbers[1] = tenon.ones(1)
        named["a"] = tenon.full((3,), 0.5)
        results.append(f(tenon.ones(3)))
        numbers[1].add_(5)
        return [*results, f(tenon.ones(3))]

    alike(program)


class Scaled:
    """A callable object, and methods."""

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, x):
        return x * self.scale

    def method(self, x):
        return x + self.scale

    @tenon.compile(threshold=0)
    def compiled_method(self, x):
        return x - self.scale

    @staticmethod
    @tenon.compile
    def compiled_static(x):
        return x * 3

    @classmethod
    @tenon.compile
    def compiled_of_class(cls, x):
        return x * 3, cls.__name__


def test_an_attribute():
    def program(c):
        scaled = Scaled(2)
        f, g = c(scaled), c(scaled.method)
        results = [f(tenon.ones(3)), g(tenon.ones(3)), scaled.compiled_method(tenon.ones(3))]
        scaled.scale = tenon.arange(3)
        return [*results, f(tenon.ones(3)), g(tenon.ones(3)), scaled.compiled_method(tenon.ones(3))]

    alike(program)


def test_a_rebound_method():
    def program(c):
        scaled = Scaled(2)
        f = c(lambda x: scaled.method(x))
        first = f(tenon.ones(3))
        scaled.method = lambda x: x / 3
        return first, f(tenon.ones(3))

    alike(program)


def test_compiled_methods_know_their_object_and_class():
    x = tenon.ones(3)
    assert Scaled(2).compiled_method(x).tolist() == [-1, -1, -1]
    assert Scaled.compiled_method(Scaled(3), x=x).tolist() == [-2, -2, -2]
    assert Scaled.compiled_static(x).tolist() == [3, 3, 3] == Scaled(1).compiled_static(x).tolist()
    result, name = Scaled.compiled_of_class(x)
    assert result.tolist() == [3, 3, 3] and name == "Scaled"


def test_arguments_of_every_kind():
    def f(a, /, b, *more, scale=1, named=None, **rest):
        total = a["x"][0] + b.t().sum() + sum(more)
        return {"total": total * scale, "named": named, "rest": sorted(rest), "more": (more, a)}

    def program(c):
        a = {"x": [tenon.ones(3), "word", None]}
        g = c(f)
        return g(a, tenon.ones(2, 3), 1, tenon.ones(3), scale=2, named=tenon.zeros(1), z=1, y=2), g(a, tenon.ones(1, 1))

    alike(program)


def test_partial():
    def program(c):
        f = c(functools.partial(lambda x, y, *, z: x * y + z, tenon.ones(3), z=2))
        return f(tenon.arange(3)), f(4), f(y=5)

    alike(program)


def test_a_module_and_its_mode_and_parameters():
    def program(c):
        model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.ReLU(), nn.BatchNorm1d(4))
        f, x = c(model), tenon.ones(3, 4)
        results = [f(x)]
        model.eval()
        results.append(f(x))
        model[0].weight.data = tenon.ones(4, 4)
        results.append(f(x))
        model[0] = nn.Linear(4, 4)
        results.append(f(x))
        model.train()
        handle = model[0].register_forward_hook(lambda module, given, result: result * 2)
        results.append(f(x))
        handle.remove()
        return [*results, f(x), list(model.parameters()), list(model.buffers())]

    alike(program)


def test_two_models_line_by_line():
    def program(c):
        a, b = nn.Linear(4, 4), nn.Linear(4, 4)

        def f(x, y):
            x1 = a(x)
            y1 = b(y).relu()
            x2 = a(x1).tanh()
            y2 = b(y1) * x2
            x3 = a(y2)
            return x3, b(x3 + y1)

        g = c(f)
        return g(tenon.ones(2, 4), tenon.zeros(2, 4)), g(tenon.ones(3, 4), tenon.ones(3, 4))

    alike(program)


def test_compiled_functions_in_each_other():
    def program(c):
        @c
        def inner(x):
            x.add_(1)
            return x * 2

        @c
        def outer(x, depth):
            y = inner(x)
            if depth:
                y = outer(y, depth - 1) + inner(y)
            return y - x

        return outer(tenon.ones(3), 4), outer(tenon.ones(3), 2), inner(tenon.ones(2))

    alike(program)


def test_two_compiled_functions_that_call_each_other():
    def program(c):
        @c
        def even(x, n):
            return x if n == 0 else odd(x * 2, n - 1)

        @c
        def odd(x, n):
            return even(x + 1, n - 1)

        return even(tenon.ones(3), 6), odd(tenon.ones(3), 5)

    alike(program)


def test_an_exception_of_an_inner_compiled_function():
    def program(c):
        @c
        def inner(x):
            x.add_(1)
            raise ValueError("inner")

        @c
        def outer(x):
            y = x * 2
            try:
                inner(x)
            except ValueError as e:
                return y, x * 3, str(e)

        return outer(tenon.ones(3))

    alike(program)


def test_compiling_inside_a_compiled_function():
    def program(c):
        def f(x):
            g = c(lambda y: y * x.sum())
            return g(x + 1), c(nn.Identity())(x)

        return c(f)(tenon.ones(3)), c(c(f))(tenon.ones(2))

    alike(program)


@pytest.mark.parametrize("order", ["ABAB", "AABBCC", "ABCABCABC"])
def test_shapes_that_alternate(order):
    shapes = {"A": (4, 3), "B": (2, 3), "C": (3,)}
    model = nn.Linear(3, 3)

    def program(c):
        f = c(lambda x: (model(x).relu() * 2 + x).sum(-1))
        return [f(tenon.ones(shapes[letter])) for letter in order]

    alike(program)


def test_numbers_that_change_keep_their_kind():
    def program(c):
        f = c(lambda x, k: x * k + k)
        kinds = [2, 3, 0, 1, -1, 2.0, 0.5, float("inf"), float("nan"), True, 1j, 2**40, tenon.tensor(3.0), tenon.tensor(3)]
        return [f(tenon.ones(3), k) for k in kinds]

    alike(program)


def test_operators_given_as_arguments():
    for op in (tenon.sin, tenon.Tensor.exp, tenon.ops.aten.neg, nn.functional.gelu, abs):
        same(lambda x: op(x * 2) + 1, tenon.linspace(-1, 1, 5))


def test_two_hundred_shapes():
    """What is remembered is bounded, and known shapes plan nothing."""
    f = tenon.compile(lambda x: (x * 2 + 1).relu().sum(-1), threshold=0)
    for _ in range(2):
        for n in range(200):
            x = tenon.arange(n + 1.0)
            assert f(x).item() == (x * 2 + 1).relu().sum(-1).item()
    assert plans_of(f, *((tenon.arange(n + 1.0),) for n in range(200))) == [0] * 200


def test_a_remainder_at_the_end_of_each_epoch():
    f = tenon.compile(lambda x: (x * 2 + 1).relu().sum(-1), threshold=0)
    epoch = [(tenon.ones(n),) for n in (32, 32, 32, 5)]
    plans_of(f, *epoch)
    assert plans_of(f, *epoch, *epoch) == [0] * 8
