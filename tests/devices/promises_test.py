"""What docs/backends.md promises of single functions, as a device sees it that notes what it is asked for."""

import pathlib
import subprocess

import pytest

from tests.devices.programs import run

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def noting(tmp_path_factory):
    library = tmp_path_factory.mktemp("noting") / "noting.so"
    subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", f"-I{ROOT}", HERE / "noting/noting.c", "-o", library],
                   check=True)  # fmt: skip
    return library


def noted(library, program):
    """(what was asked for, as lists of words; what the program printed after "said")"""
    lines = [line.split() for line in run(f"device = tenon.load_device(sys.argv[2], name='noting')\n{program}", library).splitlines()]
    return [line for line in lines if line[0] != "said"], [line[1:] for line in lines if line[0] == "said"]


def test_raw_free_gets_what_raw_alloc_was_asked_for(noting):
    asked, _ = noted(noting, """
kept = [tenon.empty(n, dtype=tenon.uint8, device="noting") for n in (1, 700_000, 1 << 20, 5 << 20, (12 << 20) + 1, 40 << 20)]
del kept
device.empty_cache()
tenon.zeros(3, device="noting:1")
tenon.unload_device("noting")
""")
    given, freed = ({(address, n) for kind, address, n in (a for a in asked if len(a) == 3) if kind == k} for k in ("alloc", "free"))
    assert len(given) >= 4 and given == freed


def test_the_default_stream_is_never_freed(noting):
    asked, _ = noted(noting, """
streams = [device.Stream() for _ in range(3)] + [device.Stream("noting:1")]
for s in streams:
    with device.stream(s):
        tenon.zeros(4, device=s.device) + 1
del streams, s
tenon.unload_device("noting")
""")
    new, freed = ([a[1] for a in asked if a[0] == kind] for kind in ("stream", "stream_free"))
    assert len(new) == 4 and sorted(new) == sorted(freed) and "0" not in freed


def test_a_copy_between_two_devices_is_one_from_each(noting):
    asked, said = noted(noting, """
x = tenon.arange(6.0, device="noting:0")
print("said begins")
y = x.to("noting:1")
print("said ends")
assert y.cpu().tolist() == [0, 1, 2, 3, 4, 5] and y.device.index == 1
""")
    copies = [tuple(map(int, a[1:4])) for a in asked if a[0] == "copy"]
    device, host = 0, 1
    assert (0, host, device) in copies and (1, device, host) in copies
    assert not [c for c in copies if c[1:] == (device, device)]


def test_copies_never_overlap(noting):
    asked, _ = noted(noting, """
for n in (10, 5000):
    x = tenon.arange(float(n), device="noting")
    x[1:].copy_(x[:-1])
    assert x.cpu().tolist() == [0.0, *map(float, range(n - 1))]
    x = tenon.arange(float(n), device="noting")
    x[: n // 2].copy_(x[n // 4 : n // 4 + n // 2])
    x.copy_(x)
    x.copy_(x.flip(0))
    x.resize_(2 * n)
    tenon.cat([x, x])
    x.view(2, n).t().copy_(x.view(n, 2))
    x.fill_(3)
    tenon.full((n,), 7.0, device="noting")
""")
    inside = [tuple(map(int, a[4:])) for a in asked if a[0] == "copy" and a[2:4] == ["0", "0"]]
    assert inside, "none was inside the device"
    assert not [(dst, src, n) for dst, src, n in inside if dst < src + n and src < dst + n]


def test_shutdown_comes_before_the_exit_handlers_of_drivers(noting):
    """Those that a driver registered while its plug-in was loaded: of every plug-in, not of the first one alone."""
    asked, _ = noted(noting, "tenon.load_device(sys.argv[2], name='second')\nprint('said ends')")
    assert [a for a in asked if a[0] in ("shutdown", "driver")] == [["shutdown"]] * 2 + [["driver", "ends"]] * 2
