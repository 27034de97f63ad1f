"""tenon.jit: TorchScript's decorators leave what they mark to Python."""

import pytest

import tenon
from tenon import jit, nn


def test_decorators_return_what_they_mark():
    def f(x):
        return x + 1

    class Interface:
        pass

    for decorate in (jit.script, jit.unused, jit.export, jit.ignore, jit.ignore(drop=True), jit.ignore(), jit.script_if_tracing, jit.script_method):
        assert decorate(f) is f
    assert jit.interface(Interface) is Interface is jit.script(Interface)
    module = nn.Linear(2, 2)
    assert jit.script(module, example_inputs=[(tenon.ones(2),)]) is module
    assert jit.is_scripting() is False and jit.is_tracing() is False
    assert jit.annotate(int, 3) == 3 and jit.Final[int] is not None
    assert issubclass(jit.ScriptModule, nn.Module) and not isinstance(module, jit.ScriptModule)


def test_a_program_of_pytorchs_runs():
    class Model(jit.ScriptModule):
        width: jit.Final[int]

        def __init__(self, width):
            super().__init__()
            self.width = width
            self.linear = nn.Linear(width, width)

        @jit.script_method
        def forward(self, x):
            if not jit.is_scripting():
                x = self.double(x)
            return self.linear(x)

        @jit.unused
        def double(self, x):
            return 2 * x

    model = Model(3)
    assert tenon.equal(model(tenon.ones(1, 3)), model.linear(2 * tenon.ones(1, 3)))


def test_what_is_not_there_says_so():
    with pytest.raises(AttributeError, match="module 'tenon.jit' has no attribute 'trace': torch.jit.trace of PyTorch is not in Tenon yet"):
        jit.trace
