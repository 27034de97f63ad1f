"""An error in a model says in which layer it was raised, once, and costs nothing where there is none."""

import dis
import pickle
import sys
import traceback

import pytest

import tenon
from tenon import nn


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(2, 2), nn.Linear(3, 2))])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Raises(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.make = make

    def forward(self, x):
        raise self.make()


@pytest.mark.parametrize(
    "model, place",
    [
        (nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(4, 5)), "in Sequential.2 (Linear)"),
        (Blocks(), "in Blocks.blocks.0.1 (Linear)"),
        (nn.Sequential(nn.Identity(), Blocks()), "in Sequential.1.blocks.0.1 (Linear)"),
    ],
    ids=["flat", "in lists", "nested"],
)
def test_a_wrong_layer_is_named_with_its_path_once(model, place):
    with pytest.raises(tenon.ShapeError) as caught:
        model(tenon.ones(1, 2))
    text = str(caught.value)
    assert text.startswith("linear: ") and text.endswith("; " + place) and text.count("(Linear)") == 1
    assert "".join(traceback.format_exception(caught.value)).count(place) == 1


def test_a_layer_alone_has_no_path():
    with pytest.raises(tenon.ShapeError) as caught:
        nn.Linear(4, 5)(tenon.ones(1, 2))
    assert "(Linear)" not in str(caught.value)


def test_a_module_that_is_no_part_of_its_caller_is_named_by_its_class():
    class Loose(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(4, 5)]  # a plain list registers nothing

        def forward(self, x):
            return self.layers[0](x)

    with pytest.raises(tenon.ShapeError, match=r"in Loose > Linear \(Linear\)$"):
        Loose()(tenon.ones(1, 2))


def test_hooks_do_not_hide_the_place():
    model = nn.Sequential(nn.Sequential(nn.Linear(4, 5)))
    model.register_forward_hook(lambda *a: None)
    model[0].register_forward_pre_hook(lambda *a: None)
    with pytest.raises(tenon.ShapeError, match=r"in Sequential\.0\.0 \(Linear\)$"):
        model(tenon.ones(1, 2))


class Custom(Exception):
    """A program's own exception, whose argument is data."""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python before 3.11 has no notes")
@pytest.mark.parametrize("error", [KeyError("key"), Custom("data"), FileNotFoundError(2, "missing", "file"), ValueError(), StopIteration(3)])
def test_other_exceptions_keep_their_arguments_and_get_a_note(error):
    arguments = error.args
    with pytest.raises(type(error)) as caught:
        nn.Sequential(Raises(lambda: error))(tenon.ones(1))
    assert caught.value is error and error.args == arguments
    assert error.__notes__ == ["in Sequential.0 (Raises)"]


def test_the_type_and_the_cause_stay():
    cause = OSError("cause")

    class Chained(nn.Module):
        def forward(self, x):
            raise tenon.ShapeError("shape") from cause

    with pytest.raises(tenon.ShapeError) as caught:
        nn.Sequential(Chained())(tenon.ones(1))
    assert type(caught.value) is tenon.ShapeError and caught.value.__cause__ is cause
    assert str(caught.value) == "shape; in Sequential.0 (Chained)"


def test_an_exception_that_is_raised_again_is_not_named_again():
    error = ValueError("once")
    inner = nn.Sequential(Raises(lambda: error))

    class Again(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            try:
                return self.inner(x)
            except ValueError as e:
                raise e

    for _ in range(2):
        with pytest.raises(ValueError):
            nn.Sequential(Again())(tenon.ones(1))
    assert str(error) == "once; in Sequential.0.inner.0 (Raises)"


def test_an_exception_from_another_names_its_own_place():
    class Translates(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 5)

        def forward(self, x):
            try:
                return self.layer(x)
            except ValueError as e:
                raise RuntimeError("translated") from e

    with pytest.raises(RuntimeError) as caught:
        nn.Sequential(Translates())(tenon.ones(1, 2))
    assert str(caught.value) == "translated; in Sequential.0 (Translates)"
    assert str(caught.value.__cause__).endswith("in Sequential.0.layer (Linear)")


def test_such_exceptions_can_be_pickled():
    with pytest.raises(tenon.ShapeError) as caught:
        nn.Sequential(nn.Linear(4, 5))(tenon.ones(1, 2))
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is tenon.ShapeError and str(again) == str(caught.value)


def test_what_ends_a_program_passes_as_it_is():
    with pytest.raises(KeyboardInterrupt) as caught:
        nn.Sequential(Raises(KeyboardInterrupt))(tenon.ones(1))
    assert not caught.value.args and not getattr(caught.value, "__notes__", None)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="before Python 3.11, entering a try block is an instruction")
def test_a_call_that_succeeds_runs_no_instruction_for_it():
    def without(self, *args, **kwargs):
        if (
            self._forward_hooks is None
            and self._forward_pre_hooks is None
            and self._backward_hooks is None
            and self._backward_pre_hooks is None
        ):
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def instructions(function):
        """Up to the end of the path without hooks, in the order in which they are run."""
        names = [(i.opname, i.argval) for i in dis.get_instructions(function) if not i.opname.startswith("POP_JUMP")]
        return names[: [name for name, _ in names].index("RETURN_VALUE") + 1]

    assert instructions(nn.Module.__call__) == instructions(without)
