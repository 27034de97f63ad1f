"""What compile takes and refuses, and what it leaves as it was: names, signatures, errors, pickles."""

import copy
import functools
import inspect
import pickle

import pytest

import tenon
from tenon import nn


def doubled(x: tenon.Tensor, by: float = 2) -> tenon.Tensor:
    """Twice."""
    return x * by


compiled_here = tenon.compile(lambda x: x + 1)


@tenon.compile
def decorated(x):
    return x + 1


def test_a_function_keeps_its_name_and_signature():
    f = tenon.compile(doubled)
    assert (f.__name__, f.__doc__, f.__module__, f.__wrapped__) == ("doubled", "Twice.", __name__, doubled)
    assert inspect.signature(f) == inspect.signature(doubled)
    assert f(tenon.ones(2), by=3).tolist() == [3, 3]


def test_all_ways_to_say_it():
    for f in (tenon.compile(doubled), tenon.compile()(doubled), tenon.compile(shared="trusted", relaxed=True)(doubled),
              tenon.compile(doubled, threshold=0)):  # fmt: skip
        assert f(tenon.ones(2)).tolist() == [2, 2]


def test_a_scope():
    x = tenon.ones(3)
    with tenon.recording(threshold=0) as scope:
        y = x * 2
        x.add_(1)
    assert y.tolist() == [2, 2, 2] and x.tolist() == [2, 2, 2]
    assert "plan" in str(scope.explain())


def generator():
    yield tenon.ones(1)


async def coroutine():
    return tenon.ones(1)


async def asynchronous_generator():
    yield tenon.ones(1)


class Stepwise:
    def __call__(self):
        yield 1

    def method(self):
        yield 1

    async def later(self):
        return 1


class StepwiseModule(nn.Module):
    def forward(self, x):
        yield x


@pytest.mark.parametrize("f, kind, way_out", [
    (generator, "a generator function", "loop over the generator"),
    (coroutine, "a coroutine function", "between two awaits"),
    (asynchronous_generator, "an asynchronous generator function", "between two awaits"),
    (Stepwise(), "a generator function", "one step"),
    (Stepwise().method, "a generator function", "one step"),
    (Stepwise().later, "a coroutine function", "call that from the coroutine"),
    (functools.partial(functools.partial(generator)), "a generator function", "one step"),
    (StepwiseModule(), "a generator function", "one step"),
])  # fmt: skip
def test_what_returns_before_it_runs_is_refused(f, kind, way_out):
    with pytest.raises(TypeError) as error:
        tenon.compile(f)
    assert kind in str(error.value) and way_out in str(error.value)
    with pytest.raises(TypeError, match=kind):
        tenon.compile(shared="trusted")(f)


@pytest.mark.parametrize("what, said", [
    (3, r"got 3 \(int\)"), (tenon.ones(1), "got Tensor"), ("f", r"got 'f' \(str\)"), (nn.Linear, "the class 'Linear'"), ([], r"got \[\] \(list\)"),
])  # fmt: skip
def test_what_is_no_function_is_refused(what, said):
    with pytest.raises(TypeError, match=said):
        tenon.compile(what)


def test_options_are_checked_when_compiling():
    with pytest.raises(ValueError, match="shared must be 'safe' or 'trusted', got 'yes'"):
        tenon.compile(doubled, shared="yes")
    for threshold in (-1, 1.5, True, "0"):
        with pytest.raises(ValueError, match="threshold must be a number of elements or None"):
            tenon.compile(doubled, threshold=threshold)
    with pytest.raises(TypeError, match="moed"):
        tenon.compile(doubled, moed="max-autotune")


def test_wrong_arguments_are_told_as_by_the_function():
    with pytest.raises(TypeError) as theirs:
        doubled()
    with pytest.raises(TypeError) as ours:
        tenon.compile(doubled)()
    assert str(ours.value) == str(theirs.value)
    assert decorated(tenon.ones(1)).tolist() == [2], "the scope was closed"


def test_a_decorated_function_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(decorated)) is decorated


def test_a_module_stays_a_module():
    inner = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    model = tenon.compile(inner)
    assert isinstance(model, nn.Module)
    assert list(model.parameters())[0] is inner[0].weight
    # As PyTorch's: state that one saved is the other's.
    assert list(model.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert model.training and not model.eval().training and not inner.training
    model.extra = 3
    assert inner.extra == 3 and model.extra == 3
    del model.extra
    assert not hasattr(inner, "extra")
    outer = nn.Sequential(model, nn.Linear(4, 1))
    assert outer(tenon.ones(2, 3)).shape == (2, 1) and len(list(outer.parameters())) == 4
    assert "Linear(in_features=3" in repr(outer)


def test_a_compiled_module_is_copied_and_pickled():
    model = tenon.compile(nn.Linear(3, 4))
    x = tenon.ones(2, 3)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert again.weight is not model.weight and again(x).tolist() == model(x).tolist()
        with tenon.no_grad():
            again.weight.zero_()
        assert again(x).tolist() != model(x).tolist()
        assert "plan" in str(again.explain()) or "nothing" in str(again.explain())


def test_a_compiled_function_lets_go_of_what_it_holds():
    import gc
    import weakref

    class Held:
        def __call__(self, x):
            return x * 2

    held = Held()
    compiled, gone = tenon.compile(held), weakref.ref(held)
    compiled(tenon.ones(3))
    del held, compiled
    gc.collect()
    assert gone() is None


def test_the_exception_of_the_program_comes_before_that_of_the_flush():
    def f(x):
        x.index_select(0, tenon.tensor([7]) + 0)
        raise KeyError("the program's own")

    with pytest.raises((KeyError, IndexError)) as error:
        f(tenon.ones(3))
    eager = error.type
    with pytest.raises(KeyError, match="the program's own"):
        tenon.compile(f, threshold=0)(tenon.ones(3))
    assert eager is IndexError


def test_a_container_stays_a_container():
    inner = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    model = tenon.compile(inner)
    assert len(model) == 2 and model[0] is inner[0] and list(model) == list(inner) and inner[1] in model and model
    assert "append" in dir(model)
    assert tenon.compile(nn.Linear(2, 2))  # which has no length


@pytest.mark.parametrize("threshold", [-1, 1.5, True, 2**70])
def test_a_threshold_is_a_number_of_elements(threshold):
    with pytest.raises(ValueError, match="threshold must be a number of elements"):
        tenon.compile(lambda: None, threshold=threshold)
