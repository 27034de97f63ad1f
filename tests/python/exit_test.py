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
