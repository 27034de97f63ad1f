"""How long devices live: one file loaded several times, unloading and loading again, and what is installed as a distribution."""

import pathlib
import shutil
import subprocess

import pytest

import tenon
from tests.devices.conftest import BUILD, OPENREG
from tests.devices.programs import run

ROOT = pathlib.Path(__file__).resolve().parents[2]


# ---- S15 ----


def test_copies_of_a_device_have_state_of_their_own_and_go_alone(tmp_path):
    copied = tmp_path / "copied.so"
    shutil.copy(OPENREG, copied)
    run("""
one = tenon.load_device(sys.argv[1], name="one", options={"devices": 1, "memory": 8 << 20})
two = tenon.load_device(sys.argv[1], name="two", options={"devices": 2, "mode": "lazy"})
three = tenon.load_device(sys.argv[2], name="three", options={"devices": 3})
assert [d.device_count() for d in (one, two, three)] == [1, 2, 3]
assert one.mem_get_info()[1] == 8 << 20 and two.mem_get_info()[1] == 1 << 30
x = {d: tenon.arange(4., device=d) - 2 for d in ("one", "two", "three")}
assert one.memory_allocated() == two.memory_allocated() > 0
y = x["two"].to("three").to("one")
del x["one"], y
tenon.unload_device("one")
for d in ("two", "three"):
    assert (x[d] + 1).tolist() == [-1, 0, 1, 2]
    # Declared by all three, first by the one that is gone.
    assert tenon.ops.openreg.custom_abs(x[d]).tolist() == [2, 1, 0, 1]
    assert x[d].matmul(x[d]).item() == 6
del x["two"], d
tenon.unload_device("two")
assert tenon.ops.openreg.custom_abs(x["three"]).tolist() == [2, 1, 0, 1]
x.clear()
tenon.unload_device("three")
try:
    tenon.ops.openreg.custom_abs(tenon.ones(1))
except (RuntimeError, AttributeError) as error:
    assert "custom_abs" in str(error), error
else:
    raise AssertionError
assert not tenon.devices.loaded()
""", copied)


# ---- S16 ----

LIVES = {
    "a tensor": ("x = tenon.ones(3, device='guest')", r"in use: 1 storage \(of tensors, those saved for backward included\); drop"),
    "a tensor of no elements": ("x = tenon.ones(0, device='guest')", "in use: 1 storage "),
    "a view": ("x = tenon.ones(3, device='guest')[1:]", "in use: 1 storage "),
    "saved tensors": (
        "x = (tenon.ones(3, device='guest', requires_grad=True).exp() * 2).sum().cpu()",
        "in use: [1-9] storage",
    ),
    "a stream": ("x = guest.Stream()", "in use: 1 stream;"),
    "two streams": ("x = [guest.Stream(), guest.Stream(1)]", "in use: 2 streams;"),
    "an event": ("x = guest.current_stream().record_event()", "in use: 1 event;"),
    "all": (
        "x = [tenon.ones(3, device='guest'), guest.Stream(), guest.Stream().record_event()]",
        r"in use: 1 storage \(.*\), 1 stream, 1 event;",
    ),
}


@pytest.mark.parametrize("what", LIVES)
@pytest.mark.parametrize("mode", ["thread", "lazy"])
def test_unloading_is_refused_while_something_lives(what, mode):
    program, sentence = LIVES[what]
    for _ in range(2):  # done, then loaded again
        guest = tenon.load_device(OPENREG, name="guest", options={"mode": mode})
        values = {"guest": guest, "tenon": tenon}
        try:
            exec(program, values)
            for _ in range(2):
                with pytest.raises(RuntimeError, match=f"unload_device: 'guest' is {sentence}"):
                    tenon.unload_device("guest")
            assert (tenon.ones(2, device="guest") + 1).tolist() == [2, 2]
        finally:
            del values
            tenon.unload_device("guest")
        with pytest.raises(ValueError, match="no loaded device is called 'guest'"):
            tenon.ones(2, device="guest")
        assert not hasattr(tenon, "guest") and not hasattr(tenon.Tensor, "is_guest") and not hasattr(tenon.nn.Module, "guest")


def test_unloading_is_refused_while_pinned_memory_lives():
    run("""
guest = tenon.load_device(sys.argv[1], name="guest")
x = tenon.zeros(3, pin_memory=True)
y = x.to("guest", non_blocking=True)
del y
for _ in range(2):
    try:
        tenon.unload_device("guest")
    except RuntimeError as error:
        assert "in use: 1 block of pinned memory; drop" in str(error), error
    else:
        raise AssertionError
del x
tenon.unload_device("guest")
""")


