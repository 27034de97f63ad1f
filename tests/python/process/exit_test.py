"""The process ends cleanly while other threads are still inside the library."""

import subprocess
import sys

import pytest

DAEMON = """
import threading
import tenon

started = threading.Event()
x = tenon.ones(2000, 200)


def work():
    while True:
        x.{operation}
        started.set()


for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
started.wait()
"""


@pytest.mark.parametrize("operation", ["exp()", "matmul(x.T)", "detach().requires_grad_().exp().sum().backward()"])
def test_daemon_threads_inside_a_kernel_do_not_abort_the_exit(operation):
    for _ in range(3):
        run = subprocess.run([sys.executable, "-c", DAEMON.format(operation=operation)], capture_output=True, text=True)
        assert run.returncode == 0 and run.stderr == ""


C_EXIT = """
import ctypes
import threading
import tenon

started = threading.Barrier(5)
x = tenon.ones({size}, {size})


def work():
    tenon.{operation}
    started.wait()
    while True:
        tenon.{operation}


for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
started.wait()
ctypes.CDLL(None).exit(0)
"""


@pytest.mark.parametrize("operation, size", [("randn(20, 20)", 1), ("mm(x, x)", 20), ("mm(x, x)", 600), ("sinh(x)", 600)])
def test_threads_run_on_while_static_objects_are_destroyed(operation, size):
    """C's exit() knows nothing of the interpreter: its threads run until the process is gone."""
    for _ in range(6):
        program = C_EXIT.format(operation=operation, size=size)
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
        assert run.returncode == 0 and run.stderr == ""


BACKWARD = """
import threading
import time
import tenon

started = threading.Event()


def python(g):
    started.set()
    {python}
    return g * 2


{definition}


def work():
    while True:
        x = tenon.ones(3, 2, requires_grad=True)
        {call}.sum().backward()


for _ in range({threads}):
    threading.Thread(target=work, daemon=True).start()
started.wait()
"""

DEFINITIONS = {
    "function": """
class Twice(tenon.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return python(g)
""",
    "hook": """
def hooked(y):
    y.register_hook(python)
    return y
""",
    "kernel": """
library = tenon.library.Library("exit_test", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", python, "CPU")
tenon.library.register_autograd("exit_test::twice", lambda ctx, g: tenon.ops.exit_test.twice(g))
""",
}
CALLS = {"function": "Twice.apply(x)", "hook": "hooked(x * 2)", "kernel": "tenon.ops.exit_test.twice(x)"}

# What Python does under backward when the process ends: it gives the interpreter lock away for a moment, the interpreter
# takes the lock from it, it calls a kernel that works without the lock, or it waits for what never comes.
PYTHON = {
    "gives_away": "time.sleep(0.0001)",
    "computes": "sum(range(20000))",
    "calls": "g.expand(20000, 3, 2).exp().sum()",
    "waits": "threading.Event().wait()",
}


@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("python", PYTHON)
@pytest.mark.parametrize("kind", DEFINITIONS)
def test_daemon_threads_inside_python_under_backward_do_not_abort_the_exit(kind, python, threads):
    program = BACKWARD.format(definition=DEFINITIONS[kind], call=CALLS[kind], python=PYTHON[python], threads=threads)
    for _ in range(2):
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
        assert run.returncode == 0 and run.stderr == ""
