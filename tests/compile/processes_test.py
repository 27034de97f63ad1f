"""Forks, other processes and the end of a process with pending tensors; each in a process of its own."""

import subprocess
import sys
import textwrap

import pytest


def run(code, tmp_path, expected=0):
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(code))
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=120)
    assert done.returncode == expected, done.stdout + done.stderr
    return done


def test_fork_inside(tmp_path):
    """Both sides read what was pending, and write without the other seeing it."""
    out = run(
        """
        import os, sys
        import tenon

        def f(x):
            y = x * 2
            z = y[1:]
            x.add_(1)
            child = os.fork()
            if child == 0:
                z.add_(100)
                print("child", y.tolist(), x.tolist(), flush=True)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            print("parent", y.tolist(), x.tolist(), flush=True)
            return y + z.sum()

        print("end", tenon.compile(f, threshold=0)(tenon.arange(3.0)).tolist())
        """,
        tmp_path,
    )
    assert out.stdout.splitlines() == [
        "child [0.0, 102.0, 104.0] [1.0, 2.0, 3.0]",
        "parent [0.0, 2.0, 4.0] [1.0, 2.0, 3.0]",
        "end [6.0, 8.0, 10.0]",
    ]


def test_a_forked_child_compiles_and_trains(tmp_path):
    run(
        """
        import os
        import tenon
        from tenon import nn

        model = nn.Linear(3, 3)
        f = tenon.compile(lambda x: model(x).relu().sum(), threshold=0)
        x = tenon.ones(2, 3)
        expected = f(x).item()
        child = os.fork()
        if child == 0:
            for _ in range(3):
                loss = f(x)
                loss.backward()
            os._exit(0 if loss.item() == expected else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert f(x).item() == expected
        """,
        tmp_path,
    )


def test_pending_tensors_of_another_thread_after_a_fork(tmp_path):
    """The child has no such thread: its pending tensors are an error that says so, not a wait for ever."""
    out = run(
        """
        import os, threading
        import tenon

        pending, ready, end = [], threading.Event(), threading.Event()

        def work():
            with tenon.recording(threshold=0):
                pending.append(tenon.arange(3.0) * 2)
                ready.set()
                end.wait()

        thread = threading.Thread(target=work)
        thread.start()
        assert ready.wait(60)
        child = os.fork()
        if child == 0:
            try:
                print("child", pending[0].tolist(), flush=True)
            except RuntimeError as e:
                print("child", "fork" in str(e), flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        end.set()
        thread.join()
        print("parent", pending[0].tolist())
        """,
        tmp_path,
    )
    child, parent = out.stdout.splitlines()
    assert child in ("child True", "child [0.0, 2.0, 4.0]")
    assert parent == "parent [0.0, 2.0, 4.0]"


def test_multiprocessing_from_a_compiled_function(tmp_path):
    out = run(
        """
        import multiprocessing
        import tenon

        def work(x):
            return (x * 3).tolist()

        @tenon.compile(threshold=0)
        def f(x):
            y = x * 2
            with multiprocessing.get_context("fork").Pool(2) as pool:
                got = pool.map(work, [y, y + 1])
            return got, y

        if __name__ == "__main__":
            print(f(tenon.arange(2.0)))
        """,
        tmp_path,
    )
    assert "([[0.0, 6.0], [3.0, 9.0]], tensor([0., 2.]))" in out.stdout


ENDS = {
    "the end of the program": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "os._exit": ("os._exit(4)", 4),
    "an exception": ("raise KeyError('end')", 1),
    "a daemon thread that records": ("threading.Thread(target=forever, daemon=True).start(); started.wait()", 0),
    "exit inside": ("with tenon.recording(threshold=0): kept.append(x.exp()); sys.exit(5)", 5),
    "a pending tensor in a module that is taken down": ("sys.kept = [x * 5]", 0),
    "C's exit": ("import ctypes; ctypes.CDLL(None).exit(6)", 6),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_process_ends_with_pending_tensors(end, tmp_path):
    statement, code = ENDS[end]
    out = run(
        f"""
        import os, sys, threading
        import tenon

        started = threading.Event()
        kept = []
        x = tenon.arange(3.0)

        def forever():
            with tenon.recording(threshold=0):
                y = tenon.ones(300)
                while True:
                    y = y * 1.0001
                    started.set()

        scope = tenon.recording(threshold=0)
        scope.__enter__()
        kept.append(x * 2)
        x.add_(1)
        {statement}
        """,
        tmp_path,
        code,
    )
    if code != 1:
        assert out.stderr == ""


def test_values_asked_for_while_the_interpreter_ends(tmp_path):
    out = run(
        """
        import atexit
        import tenon

        scope = tenon.recording(threshold=0)
        scope.__enter__()
        y = tenon.arange(3.0) * 2

        class Last:
            def __del__(self):
                print("del", y.tolist())

        last = Last()
        atexit.register(lambda: print("atexit", (y + 1).tolist()))
        """,
        tmp_path,
    )
    assert out.stdout.splitlines()[0] == "atexit [1.0, 3.0, 5.0]" and out.stderr == ""