def test_unloading_takes_everything_back():
    run("""
def tables():
    return (
        tenon.devices.loaded(), tenon.dispatch.backends(), [s.devices for s in tenon.dispatch.stubs()],
        [tenon.dispatch.dump_table(op) for op in ("aten::add.Tensor", "aten::sort", "aten::fill_.Scalar", "aten::copy_")],
        [tenon.dispatch.registrations(op) for op in ("aten::add.Tensor", "aten::fill_.Scalar")],
    )
before = None
for i in range(40):  # more often than there are places
    guest = tenon.load_device(sys.argv[1], name="guest" if i % 2 else "other", options={"devices": 1 + i % 3})
    name = guest._name
    stream = guest.Stream()
    with guest.stream(stream):
        x = tenon.randn(100, 100, device=name)
        y = (x @ x).exp().sort().values.cpu()
    guest.set_device(guest.device_count() - 1)
    stream.synchronize()
    del x, stream
    tenon.unload_device(name)
    # The first time operators of the plug-in become known by name.
    assert before is None or tables() == before
    before = tables()
guest = tenon.load_device(sys.argv[1], name="guest")
assert guest.current_device() == 0 and guest.current_stream().stream_id == 0, "not those of an earlier device"
""")


def test_unloading_waits_for_work_and_leaves_stale_objects_harmless():
    run("""
guest = tenon.load_device(sys.argv[1], name="guest", options={"mode": "random", "seed": 3})
stream = guest.current_stream()
event = guest.Event()
for i in range(10):
    x = tenon.full((1000,), i, device="guest") * 2
del x
tenon.unload_device("guest")
for call in (stream.synchronize, lambda: guest.synchronize(), lambda: event.record(stream), guest.device_count):
    try:
        call()
    except (RuntimeError, ValueError) as error:
        pass
try:
    tenon.unload_device("guest")
except ValueError as error:
    assert "no device that is called 'guest'" in str(error), error
for name in ("cpu", "meta", "nothing"):
    try:
        tenon.unload_device(name)
    except ValueError as error:
        assert f"no device that is called '{name}' was loaded" in str(error), error
""")


def test_a_refused_unload_changes_nothing_for_other_threads():
    run("""
import threading
device = tenon.load_device(sys.argv[1], name="guest")
keep = tenon.ones(3, device="guest")
failures, done = [], threading.Event()

def use():
    try:
        while not done.is_set():
            assert (tenon.ones(3000, device="guest") * 2).sum().item() == 6000
    except Exception as error:
        failures.append(error)

threads = [threading.Thread(target=use) for _ in range(4)]
for thread in threads:
    thread.start()
for _ in range(300):
    try:
        tenon.unload_device("guest")
    except RuntimeError as error:
        assert "unload_device: 'guest' is in use: " in str(error), error
    else:
        raise AssertionError("unloaded while a tensor lives")
done.set()
for thread in threads:
    thread.join()
assert not failures, failures
del keep
tenon.unload_device("guest")
""")


def test_threads_that_use_a_device_end_well_when_it_goes_or_stays():
    run("""
import threading
tenon.load_device(sys.argv[1], name="guest")
done = threading.Event()

def use():
    while not done.is_set():
        try:
            (tenon.ones(3000, device="guest") * 2).sum().item()
        except (RuntimeError, ValueError):
            pass

threads = [threading.Thread(target=use) for _ in range(4)]
for thread in threads:
    thread.start()
for _ in range(100):
    try:
        tenon.unload_device("guest")
        tenon.load_device(sys.argv[1], name="guest")
    except RuntimeError as error:
        assert "in use" in str(error), error
done.set()
for thread in threads:
    thread.join()
""")


def test_what_is_left_of_a_device_is_not_taken_for_another():
    run("""
first = tenon.load_device(sys.argv[1], name="first")
stale, stream = tenon.device("first:1"), first.current_stream(1)
tenon.unload_device("first")
assert str(stale) == "first:1 (unloaded)", str(stale)
second = tenon.load_device(sys.argv[1], name="second")
assert stale != tenon.device("second:1") and str(stale) == "first:1 (unloaded)"
for call in (lambda: tenon.ones(2, device=stale), lambda: tenon.empty(2, device=stale), stream.synchronize):
    try:
        call()
    except (RuntimeError, ValueError) as error:
        assert "first:1 (unloaded)" in str(error) or "device first (unloaded)" in str(error), error
    else:
        raise AssertionError(call)
# The next of the name is the one that is meant.
tenon.load_device(sys.argv[1], name="first")
assert str(stale) == "first:1" and tenon.ones(2, device=stale).tolist() == [1, 1]
""")


def test_kernels_of_others_keep_the_place():
    run("""
tenon.load_device(sys.argv[1], name="guest")
library = tenon.library.Library("mine", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "Guest")
assert tenon.ops.mine.twice(tenon.ones(1, device="guest")).item() == 2
tenon.unload_device("guest")
tenon.load_device(sys.argv[1], name="another")
try:
    tenon.ops.mine.twice(tenon.ones(1, device="another"))
except NotImplementedError as error:
    assert "Guest" in str(error), error
else:
    raise AssertionError("kernels of one device were given to another")
tenon.load_device(sys.argv[1], name="guest")
assert tenon.ops.mine.twice(tenon.ones(1, device="guest")).item() == 2
""")


