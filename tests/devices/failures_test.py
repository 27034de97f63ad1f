"""Plug-ins that fail: in the middle of calls, by exceptions out of every function, by kernels with wrong results, and at
loading. What fails is an error that names device and operator, and leaves nothing behind."""

import contextlib
import itertools
import os
import pathlib
import re
import subprocess

import pytest

import tenon
from tests.devices.conftest import OPENREG
from tests.devices.programs import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAULTY = ROOT / "tests/devices/faulty/faulty.c"


_numbers = itertools.count()


@contextlib.contextmanager
def loaded(library=OPENREG, **options):
    """The module of a device that goes again: that it can be unloaded shows that nothing of it was leaked."""
    module = tenon.load_device(library, name=f"device{next(_numbers)}", options=options)
    yield module  # of a test that fails, it stays
    tenon.unload_device(module._name)


# ---- S11: an error status in the middle ----


def in_place(x, y):
    x.add_(y)


def out(x, y):
    result = tenon.empty_like(x)
    try:
        tenon.mul(x, y, out=result)
    finally:
        assert result._version <= 1


def two_outputs(x, y):
    x.sort()


def two_written(x, y):
    tenon.ops.aten._sgd_step_(x, y, y.clone(), momentum=0.9, rest=1.0, step=0.1, nesterov=False)


def fallback(x, y):
    x @ y


def fallback_in_place(x, y):
    x.addmm_(x, y)


def copied(x, y):
    x.copy_(y.t())


def filled(x, y):
    x.fill_(3)


def backward(x, y):
    x.requires_grad_()
    (x * y).sigmoid().sum().backward()


OPERATORS = {
    in_place: "add_",
    out: "mul",
    two_outputs: "sort",
    two_written: "_sgd_step_|clone|copy_",
    fallback: "matmul",
    fallback_in_place: "addmm_",
    copied: "copy_",
    filled: "fill_",
    backward: r"\w+",
}


