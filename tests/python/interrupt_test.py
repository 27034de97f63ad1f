"""Ctrl-C in long work: Python's handler runs between the pieces of a kernel, and what it raises ends the call."""

import subprocess
import sys

import pytest

# A thread sends the signal as soon as the first element has been written: all that is written later was in pieces that ran
# after the signal. Where the machine ran nothing else in time, a longer kernel is tried.
PROGRAM = """
import os, signal, threading
import numpy as np
import tenon

tenon.set_num_threads({threads})
handled = []
{handler}

def pieces_written(n):
    x = tenon.full((n,), 0.5, dtype=tenon.float64)
    seen = x.numpy()

    def press():
        while seen[0] == 0.5:
            pass
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        x.atanh_()
        thread.join()  # where the signal comes too late for the kernel
        raised = False
    except KeyboardInterrupt:
        raised = True
    thread.join()
    written = np.count_nonzero(seen != 0.5)
    assert x.add_(1).shape == (n,) and tenon.ones(3).sum().item() == 3  # usable as ever
    return written, raised

n = 1 << 22
while True:
    written, raised = pieces_written(n)
    if {stops} and written == n and n < 1 << 27:
        n *= 2
        continue
    print(written * 64 // n, raised, len(handled))
    break
"""


def run(**options):
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(**options)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pieces, raised, handled = done.stdout.split()
    return int(pieces), raised == "True", int(handled)


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_a_kernel_between_two_pieces(threads):
    pieces, raised, _ = run(threads=threads, handler="", stops=True)
    assert raised and pieces < 64


def test_a_handler_that_returns_lets_the_kernel_go_on():
    pieces, raised, handled = run(
        threads=1, handler="signal.signal(signal.SIGINT, lambda *_: handled.append(1))", stops=False
    )
    assert (pieces, raised, handled) == (64, False, 1)


def test_a_handler_of_the_program_decides_what_is_raised():
    handler = (
        "class Enough(KeyboardInterrupt): pass\n"
        "def stop(*_):\n    handled.append(1)\n    raise Enough\n"
        "signal.signal(signal.SIGINT, stop)"
    )
    pieces, raised, handled = run(threads=1, handler=handler, stops=True)
    assert raised and pieces < 64 and handled >= 1