def test_a_file_may_be_built_anew_and_loaded_again(tmp_path):
    library = tmp_path / "device.so"

    def build(count):
        compiled = tmp_path / "new.so"
        subprocess.run(["cc", "-std=c11", "-fPIC", "-shared", f"-I{ROOT}", f"-DDEVICES={count}",
                        str(ROOT / "tests/devices/faulty/faulty.c"), "-o", str(compiled)], check=True)  # fmt: skip
        compiled.replace(library)

    for count in (1, 3):
        build(count)
        assert tenon.load_device(library, name="rebuilt").device_count() == count
        tenon.unload_device("rebuilt")


def test_made_up_streams_are_refused(openreg):
    from tenon.devices import Stream

    with pytest.raises(ValueError, match="device openreg:0 has no stream 4711"):
        Stream(tenon.device("openreg:0"), 4711)
    made_up = openreg.Stream()
    made_up.stream_id = 4711
    for call in (made_up.synchronize, made_up.record_event, lambda: openreg.set_stream(made_up),
                 lambda: tenon.ones(1, device="openreg").record_stream(made_up)):  # fmt: skip
        with pytest.raises(ValueError, match="device openreg:0 has no stream 4711"):
            call()


def test_waits_give_the_interpreter_to_other_threads():
    run("""
import threading
device = tenon.load_device(sys.argv[1], name="slow", options={"mode": "thread"})
x = tenon.ones(1 << 20, device="slow")
gate, ran = threading.Semaphore(0), []

def wait_and_run():
    gate.acquire()
    ran.append(True)

thread = threading.Thread(target=wait_and_run)
thread.start()
sys.setswitchinterval(1000)  # nobody gives the interpreter up who does not wait
y = x * 2 + 1
gate.release()
y[5].item()
assert ran, "nobody else ran during a wait"
thread.join()
""")


# ---- What distributions offer ----


def distribution(folder, entry, module):
    """A fake distribution with an entry point, as an installer would leave it."""
    info = folder / "fake_device-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-device\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[tenon.plugins]\n{entry}\n")
    (folder / "fake_device.py").write_text(module)


@pytest.mark.parametrize("kind", ["a path", "a function"])
def test_a_device_of_an_installed_distribution_is_found_by_name(tmp_path, kind):
    library = f"library = {str(OPENREG)!r}" if kind == "a path" else f"def library():\n    import pathlib\n    return pathlib.Path({str(OPENREG)!r})"
    distribution(tmp_path, "gizmo = fake_device:library", library)
    path = f"{BUILD / 'python'}:{tmp_path}"
    for program in (
        "print(tenon.ones(2, device='gizmo:1').tolist(), tenon.gizmo.device_count())",
        "print([1.0, 1.0], tenon.gizmo.device_count())",
    ):
        assert run(program, PYTHONPATH=path) == "[1.0, 1.0] 2\n"
    # A folder of TENON_PLUGIN_PATH comes first.
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins/gizmo.so").symlink_to(OPENREG)
    out = run("tenon.gizmo; print(tenon.devices.loaded()[0][1])", PYTHONPATH=path, TENON_PLUGIN_PATH=str(tmp_path / "plugins"))
    assert out == f"{tmp_path}/plugins/gizmo.so\n"
    assert run("print(hasattr(tenon, 'gadget'))", PYTHONPATH=path) == "False\n"


def test_a_distribution_that_fails_says_why(tmp_path):
    distribution(tmp_path, "gizmo = fake_device:library", "raise ImportError('no driver here')")
    out = run("""
try:
    tenon.ones(1, device="gizmo")
except ImportError as error:
    print(error)
""", PYTHONPATH=f"{BUILD / 'python'}:{tmp_path}")
    assert out == "no driver here\n"


def test_little_is_kept_of_a_device_that_was_unloaded():
    """Its allocators and its device are, because another thread may still look at them; not what was registered."""
    run("""
import ctypes

class Heap(ctypes.Structure):
    _fields_ = [(n, ctypes.c_size_t) for n in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()]

mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Heap

def cycles(n):
    for _ in range(n):
        tenon.load_device(sys.argv[1], options={"mode": "sync"})
        x = tenon.ones(3, device="openreg")
        assert (x + 1).tolist() == [2, 2, 2]
        del x
        tenon.unload_device("openreg")
    heap = mallinfo()
    return heap.uordblks + heap.hblkhd

before = cycles(20)
kept = (cycles(400) - before) / 400  # so many that it matters little which tables grow within them
assert kept < 14 << 10, kept
""")