@pytest.mark.parametrize("scenario", OPERATORS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("function", ["copy", "raw_alloc", "pointwise"])
def test_an_error_in_the_middle_names_all_and_leaves_nothing(scenario, function):
    """The n-th call of a function fails, for every n until the scenario passes."""
    failures = 0
    for n in range(1, 60):
        with loaded(mode="sync", devices=1, fail=f"{function}:{n}") as device:
            name = device._name
            x = y = None
            try:
                x = tenon.arange(6.0).view(2, 3)[:, :2].to(name)
                y = tenon.ones(2, 2).to(name)
            except RuntimeError as error:
                assert f"device {name}:0" in str(error)
                x = y = None
                assert device.memory_allocated() == 0
                continue
            before = x._version
            try:
                scenario(x, y)
                text = None
            except RuntimeError as error:
                text = str(error)
            if text is None:
                x = y = None
                break
            failures += 1
            assert f"device {name}:0" in text and f"a failure of {function} that was asked for" in text
            assert re.match(rf"({OPERATORS[scenario]}): device", text), text
            assert x._version == before and x.grad is None
            if function == "pointwise":
                assert x.tolist() == [[0, 1], [3, 4]]
            scenario(x, y)  # the next call works
            x = y = None
            assert device.memory_allocated() == 0
    else:
        pytest.fail("it fails without end")
    if function == "copy" and scenario in (fallback, fallback_in_place, two_outputs):
        assert failures >= 2


# ---- S12: exceptions through every function, frees included ----

EVERYTHING = """
import contextlib
functions = [
    "properties", "raw_alloc", "raw_free", "copy", "stream_new", "stream_free", "stream_sync", "event_new", "event_free",
    "event_record", "event_sync", "event_query", "stream_wait_event", "pointwise", "memory_info", "shutdown", "open",
    "register_kernels", "close", "device_count", "event_new_timed", "event_elapsed", "host_alloc", "host_free",
    "reserve", "map", "unmap", "unreserve", "capture_begin", "capture_end", "capture_launch", "capture_free",
]

def use(device):
    x = tenon.ones(4).to(device._name)
    ((x + 1) @ x).item()
    stream = device.Stream()
    event = stream.record_event()
    event.wait(device.current_stream())
    event.query()
    event.synchronize()
    begin, end = device.Event(enable_timing=True), device.Event(enable_timing=True)
    begin.record()
    end.record()
    end.synchronize()
    begin.elapsed_time(end)
    tenon.zeros(4, pin_memory=True)
    device.set_allocator_settings("expandable_segments:True")
    tenon.ones(3 << 20, device=device._name)
    device.set_allocator_settings("expandable_segments:False")
    graph = device.Graph()
    with device.graph(graph):
        y = x * 2
    graph.replay()
    graph.reset()
    del x, y, graph, event, stream, begin, end
    device.empty_cache()
    device.mem_get_info()
    device.synchronize()

def attempt(how, function, number):
    device = None
    errors = []
    before = tenon.devices.loaded(), tenon.dispatch.backends()
    try:
        device = tenon.load_device(sys.argv[1], name="victim", options={how: f"{function}:{number}", "mode": "sync"})
    except RuntimeError as error:
        errors.append(str(error))
        assert "victim" not in [name for name, _, _ in tenon.devices.loaded()]
    if device is not None:
        try:
            use(device)
        except RuntimeError as error:
            errors.append(str(error))
        try:
            use(device)
        except RuntimeError as error:
            errors.append(str(error))
        try:
            tenon.unload_device("victim")
        except RuntimeError as error:
            errors.append(str(error))
    assert (tenon.devices.loaded(), tenon.dispatch.backends()) == before, (how, function)
    return errors
"""


def test_exceptions_through_every_function_are_errors():
    out = run(EVERYTHING + """
for how in ("throw", "throw_int"):
    for function in functions:
        # The first call of `properties` is one of loading.
        for number in (1, 2) if function == "properties" else (1,):
            errors = attempt(how, function, number)
            assert errors, (how, function)
            assert "let an exception out" in errors[0], errors
            assert "victim" in errors[0] or "openreg.so" in errors[0], errors
            if function in ("shutdown", "close", "open", "register_kernels", "device_count", "stream_free", "host_free"):
                assert len(errors) == 1, errors
            elif number == 1 and function != "properties":
                assert "victim has failed and can no longer be used" in errors[1], errors
print(tenon.load_device(sys.argv[1], name="victim").device_count())
""")
    assert out == "2\n"


def test_statuses_of_every_function_are_errors_and_the_device_goes_on():
    run(EVERYTHING + """
for function in functions:
    if function in ("shutdown", "close", "device_count"):
        continue  # these return no status
    errors = attempt("fail", function, 2 if function == "properties" else 1)
    assert len(errors) == 1, (function, errors)
    assert f"a failure of {function} that was asked for" in errors[0] or function in ("open", "register_kernels"), errors
    if function in ("raw_free", "event_free", "stream_free", "host_free", "unmap", "unreserve", "capture_free"):
        assert "reported late" in errors[0], errors
""")


def test_a_failed_device_keeps_what_it_has_until_it_is_dropped():
    run("""
device = tenon.load_device(sys.argv[1], name="victim", options={"throw": "pointwise:1", "mode": "thread"})
x = tenon.ones(4, device="victim")
try:
    x + 1
except RuntimeError as error:
    assert "add: device victim" in str(error) or "add let an exception out" in str(error), error
for call in (lambda: x + 1, lambda: x.tolist(), lambda: tenon.ones(2000000, device="victim"), device.Stream, device.synchronize):
    try:
        call()
    except RuntimeError as error:
        assert "victim has failed and can no longer be used: add let an exception out" in str(error), error
    else:
        raise AssertionError(call)
try:
    tenon.unload_device("victim")
except RuntimeError as error:
    assert "1 storage" in str(error), error
assert "victim" in [name for name, _, _ in tenon.devices.loaded()]
del x
tenon.unload_device("victim")
assert (tenon.load_device(sys.argv[1], name="victim") and tenon.ones(2, device="victim") + 1).tolist() == [2, 2]
""")


@pytest.mark.parametrize("call", ["(tenon.ones(5000, device='victim') + 1).sum().item()",
                                  "tenon.empty(5000, dtype=tenon.float64).copy_(tenon.ones(5000, device='victim'))",
                                  "tenon.empty(20, 100)[:, :50].copy_(tenon.ones(20, 50, device='victim'))"])  # fmt: skip
def test_a_wait_that_fails_leaves_host_memory_to_the_device(call):
    for _ in range(5):
        run(f"""
device = tenon.load_device(sys.argv[1], name="victim", options={{"throw": "stream_sync:1"}})
for call in (lambda: {call}, device.synchronize):
    try:
        call()
    except RuntimeError as error:
        assert "waiting for a stream let an exception out" in str(error), error
    else:
        raise AssertionError
tenon.unload_device("victim")
blocks = [tenon.zeros(n) for n in range(100, 6000, 100)]
assert not any(block.any().item() for block in blocks)
""")


# ---- S13, S14: a library with one thing wrong ----


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    """faulty(*flags): the path of a library that is faulty.c, compiled so."""
    folder = tmp_path_factory.mktemp("faulty")

    def build(*flags):
        library = folder / f"faulty{len(list(folder.iterdir()))}.so"
        subprocess.run(
            ["cc", "-std=c11", "-fPIC", "-shared", f"-I{ROOT}", *flags, str(FAULTY), "-o", str(library)], check=True
        )
        return library

    return build


WRONG_RESULTS = {
    "none": "returned None as result 0, where its schema says Tensor",
    "int": "returned int as result 0, where its schema says Tensor",
    "two": "returned more than the 1 results of its schema",
    "dtype": r"returned float64 \[2, 2\] as result 0, expected float32 \[2, 2\]",
    "shape": r"returned float32 \[1, 2\] as result 0, expected float32 \[2, 2\]",
    "device": "returned a tensor on cpu as result 0, expected one on device",
    "status": "the kernel's own sentence",
    "argument": "returned its argument `self` as result 0, where its schema says a new tensor",
    "view": "returned a view of `self` as result 0, where its schema says a new tensor",
}


def test_wrong_results_are_errors_that_say_what_is_wrong(faulty):
    library = faulty()
    for how, text in WRONG_RESULTS.items():
        with loaded(library, kernel=how) as device:
            name = device._name
            x = tenon.ones(2, 2, device=name)
            with pytest.raises(RuntimeError, match=f"aten::mm: .*device {name}.*{text}"):
                tenon.mm(x, x)
            assert x.tolist() == [[1, 1], [1, 1]]
            before = x._version
            if how in ("dtype", "shape", "device"):
                with pytest.raises(RuntimeError, match=f"aten::zero_: the kernel of device {name} returned another tensor than `self`"):
                    x.zero_()
            assert x._version == before
            del x
    with loaded(library, kernel="right") as device:
        x = tenon.ones(2, 2, device=device._name)
        assert tenon.mm(x, x).shape == (2, 2)
        del x


def test_a_result_on_another_device_of_the_plug_in_is_an_error(faulty):
    library = faulty("-DDEVICES=2")
    with loaded(library, kernel="index") as device:
        x = tenon.ones(2, 2, device=device._name)
        with pytest.raises(RuntimeError, match=f"aten::mm: .* returned a tensor on {device._name}:1 as result 0, expected one on {device._name}:0"):
            tenon.mm(x, x)
        del x
    with loaded(library, kernel="right") as device:
        x = tenon.ones(2, 2, device=f"{device._name}:1")
        assert tenon.mm(x, x).device == x.device
        del x


WRONG_LISTS = {
    "device": r"returned a tensor on cpu as result 0\[0\], expected one on device",
    "dtype": r"returned float64 \[2, 3\] as result 0\[0\], expected float32 \[2, 3\]",
    "shape": r"returned float32 \[1, 3\] as result 0\[0\], expected float32 \[2, 3\]",
    "second": r"returned float64 \[2, 3\] as result 0\[1\], expected float32 \[2, 3\]",
    "three": "returned 3 tensors as result 0, expected 2",
    "one": "returned 1 tensors as result 0, expected 2",
    "none": r"returned None as result 0, where its schema says Tensor\[\]",
}


def test_wrong_tensors_in_a_list_are_errors_that_say_which(faulty):
    """S14: of a result that is a list of tensors."""
    library = faulty()
    for how, text in {**WRONG_LISTS, "right": ""}.items():
        with loaded(library, kernel=how) as device:
            name = device._name
            x, y = tenon.ones(2, device=name), tenon.ones(3, device=name)
            if how == "right":
                assert [(t.shape, t.device.type) for t in tenon.ops.aten.meshgrid([x, y])] == [((2, 3), name)] * 2
            else:
                with pytest.raises(RuntimeError, match=f"aten::meshgrid: .*device {name} {text}"):
                    tenon.ops.aten.meshgrid([x, y])
            del x, y


SENTENCES = {
    "no export": (["-DEXPORT=other"], "does not export tenon_plugin_v1"),
    "newer minor": (["-DNEEDS_MINOR=999"], r"interface 1\.999, and this Tenon has 1\.\d+"),
    "short table": (["-DSHORT=stream_new"], "lacks required functions: stream_new, stream_free, stream_sync, event_new, event_free, event_record, event_sync"),
    "missing functions": (["-DWITHOUT=raw_free", "-DAND_WITHOUT=event_sync"], "lacks required functions: raw_free, event_sync"),
    "no size": (["-DSIZE=0"], r"leaves TenonPlugin.struct_size 0, so nothing of it can be read; set it to sizeof\(TenonPlugin\)"),
    "no size of the table": (["-DTABLE_SIZE=0"], "leaves TenonDeviceTable.struct_size 0"),
    "half of pinned memory": (["-DALONE=host_alloc"], "has host_alloc, but lacks host_free: these functions go together"),
    "a part of capture": (["-DALONE=capture_end"], "has capture_end, but lacks capture_begin, capture_launch, capture_free"),
    "a granularity alone": (["-DGRANULARITY=4096"], "have a map_granularity, but its table lacks reserve, map, unmap and unreserve"),
    "no table": (["-DNO_TABLE"], "gives no name, key or table"),
    "no name": (["-DNAME=NULL"], "gives no name, key or table"),
    "cpu": (['-DNAME="cpu"'], "'cpu' is a device of Tenon itself"),
    "malformed name": (['-DNAME="Upper case"'], "'Upper case' is not a name"),
    "malformed key": (['-DKEY="under_score"'], "'under_score' cannot be a key"),
    "a key of another kind": (['-DKEY="SparseThing"'], "begins as the keys of another kind do"),
    "a taken key": (['-DKEY="CPU"'], "the key CPU that 'plain' asks for is that of 'cpu'"),
    "no devices": (["-DDEVICES=0"], "has 0 devices; expected 1 to 127"),
    "fewer devices": (["-DDEVICES=-3"], "has -3 devices"),
    "more devices": (["-DDEVICES=128"], "has 128 devices; expected 1 to 127"),
    "its own error": (["-DFAILS"], "it will not open"),
    "no such operator": (['-DREGISTER=host->register_kernel(registrar, "aten::no_such", "PrivateUse1", wrong, 0, 0, 0)'], "aten::no_such"),
    "no such key": (['-DREGISTER=host->register_kernel(registrar, "aten::mm", "NoSuchKey", wrong, 0, 0, 0)'], "NoSuchKey"),
    "no such stub": (['-DREGISTER=host->register_stub(registrar, "no_such", "(Tensor self) -> ()", wrong, 0)'], "there is no stub 'no_such'"),
    "another signature": (
        ['-DREGISTER=host->register_stub(registrar, "fill", "(Tensor dst) -> ()", wrong, 0)'],
        r"the stub 'fill' has the signature `\(Tensor\(a!\) dst, Scalar value\) -> \(\)`, and device plain gives .* `\(Tensor dst\) -> \(\)`",
    ),
    "a signature of an expression": (
        ['-DREGISTER=host->register_stub(registrar, "add", "(Tensor out, Tensor self, Tensor other) -> ()", wrong, 0)'],
        "the stub 'add' has the signature",
    ),
    "a stub of C++ functions": (
        ['-DREGISTER=host->register_stub(registrar, "rows", "(Tensor self) -> ()", wrong, 0)'],
        r"the stub 'rows' takes C\+\+ functions only",
    ),
    "no signature": (['-DREGISTER=host->register_stub(registrar, "fill", 0, wrong, 0)'], "its signature or the function is NULL"),
    "a malformed schema": (['-DREGISTER=host->register_schema(registrar, "mine::broken(Tensor")'], "mine::broken"),
    "no such tag": (
        ['-DREGISTER=(tag = (TenonTag)99, host->register_operator(registrar, "mine::tagged(Tensor x) -> Tensor", &tag, 1))'],
        r"register_operator: 99 is no tag, of `mine::tagged\(Tensor x\) -> Tensor`; this host knows 0 to 19",
    ),
    "a tag that the schema contradicts": (
        ['-DREGISTER=(tag = TENON_TAG_INPLACE, host->register_operator(registrar, "mine::tagged(Tensor x) -> Tensor", &tag, 1))'],
        "mine::tagged: the tag 'inplace' is for an operator that writes its first argument",
    ),
    "no kernel": (['-DREGISTER=host->register_kernel(registrar, "aten::mm", 0, 0, 0, 0, 0)'], "is NULL"),
    "no types": (['-DREGISTER=host->register_typed_kernel(registrar, "aten::mm", 0, 0, wrong, 0, 0, 0)'], "its signature or the kernel is NULL"),
    "no signature of a kernel": (
        ['-DREGISTER=host->register_typed_kernel(registrar, "aten::mm", "PrivateUse1", "Tensor", wrong, 0, "a.cc", 3)'],
        "'Tensor' is no signature of a kernel of aten::mm .at a.cc:3.",
    ),
    "a policy of no operator": (
        ['-DREGISTER=host->register_fallback(registrar, "aten::nosuch", 0)'],
        "register_fallback: there is no operator 'aten::nosuch'",
    ),
    "two kernels of an operator": (
        ['-DREGISTER=(host->register_kernel(registrar, "aten::mm", "PrivateUse1", wrong, 0, "a.cc", 1), '
         'host->register_kernel(registrar, "aten::mm", "PrivateUse1", wrong, 0, "b.cc", 2))'],
        "register_kernel: 'aten::mm' has two kernels for the key PrivateUse1, at a.cc:1 and b.cc:2",
    ),
    "two functions of a stub": (
        ['-DREGISTER=(host->register_stub(registrar, "fill", "(Tensor(a!) dst, Scalar value) -> ()", wrong, 0), '
         'host->register_stub(registrar, "fill", "(Tensor(a!) dst, Scalar value) -> ()", wrong, 0))'],
        "register_stub: the stub 'fill' has two functions",
    ),
}


def tables():
    """What loading could change."""
    return (
        tenon.devices.loaded(),
        tenon.dispatch.backends(),
        [(s.name, s.devices) for s in tenon.dispatch.stubs()],
        [tenon.dispatch.dump_table(op) for op in ("aten::mm", "aten::add.Tensor", "aten::zero_", "aten::sort", "aten::copy_")],
        [tenon.dispatch.registrations(op) for op in ("aten::mm", "aten::zero_")],
    )


@pytest.mark.parametrize("fault", SENTENCES)
def test_a_bad_library_is_refused_and_changes_nothing(fault, faulty):
    flags, sentence = SENTENCES[fault]
    library = faulty(*flags)
    before = tables()
    for _ in range(2):
        with pytest.raises((RuntimeError, ValueError, TypeError), match=sentence):
            tenon.load_device(library)
    assert tables() == before


def test_nothing_given_is_an_error_that_names_the_function(faulty):
    gives = "succeeded, but gave 0, which stands for none"
    library = faulty("-DZERO")
    with loaded(library) as device:
        with pytest.raises(RuntimeError, match=f"device {device._name}:0: a new stream: stream_new {gives}"):
            device.Stream()
        with pytest.raises(RuntimeError, match=f"a new event: event_new {gives}"):
            device.Event().record()
    with loaded(library, kernel="") as device:
        with pytest.raises(RuntimeError, match=f"^empty: device {device._name}:0: allocating memory: raw_alloc {gives}"):
            tenon.empty(3, device=device._name)
    # Where no other device has pinned memory.
    assert f"allocating pinned memory: host_alloc {gives}" in run("""
tenon.load_device(sys.argv[2])
try:
    tenon.empty(3, pin_memory=True)
except RuntimeError as e:
    print(e)
""".replace("sys.argv[2]", repr(str(library))))


def test_what_a_device_says_when_it_is_full_is_in_the_error(faulty):
    with loaded(faulty("-DFULL")) as device:
        with pytest.raises(tenon.OutOfMemoryError, match="12 bytes are not to be had: .*; the device says: the lease has expired"):
            tenon.empty(3, device=device._name)


def test_what_is_no_library_is_refused(faulty, tmp_path, monkeypatch):
    before = tables()
    text = tmp_path / "text.so"
    text.write_text("not ELF")
    pipe = tmp_path / "gizmo.so"
    os.mkfifo(pipe)
    (tmp_path / "folder.so").mkdir()
    dependency = tmp_path / "libneeded.so"
    subprocess.run(["cc", "-x", "c", "-fPIC", "-shared", "-", "-o", str(dependency)], input="int needed(void) { return 1; }", text=True, check=True)
    dependent = faulty("-DNEEDED=needed", f"-L{tmp_path}", "-Wl,--no-as-needed", "-lneeded")
    dependency.unlink()
    # As of PyTorch's load_library; and RuntimeError as of all else that can be wrong with a plug-in.
    assert issubclass(tenon.FileError, OSError) and issubclass(tenon.FileError, RuntimeError)
    for path, sentence in (
        (text, "invalid ELF header|file too short"),
        (pipe, "is no file"),
        (tmp_path / "folder.so", "is no file"),
        (tmp_path / "absent.so", "cannot open shared object"),
        (dependent, "libneeded.so"),
    ):
        with pytest.raises(tenon.FileError, match=sentence):
            tenon.load_device(path)
    with pytest.raises(OSError, match="cannot open shared object"):
        tenon.ops.load_library(tmp_path / "absent.so")
    whole, cut = OPENREG.read_bytes(), tmp_path / "cut.so"
    for size in (len(whole) // 2, 4096, 600, 65, 64, 63, 10, 0):
        cut.write_bytes(whole[:size])
        with pytest.raises(OSError, match="is truncated: it has|file too short|invalid ELF header"):
            tenon.load_device(cut)
    with pytest.raises(ValueError, match="a NUL behind it is no path"):
        tenon.load_device(f"{OPENREG}\0x")
    with pytest.raises(ValueError, match="'' cannot be the name of a device"):
        tenon.load_device(OPENREG, name="")
    # A search by name neither waits for a pipe nor takes it for a device.
    monkeypatch.setenv("TENON_PLUGIN_PATH", str(tmp_path))
    with pytest.raises(ValueError, match="no loaded device is called 'gizmo'"):
        tenon.ones(1, device="gizmo")
    assert tables() == before


def test_the_thirty_third_backend_is_refused():
    run("""
names = []
while True:
    try:
        tenon.load_device(sys.argv[1], name=f"device{len(names)}", options={"devices": 1, "memory": 1 << 20})
    except RuntimeError as error:
        assert f"no place left for 'device{len(names)}' among 32 backends" in str(error), error
        break
    names.append(f"device{len(names)}")
assert len(names) == 30, names
assert tenon.ones(2, device=names[-1]).add(1).tolist() == [2, 2]
for name in names:
    tenon.unload_device(name)
assert tenon.load_device(sys.argv[1], name="another").device_count() == 2
""")


def test_a_name_that_is_taken_is_refused_and_the_first_goes_on(faulty):
    with loaded() as device:
        name = device._name
        x = tenon.ones(2, device=name)
        before = tables()
        with pytest.raises(RuntimeError, match=f"'{name}' is a device of .*openreg.so already"):
            tenon.load_device(faulty(), name=name)
        assert tables() == before and (x + 1).tolist() == [2, 2]
        del x


def test_exceptions_of_kernels_and_stubs_are_errors(tmp_path):
    library = tmp_path / "throwing.so"
    source = ROOT / "tests/devices/faulty/throwing.cc"
    subprocess.run(["c++", "-std=c++17", "-fPIC", "-shared", "-fno-gnu-unique", f"-I{ROOT}", source, "-o", library], check=True)
    for call, name, text in (
        (tenon.floor, "aten::floor", "a kernel's own exception"),
        (tenon.ceil, "aten::ceil", "an object that is no std::exception"),
        (tenon.abs, "stub abs", "a kernel's own exception"),
    ):
        with loaded(library) as device:
            x = tenon.tensor([1.5, -2.5], device=device._name)
            with pytest.raises(RuntimeError, match=f"device {device._name}: {name} let an exception out.*: {text}"):
                call(x)
            with pytest.raises(RuntimeError, match=f"device {device._name} has failed and can no longer be used: {name} let"):
                x.tolist()
            del x


MISFITS = {
    "count": r"aten::neg at .*misfit\.cc:\d+ is a function `\(Tensor, Tensor\) -> Tensor`, and the operator's schema is `aten::neg\(Tensor self\) -> Tensor`",
    "none": r"aten::neg at .*`\(Tensor\) -> \(\)`, and .*`aten::neg\(Tensor self\) -> Tensor`",
    "type": r"aten::softmax\.int at .*`\(Tensor, float\) -> Tensor`, and .*`aten::softmax\.int\(Tensor self, int dim, ScalarType\? dtype=None\) -> Tensor`",
    "layout": r"aten::contiguous at .*`\(Tensor, Layout\) -> Tensor`, and .*`aten::contiguous\(Tensor\(a\) self, \*, MemoryFormat memory_format",
    "maybe": r"aten::contiguous at .*`\(Tensor, MemoryFormat\?\) -> Tensor`, and .*MemoryFormat memory_format",
    "never": r"aten::clone at .*`\(Tensor, MemoryFormat\) -> Tensor`, and .*MemoryFormat\? memory_format",
    "generator": r"aten::bernoulli\.p at .*`\(Tensor, Generator, float\) -> Tensor`, and .*float p, \*, Generator\? generator",
    "def": r"misfit::own at .*misfit\.cc:\d+ is a function `\(Tensor\) -> \(\)`, and .*`misfit::own\(Tensor x, int n\) -> Tensor`",
}


def test_kernels_that_are_not_what_their_operator_is_are_refused_at_loading(tmp_path, monkeypatch):
    library = tmp_path / "misfit.so"
    source = ROOT / "tests/devices/faulty/misfit.cc"
    subprocess.run(["c++", "-std=c++17", "-fPIC", "-shared", "-fno-gnu-unique", f"-I{ROOT}", source, "-o", library], check=True)
    before = tables()
    for how, text in MISFITS.items():
        monkeypatch.setenv("MISFIT", how)
        with pytest.raises(TypeError, match=text):
            tenon.load_device(library)
        assert tables() == before and "misfit::own" not in tenon.dispatch.operators()
    monkeypatch.setenv("MISFIT", "right")
    with loaded(library):
        pass
