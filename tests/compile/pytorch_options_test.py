"""PyTorch's options of compile, and Module.compile: what changes nothing is accepted, what is not known is refused."""

import copy
import pickle
import subprocess
import sys
import warnings

import pytest
from beside_eager import counted

import tenon
from tenon import nn


def in_a_process(program):
    """The standard output of a program with every warning shown."""
    done = subprocess.run([sys.executable, "-W", "always", "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_each_option_without_effect_says_so_once_in_the_process():
    program = """
import tenon
for _ in range(2):
    f = tenon.compile(lambda x: x + 1, mode="max-autotune", fullgraph=True, dynamic=True, backend="aot_eager")
    g = tenon.compile(lambda x: x + 1, mode="reduce-overhead", fullgraph=True, dynamic=False, backend="eager")
    h = tenon.compile(lambda x: x + 1, options={"triton.cudagraphs": True})
print([f(tenon.ones(1)).item() for f in (f, g, h)])
"""
    out, err = in_a_process(program)
    assert out == "[2.0, 2.0, 2.0]\n"
    warned = [line.partition("UserWarning: compile: ")[2] for line in err.splitlines() if "UserWarning" in line]
    assert [line.partition(" has no effect: ")[0] for line in warned] == [
        "fullgraph=True", "dynamic=True", "backend='aot_eager'", "mode='max-autotune'", "options",
    ]  # fmt: skip
    assert all(line.startswith("<string>:4:") or line.startswith("<string>:6:") for line in err.splitlines() if "UserWarning" in line)
    assert "tune=True" in warned[3]


def test_what_pytorch_has_by_default_says_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = tenon.compile(lambda x: x * 2, mode="default", fullgraph=False, dynamic=None, backend="inductor")
        assert f(tenon.ones(2)).tolist() == [2, 2]
        g = tenon.compile(mode=None, backend=None, options=None)(lambda x: x * 3)
        assert g(tenon.ones(2)).tolist() == [3, 3]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"backend": "nonsense"}, "compile: Invalid backend: 'nonsense'; leave it out, .*inductor"),
        ({"mode": "nonsense"}, "compile: Unrecognized mode='nonsense', should be one of: default, .*max-autotune"),
        ({"backend": print}, "compile: backend='print' is a function, which takes a graph of PyTorch's; .*leave backend out"),
        ({"mode": "default", "options": {}}, "compile: Either mode or options can be specified"),
    ],
)
def test_what_is_not_known_is_refused(options, said):
    with pytest.raises(RuntimeError, match=said):
        tenon.compile(lambda x: x, **options)


def test_disable_returns_the_function():
    def f(x):
        return x

    assert tenon.compile(f, disable=True) is f and tenon.compile(disable=True)(f) is f


def model():
    tenon.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def test_a_module_that_compiles_itself():
    plain, net, x = model(), model(), tenon.linspace(-1, 1, 6).reshape(2, 3)
    names = [*net.state_dict()]
    assert net.compile(threshold=0) is None
    before = counted("recorded")
    assert net(x).equal(plain(x)) and counted("recorded") > before
    assert [*net.state_dict()] == names and repr(net) == repr(plain) and isinstance(net, nn.Sequential)
    net[0].weight.data.zero_()
    plain[0].weight.data.zero_()
    assert net(x).equal(plain(x))


def test_its_hooks_run_and_its_copies_are_plain():
    net, x, called = model(), tenon.ones(1, 3), []
    net.compile(threshold=0)
    handle = net.register_forward_hook(lambda module, args, result: called.append(module) or result * 2)
    doubled = net(x)
    handle.remove()
    assert doubled.equal(net(x) * 2) and called == [net]
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        with tenon.no_grad():
            other[2].bias.add_(1)
        before = counted("recorded")
        assert other(x).equal(net[:2](x) @ net[2].weight.T + other[2].bias) and counted("recorded") == before


def test_a_module_that_compiles_itself_is_replayed():
    net, x = model().requires_grad_(False), tenon.ones(1, 3)
    net.compile(pure=True)
    results = [net(x) for _ in range(5)]
    assert all(r.equal(results[0]) for r in results) and net._compiled_call.explain().of("replays")[0]["runs"] == 3
    net[2].bias.data.add_(1)
    assert net(x).equal(nn.Sequential(*net)(x)) and not net(x).equal(results[0])


def test_a_class_of_modules_with_a_method_of_that_name():
    class Own(nn.Module):
        def compile(self, optimizer):
            return optimizer

    assert Own().compile("adam") == "adam"
