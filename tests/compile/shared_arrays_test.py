"""Memory that NumPy and DLPack share: an array that is read or written around and inside a compiled function shows eager's."""

import numpy as np
import pytest
from beside_eager import alike

import tenon


def both():
    a = np.arange(6, dtype=np.float32)
    return a, tenon.from_numpy(a)


def test_an_array_read_after_a_write_of_its_tensor():
    def program(c):
        a, x = both()
        seen = []

        def f():
            x.add_(1)
            seen.append(float(a[0]))
            x.mul_(2)
            seen.append(float(a[1]))

        c(f)()
        return seen, a.tolist(), x

    alike(program)


def test_an_array_written_after_a_read_of_its_tensor():
    def program(c):
        a, x = both()

        def f():
            y = x * 2
            a[:] = 0
            z = x * 2
            a[1] = 7
            return y, z

        return c(f)(), x

    alike(program)


def test_views_of_shared_memory():
    def program(c):
        a, x = both()

        def f():
            v = x[1:].reshape(5, 1).t()
            y = v + 1
            a[2] = -1
            v.mul_(2)
            return y, v * 1, a.tolist()

        return c(f)(), x

    alike(program)


def test_an_array_taken_before():
    def program(c):
        x = tenon.arange(6.0)
        b = x.numpy()
        c(lambda: x.mul_(2))()
        b[0] = 5
        y = c(lambda: x + 1)()
        return b.tolist(), y, x

    alike(program)


def test_an_array_taken_inside():
    def program(c):
        x = tenon.arange(6.0)

        def f():
            y = x * 2
            b = y.numpy()
            y.add_(1)
            seen = b.tolist()
            b[:3] = -1
            z = y * 3
            b[3] = 9
            return seen, z, y

        return c(f)()

    alike(program)


@pytest.mark.parametrize("take", [np.from_dlpack, np.asarray, memoryview, tenon.from_dlpack],
                         ids=["np.from_dlpack", "np.asarray", "memoryview", "tenon.from_dlpack"])
def test_other_ways_to_share(take):
    def program(c):
        x = tenon.arange(6.0)

        def f():
            y = x * 2
            other = take(y)
            y.add_(1)
            return [float(v) for v in other], y * 2

        return c(f)()

    alike(program)


def test_buffers():
    def program(c):
        buffer = bytearray(np.arange(4, dtype=np.float32).tobytes())
        x = tenon.frombuffer(buffer, dtype=tenon.float32)

        def f():
            y = x + 1
            x.mul_(3)
            first = bytes(buffer[:8])
            buffer[:4] = b"\0\0\0\0"
            return y, first, x + 0

        return c(f)()

    alike(program)


def test_an_input_that_becomes_shared_while_it_is_recorded():
    def program(c):
        x = tenon.arange(6.0)

        def f():
            y = x * 2
            a = x.numpy()
            z = x + 1
            a[:] = 0
            return y, z, x * 1

        return c(f)()

    alike(program)


def test_trusted_defers_and_is_right_where_nobody_writes_meanwhile():
    a, x = both()
    f = tenon.compile(lambda: (x * 2 + 1).relu(), shared="trusted", threshold=0)
    for _ in range(2):
        assert f().tolist() == (x * 2 + 1).relu().tolist()
    a[:] = 4
    assert f().tolist() == [9.0] * 6
    x.add_(1)
    tenon.compile(lambda: x.mul_(2), shared="trusted", threshold=0)()
    assert a.tolist() == [10.0] * 6


def test_the_report_says_that_shared_memory_ran_at_once():
    a, x = both()
    f = tenon.compile(lambda: x * 2, threshold=0)
    f()
    report = str(f.explain())
    assert "clone" in report and "shared" in report
    trusted = tenon.compile(lambda: x * 2, threshold=0, shared="trusted")
    trusted()
    assert "clone" not in str(trusted.explain())
    del a


def test_an_unsafe_address_read_by_ctypes():
    """An address that is taken while operators are pending has their values; what is written there comes before later reads."""
    import ctypes

    def program(c):
        x = tenon.arange(6.0)

        def f():
            y = x * 2
            at = ctypes.cast(y.data_ptr(), ctypes.POINTER(ctypes.c_float))
            seen = at[1]
            at[1] = 50.0
            return seen, y + 1

        return c(f)()

    alike(program)
