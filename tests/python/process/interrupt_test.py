"""Ctrl-C in long work: Python's handler runs between the pieces of a kernel, a product or a reduction, and what it raises ends the
call."""

import signal
import subprocess
import sys
import threading

import pytest

from tenon.conformance import runner

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
    x = tenon.full((n,), 0.5, dtype=tenon.{dtype})
    seen = x.numpy()
    work = {work}

    def press():
        while seen[0] == 0.5:
            pass
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    try:
        work()
        thread.join()  # where the signal comes too late for the kernel
        raised = False
    except KeyboardInterrupt:
        raised = True
    thread.join()
    written = np.count_nonzero(seen != 0.5)
    assert x._version == 1  # what was written in part was written
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


# What writes x, most of it after x[0].
KERNEL = {"work": "x.atanh_", "dtype": "float64"}
PRODUCT = {
    "work": "lambda a=tenon.ones(n // 256, 64), b=tenon.ones(64, 256): tenon.mm(a, b, out=x.view(-1, 256))",
    "dtype": "float32",
}
BATCHES = {
    "work": "lambda a=tenon.ones(n >> 16, 256, 64), b=tenon.ones(n >> 16, 64, 256): tenon.bmm(a, b, out=x.view(-1, 256, 256))",
    "dtype": "float32",
}


def run(work=KERNEL, **options):
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(**work, **options)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pieces, raised, handled = done.stdout.split()
    return int(pieces), raised == "True", int(handled)


@pytest.mark.parametrize("work", [KERNEL, PRODUCT, BATCHES], ids=["kernel", "product", "batches"])
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_work_between_two_pieces(threads, work):
    pieces, raised, _ = run(work, threads=threads, handler="tenon.set_strict(True)", stops=True)
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


class InterruptedProcess:
    """A process of the conformance kit that Ctrl-C ends, as it ends the kit: the second of `all`, after the first has answered."""

    all = []

    def __init__(self, job):
        self.process, self.entries, self.ended = self, job["entries"], threading.Event()
        self.all.append(self)

    def messages(self):
        if self.entries is None:
            yield {"what": "entries", "forms": {"add": ["aten::add.Tensor"]}, "described": "", "kernels": [], "stubs": []}
            return
        yield {"what": "begin", "entry": "add", "operator": "aten::add.Tensor"}
        if len(self.all) == 2:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # wakes it, where it waits for this thread
        else:
            self.ended.wait()  # one that begins after the crash

    def kill(self):
        self.ended.set()

    def end(self):
        return (0 if self.entries is None else -signal.SIGINT), "KeyboardInterrupt"


def test_ctrl_c_ends_the_conformance_kit_and_its_processes(monkeypatch):
    InterruptedProcess.all.clear()
    monkeypatch.setattr(runner, "Process", InterruptedProcess)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # LLVM, where another test has loaded it, puts its own there
    with pytest.raises(KeyboardInterrupt):
        runner.run("some_device")
    assert InterruptedProcess.all[-1].ended.is_set()


# Of a tensor that no machine would ever get to the end of. The thread takes the interpreter lock, which changes hands at no
# other moment, when the kernel has given it away: the signal comes while the kernel runs.
ENDLESS = """
import os, signal, sys, threading
import numpy as np
import tenon

tenon.set_num_threads({threads})
sys.setswitchinterval(1e6)
signal.signal(signal.SIGINT, signal.default_int_handler)  # who started the tests may ignore it
gate = threading.Lock()
gate.acquire()

def press():
    gate.acquire()
    os.kill(os.getpid(), signal.SIGINT)

def strided(*sizes, dtype=tenon.float32, step=0):
    return tenon.ones(2, dtype=dtype).as_strided(sizes, (0,) * (len(sizes) - 1) + (step,))

endless = {operand}
x = endless[(slice(2),) * endless.dim()]
{call}  # what is made at the first call is there
x = endless
thread = threading.Thread(target=press, daemon=True)
thread.start()
gate.release()
try:
    {call}
    print("ended")
except KeyboardInterrupt:
    print("interrupted")
thread.join()
assert tenon.ones(3).sum().item() == 3  # usable as ever
"""
FLOATS, BYTES, HALVES = "strided(1 << 46)", "strided(1 << 46, dtype=tenon.int8)", "strided(1 << 46, dtype=tenon.float16)"
PAIRS, ROWS, LONGS = "strided(1 << 46, dtype=tenon.complex64)", "strided(8, 1 << 42)", "strided(1 << 46, dtype=tenon.int64)"
DENSE, LANES = "strided(1 << 40, 64).transpose(0, 1)", "strided(64, 1 << 40).transpose(0, 1)"
CALLS = [
    (FLOATS, "x.sum()"), (FLOATS, "x.mean()"), (FLOATS, "x.prod()"), (FLOATS, "x.amax()"), (FLOATS, "x.min()"),
    (FLOATS, "x.argmax()"), (FLOATS, "x.norm()"), (FLOATS, "x.norm(3)"), (FLOATS, "x.var()"), (FLOATS, "tenon.std_mean(x)"),
    (FLOATS, "x.aminmax()"), (FLOATS, "x.logsumexp(0)"), (FLOATS, "tenon.equal(x, x)"), (FLOATS, "x.max(0)"),
   
    (BYTES, "x.sum()"), (BYTES, "x.all()"), (BYTES, "x.any(0)"), (BYTES, "x.argmin()"), (HALVES, "x.sum()"), (HALVES, "x.var()"),
    (LONGS, "x.sum()"), (LONGS, "x.prod()"), (PAIRS, "x.sum()"), (PAIRS, "x.prod()"), (PAIRS, "x.mean()"),
    (ROWS, "x.sum(1)"), (ROWS, "x.var(1)"), (ROWS, "x.argmax(1)"), (DENSE, "x.sum(1)"), (LANES, "x.sum(0)"), (LANES, "x.amax(0)"),
    (LANES, "x.argmax(0)"), (LANES, "x.var(0)"), (FLOATS, "x.dot(x)"), (LONGS, "x.dot(x)"),
]  # fmt: skip


@pytest.mark.parametrize("operand, call", CALLS)
def test_ctrl_c_ends_sums_of_many_elements(operand, call):
    program = ENDLESS.format(threads=1, operand=operand, call=call)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "interrupted\n", done.stdout + done.stderr


@pytest.mark.parametrize("operand, call", [(FLOATS, "x.sum()"), (FLOATS, "x.var()"), (ROWS, "x.sum(1)"), (LANES, "x.amax(0)")])
def test_ctrl_c_ends_a_reduction_on_two_threads(operand, call):
    program = ENDLESS.format(threads=2, operand=operand, call=call)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout == "interrupted\n", done.stdout + done.stderr
