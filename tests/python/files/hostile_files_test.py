"""Files that are made to do harm: load changes nothing but what it returns, and makes no more than the file's size allows."""

import collections
import errno
import importlib.util
import io
import json
import os
import select
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import tenon

TESTS = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("files_script", TESTS / "fuzz/files.py")
files = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(files)


def text(value):
    value = value.encode()
    return b"X" + struct.pack("<I", len(value)) + value


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


WRAPPINGS = {"own": files.sealed, "first": lambda data: files.FIRST + data, "pytorch": files.archive, "legacy": lambda data: files.legacy(data.replace(b"tQ", b"NtQ"))}
TENSOR, REBUILD, FLOAT = name("tenon", "Tensor"), name("tenon._C", "_rebuild_tensor"), name("tenon", "float32")
REPLACED = b"(N}" + text("item") + b"K\5st"  # (None, {"item": 5}): the state that Python's unpickler gives to setattr


def rebuilt(data, sizes=b"K\2\x85", kind=TENSOR, dtype=FLOAT):
    return REBUILD + b"(" + kind + data + sizes + dtype + b"\x89tR"


def built(target, state=REPLACED):
    return target + state + b"b"


# What each may not do, by what it would do. All are refused.
HARM = {
    "state of a type": (built(TENSOR), "it sets the state of the name Tensor"),
    "state of a parameter's type": (built(name("tenon.nn.parameter", "Parameter")), "it sets the state of the name Parameter"),
    "state of a function": (built(REBUILD), "it sets the state of the name tenon._rebuild_tensor"),
    "state of OrderedDict": (built(name("collections", "OrderedDict")), "it sets the state of the name OrderedDict"),
    "state of a dtype": (built(FLOAT), "it sets the state of a dtype"),
    "state of a device": (built(name("tenon", "device") + text("cpu") + b"\x85R"), "it sets the state of a device"),
    "state of a size": (built(name("tenon", "Size") + b"K\1\x85\x85R"), "it sets the state of a tuple"),
    "slots of a tensor": (built(rebuilt(b"C\x08" + bytes(8))), "the state of a tensor is a tuple, and no dict"),
    "slots of a dict": (built(name("collections", "OrderedDict") + b")R"), "the state of a dict is a tuple, and no dict"),
    "a state that is a name": (built(rebuilt(b"C\x08" + bytes(8)), TENSOR), "the state of a tensor is the name Tensor"),
    "uninitialised memory": (TENSOR + b"K\x10\x85R", "it calls Tensor"),
    "a new tensor": (TENSOR + b"K\x10\x85\x81", "it calls Tensor"),
    "a parameter of nothing": (name("tenon.nn.parameter", "Parameter") + b")R", "it calls Parameter"),
    "a type as a value": (TENSOR, "it holds the name Tensor as a value; save tensors, numbers and text without types and functions"),
    "a call of a value": (b"K\1)R", "it calls an int"),
    "a storage that is not there": (
        b"(" + text("storage") + name("torch", "FloatStorage") + text("") + text("cpu") + b"J\0\0\1\0tQ", "it holds a storage as a value; save a tensor over the storage instead"),
    "os.system": (name("os", "system") + text("true") + b"\x85R", "it names os.system"),
    "builtins.eval": (name("builtins", "eval") + text("1") + b"\x85R", "it names builtins.eval"),
    "builtins.getattr": (name("builtins", "getattr"), "it names builtins.getattr"),
    "a module of the package": (name("tenon.serialization", "load"), "it names tenon.serialization.load"),
    "an operator": (name("tenon._C", "empty"), "it names tenon._C.empty"),
    "a dotted name": (text("tenon") + text("Tensor.item") + b"\x93", "it names tenon.Tensor.item"),
    "a module in a name": (text("tenon.nn") + text("parameter.Parameter.__init__") + b"\x93", "it names tenon.nn.parameter.Parameter.__init__"),
    "an extension": (b"\x82\1", "opcode 0x82"),
    "an instance": (b"(" + b"ios\nsystem\n", "opcode 0x69"),
    "a buffer from elsewhere": (b"\x97", "opcode 0x97"),
    "a text in ASCII": (b"S'x'\n", "opcode 0x53"),
    "a name that is not UTF-8": (b"c\xff\n\xfe\n", r"it names \?.\?"),
    "a text that is not UTF-8": (b"X\2\0\0\0\xc3\x28", "a text is not UTF-8"),
    "a key that is a list in a tuple": (b"}]\x85Ns", "it holds a tuple as a key, with a list or dict inside, which cannot be hashed"),
    "a set that is its own element": (b"\x8fq\0(h\0\x90", "it holds a set as a key, which cannot be hashed"),
    "a set with a tuple of itself": (b"\x8fq\0(h\0\x85\x90", "it holds a tuple as a key, with a list or dict inside, which cannot be hashed"),
    "a dict that is its own key": (b"}q\0h\0Ns", "it holds a dict as a key, which cannot be hashed"),
    "a dict with its own key in a list's tuple": (b"]q\0}h\0\x85Nsa", "it holds a tuple as a key, with a list or dict inside, which cannot be hashed"),
    "a key that is a bytearray": (b"}\x96\1\0\0\0\0\0\0\0xNs", "it holds bytes as a key, which cannot be hashed"),
    "an element that is a set": (b"\x8f(\x8f\x90", "it holds a set as a key, which cannot be hashed"),
    "an attribute without a text": (built(rebuilt(b"C\x08" + bytes(8)), b"}K\1K\2s"), "an attribute's name is an int, and no text"),
    "integers that require grad": (REBUILD + b"(" + TENSOR + b"C\x08" + bytes(8) + b"K\1\x85" + name("tenon", "int64") + b"\x88tR", "a tensor of int64 requires grad"),
    "a tensor of fewer bytes": (rebuilt(b"C\4" + bytes(4)), r"a tensor of shape \[2\] and dtype float32 does not take 4 bytes"),
    "a tensor without end": (rebuilt(b"C\0", b"(" + b"J\xff\xff\xff\x7f" * 4 + b"t"), "more elements than can be counted"),
    "a negative size": (rebuilt(b"C\x08" + bytes(8), b"J\xfe\xff\xff\xff\x85"), "must be a tuple of numbers, none negative"),
}  # fmt: skip


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_a_file_changes_nothing_but_what_load_returns(tmp_path, wrapping):
    path = tmp_path / "file"
    tenon.save({"w": tenon.ones(2)}, path)
    tenon.load(path)
    before = files.state_of_the_package()
    for what, (harm, said) in HARM.items():
        data = WRAPPINGS[wrapping](b"\x80\4" + harm + b".")
        path.write_bytes(data)
        for source, shown in ((path, path), (io.BytesIO(data), "the file")):
            with pytest.raises(ValueError, match=rf"^load: {shown}: at byte \d+: the pickle cannot be read: .*{said}"):
                tenon.load(source)
                pytest.fail(what)
    assert {key for key, value in files.state_of_the_package().items() if before.get(key) != value} == set()
    assert tenon.ones(1).item() == 1


def test_attributes_are_the_tensors_own():
    """They go to the tensor that the file holds, where attributes of the type that take values stay as they are."""
    attributes = b"}(" + text("item") + b"K\5" + text("shape") + b"K\6" + text("requires_grad") + b"\x88u"
    found = tenon.load(io.BytesIO(files.sealed(b"\x80\4" + built(rebuilt(b"C\x08" + bytes(8)), attributes) + b".")))
    assert found.shape == (2,) and not found.requires_grad and vars(found)["item"] == 5
    assert tenon.ones(1).item() == 1 and "item" not in vars(tenon.ones(1))


MEGABYTE = 1 << 20


def doubled(atom, times):
    """A tuple of two of the same, that often."""
    return atom + b"q\0" + b"0h\0h\0\x86q\0" * times


def repeated(argument, call, times):
    """Calls with one argument, in a list."""
    return argument + b"q\1" + b"0](" + call * times + b"e"


DATA = b"B" + struct.pack("<I", MEGABYTE) + bytes(MEGABYTE)
LONG_LIST = b"](" + b"K\1" * (MEGABYTE // 4) + b"e"
COMPLEX_STORAGE = b"(" + text("storage") + name("torch", "ComplexFloatStorage") + text("0") + text("cpu") + b"K\3tQ"
CONJUGATED = b"}" + text("conj") + b"\x88s"


def conjugated(sizes, strides):
    return files.TORCH + b"(" + COMPLEX_STORAGE + b"K\0" + sizes + strides + b"\x89N" + CONJUGATED + b"tR"


# Pickles of little more than a megabyte that make much, or do much, of it: each is refused or small.
BOMBS = {
    "memo 2**29": b"Nr\0\0\0\x20",
    "memo 2**32 - 1": b"Nr\xff\xff\xff\xff",
    "many bytearrays of one bytes": repeated(DATA, name("builtins", "bytearray") + b"h\1\x85R", 3000),
    "many bytes of one text": repeated(b"X" + struct.pack("<I", MEGABYTE) + b"x" * MEGABYTE, name("_codecs", "encode") + b"h\1" + text("latin1") + b"\x86R", 3000),
    "one text many times": repeated(b"X" + struct.pack("<I", MEGABYTE) + b"x" * MEGABYTE, b"h\1", 3000),
    "one bytes many times": repeated(DATA, b"h\1", 3000),
    "one large number many times": repeated(b"\x8b" + struct.pack("<I", MEGABYTE) + b"\1" * MEGABYTE, b"h\1", 3000),
    "many sizes of one list": repeated(LONG_LIST, name("tenon", "Size") + b"h\1\x85R", 3000),
    "many sets of one list": repeated(LONG_LIST, name("builtins", "set") + b"h\1\x85R", 3000),
    "many dicts of one list": repeated(b"](" + b"K\1K\2\x86" * 100_000 + b"e", name("collections", "OrderedDict") + b"h\1\x85R", 3000),
    "many tensors of one bytes": repeated(DATA, REBUILD + b"(" + TENSOR + b"h\1J\0\0\4\0\x85" + FLOAT + b"\x89tR", 3000),
    "many tensors of one tuple": REBUILD + b"q\1(" + TENSOR + b"C\x08" + bytes(8) + b"K\2\x85" + FLOAT + b"\x89tq\2](" + b"h\1h\2R" * 200_000 + b"e\x86",
    "tuples that double": doubled(b"N", 60),
    "a key of tuples that double": b"}" + doubled(b"K\1", 60) + b"Ns",
    "a frozenset of tuples that double": doubled(b"K\1", 60) + b"q\1(h\1\x91\x86",
    "many keys with one large number": b"\x8b" + struct.pack("<I", MEGABYTE) + b"\1" * MEGABYTE + b"q\1}(" + b"".join(b"h\1M" + struct.pack("<H", i) + b"\x86N" for i in range(60_000)) + b"u\x86",
    "keys of one hash": b"}(" + b"".join(b"\x8a\x0a" + (((1 << 61) - 1) * (i + 1)).to_bytes(10, "little") + b"N" for i in range(60_000)) + b"u",
    "a length of 2**62": b"\x8e" + struct.pack("<Q", 1 << 62) + b"x",
    "a frame of 2**62": b"\x95" + struct.pack("<Q", 1 << 62) + b"N",
    "marks": b"(" * MEGABYTE,
    "a memo at every byte": b"]" + b"\x94" * MEGABYTE,
    "deep tuples": b")" + b"\x85" * MEGABYTE,
    "deep lists": b"]" * MEGABYTE + b"a" * (MEGABYTE - 1),
    "a conjugated view of stride 0": conjugated(b"J\0\0\0\x10\x85", b"K\0\x85"),
    "many conjugated views": b"](" + b"".join(conjugated(b"K\3\x85", b"K\1\x85") for _ in range(5000)) + b"e",
    "views of stride 0": b"](" + files.torch_tensor(b"0", 6, (200, 250), (0, 0)) * 1000 + b"e",
    "a long name": b"c" + b"x" * MEGABYTE + b"\ny\n",
    "a long storage key": b"(" + text("storage") + name("torch", "FloatStorage") + text("k" * MEGABYTE) + text("cpu") + b"K\1tq\1](" + b"h\1Q" * 50_000 + b"e",
}  # fmt: skip

# Of these, each byte is a value of its own, which takes memory as such.
SPELLED_OUT = {"deep lists": 128}

PROGRAM = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (100, 100))  # where there is no end
import tenon
scripts, path, warm = sys.argv[1:]
sys.path.insert(0, scripts)
from files import peak
tenon.load(warm)
before = peak()
try:
    value = tenon.load(path)
    said = ""
except (ValueError, MemoryError) as error:
    said = str(error)
print(json.dumps([said, peak() - before]))
"""


def growth_of(tmp_path, data):
    """What load says of a file, and by how much the process grew."""
    path, warm = tmp_path / "file", tmp_path / "warm"
    tenon.save({"w": tenon.ones(2)}, warm)
    path.write_bytes(data)
    done = subprocess.run([sys.executable, "-c", PROGRAM, TESTS / "fuzz", path, warm], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr[-500:])
    said, growth = json.loads(done.stdout)
    assert said == "" or said.startswith(f"load: {path}: "), said
    assert len(said) < 1000
    return said, growth


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@pytest.mark.parametrize("what", BOMBS)
def test_what_a_file_makes_is_bounded_by_its_size(tmp_path, wrapping, what):
    data = WRAPPINGS[wrapping](b"\x80\4" + BOMBS[what] + b".")
    said, growth = growth_of(tmp_path, data)
    assert growth <= (64 << 20) + SPELLED_OUT.get(what, 2) * len(data), (growth, said)


# Values of a byte or some: as many as a pickle has bytes. What load returns of them takes what Python's objects take.
SHORT = {"lists": (b"]", [], 3_000_000), "dicts": (b"}", {}, 1_000_000), "sets": (b"\x8f", set(), 1_000_000), "pairs": (b"NN\x86", (None, None), 1_000_000)}  # fmt: skip


@pytest.mark.parametrize("what", SHORT)
def test_values_take_their_objects_and_a_hundred_bytes(tmp_path, what):
    spelled, value, count = SHORT[what]
    data = files.sealed(b"\x80\4](" + spelled * count + b"e.")
    said, growth = growth_of(tmp_path, data)
    assert said == "" and growth <= (64 << 20) + 2 * len(data) + count * (100 + sys.getsizeof(value)), growth


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_frames_that_reach_beyond_the_file_are_refused(wrapping):
    with pytest.raises(ValueError, match="a frame of 10449559672993303336 bytes is announced, and"):
        tenon.load(io.BytesIO(WRAPPINGS[wrapping](b"\x80\4\x95" + (10449559672993303336).to_bytes(8, "little") + b"K\1.")))
    assert tenon.load(io.BytesIO(WRAPPINGS[wrapping](b"\x80\4\x95" + (3).to_bytes(8, "little") + b"K\1."))) == 1


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_tuples_that_nest_too_deep_are_refused_where_they_do(wrapping):
    """Before the rest of them is made: the message has the place of the tuple that is one too deep."""
    start = WRAPPINGS[wrapping](b"\x80\4)" + b"\x85" * 5000 + b".")
    at = start.index(b"\x85" * 5000) + 1000
    with pytest.raises(ValueError, match=f"^load: the file: at byte {at}: the pickle cannot be read: its values nest more than 1000 deep$"):
        tenon.load(io.BytesIO(start))
    deep = WRAPPINGS[wrapping](b"\x80\4)" + b"\x85" * 999 + b".")
    assert tenon.load(io.BytesIO(deep)) != ()


@pytest.mark.parametrize("name_of_type", ["OrderedDict", "Counter"])
def test_attributes_that_would_hide_those_of_a_type_are_refused(name_of_type):
    def of(attribute):
        return files.archive(b"\x80\4" + built(name("collections", name_of_type) + b")R", b"}" + text(attribute) + b"K\5s") + b".")

    assert vars(tenon.load(io.BytesIO(of("_metadata")))) == {"_metadata": 5}
    for attribute in ("keys", "items", "update", "__class__"):
        with pytest.raises(ValueError, match=rf"^load: the file: an attribute of a \S*{name_of_type} is called '{attribute}', which would hide one of its type; save it without"):
            tenon.load(io.BytesIO(of(attribute)))


def test_save_refuses_attributes_that_load_refuses(tmp_path):
    value = collections.OrderedDict(a=1)
    value.note = 5
    tenon.save([value], tmp_path / "x")
    assert vars(tenon.load(tmp_path / "x")[0]) == {"note": 5}
    value.keys = 5
    with pytest.raises(ValueError, match=r"^save: the attribute 'keys' of an OrderedDict, at \[0\], hides OrderedDict.keys, and load refuses that; delete the attribute$"):
        tenon.save([value], tmp_path / "x")


def header(text):
    return struct.pack("<Q", len(text)) + text


EMPTY = b'{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
HEADERS = {
    "a name": (lambda: b'{"' + b"n" * (40 << 20) + b'":' + EMPTY + b"}", "at byte 9: a text of the header has 41943040 bytes"),
    "a metadata text": (lambda: b'{"__metadata__":{"k":"' + b"v" * (12 << 20) + b'"}}', ""),
    "metadata": (lambda: b'{"__metadata__":{' + b",".join(b'"%d":"' % i + b"v" * 1000 + b'"' for i in range(40_000)) + b"}}", ""),
    "dimensions": (lambda: b'{"a":{"dtype":"U8","shape":[' + b"0," * (10 << 20) + b'0],"data_offsets":[0,0]}}', "more than 255 dimensions"),
    "offsets": (lambda: b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[' + b"0," * (10 << 20) + b"0]}}", "data_offsets must be two numbers"),
    "a deep list": (lambda: b'{"a":{"x":' + b"[" * (10 << 20) + b"]" * (10 << 20) + b"," + EMPTY[1:] + b"}", ""),
}  # fmt: skip


@pytest.mark.parametrize("what", HEADERS)
def test_what_a_header_of_safetensors_makes_is_bounded_by_its_size(tmp_path, what):
    make, wanted = HEADERS[what]
    data = header(make())
    said, growth = growth_of(tmp_path, data)
    assert wanted in said and bool(wanted) == bool(said)
    assert growth <= (64 << 20) + 2 * len(data), (growth, said)


def large_legacy(count):
    number = b"J" + struct.pack("<i", count)
    stored = b"(" + text("storage") + name("torch", "FloatStorage") + text("0") + text("cpu") + number + b"NtQ"
    value = files.TORCH + b"(" + stored + b"K\0" + number + b"\x85K\1\x85\x89NtR."
    return files.LEGACY + b"\x80\2" + value + b"\x80\2](" + text("0") + b"e." + struct.pack("<q", count) + bytes(4 * count)


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("kind", ["own", "own.safetensors", "legacy.pt"])
def test_large_tensors_take_their_size_twice_at_most(tmp_path, kind, opened):
    path = tmp_path / kind
    if kind == "legacy.pt":
        path.write_bytes(large_legacy(25 << 20))
    else:
        tenon.save({"w": tenon.zeros(25 << 20)}, path)
    program = PROGRAM.replace("tenon.load(path)", "tenon.load(open(path, 'rb'))") if opened else PROGRAM
    tenon.save({"w": tenon.ones(2)}, tmp_path / "warm")
    done = subprocess.run([sys.executable, "-c", program, TESTS / "fuzz", path, tmp_path / "warm"], capture_output=True, text=True, check=True)
    said, growth = json.loads(done.stdout)
    assert said == "" and growth <= (16 << 20) + 2 * path.stat().st_size


def test_conjugated_views_share_their_memory():
    value = b"](" + conjugated(b"K\3\x85", b"K\1\x85") + conjugated(b"(K\2K\2t", b"(K\0K\1t") + b"e"
    a, b = tenon.load(io.BytesIO(files.archive(b"\x80\2" + value + b".")))
    assert a.tolist() == [0 - 1j, 2 - 3j, 4 - 5j] and b.tolist() == [[0 - 1j, 2 - 3j]] * 2 and b.stride() == (0, 1)
    a[0] = 9
    assert b[1, 0] == 9


# Streams: pipes and devices


def test_a_device_without_end_is_refused_by_its_first_bytes():
    from tenon.safetensors import load_file, safe_open

    for read in (tenon.load, load_file, safe_open):
        with pytest.raises(ValueError, match="^(load|load_file|safe_open): /dev/zero: at byte"):
            read("/dev/zero")
    with open("/dev/zero", "rb") as file, pytest.raises(ValueError, match="^load: /dev/zero: at byte"):
        tenon.load(file)


WAITS = """
import signal
import sys
import tenon
from tenon.safetensors import load_file, safe_open, save_file

call = {"load": lambda path: tenon.load(path), "load_file": load_file, "safe_open": safe_open,
        "save": lambda path: tenon.save([1], path), "save_file": lambda path: save_file({"w": tenon.ones(1)}, path),
        "full": lambda path: tenon.save(tenon.zeros(1 << 20), path)}[sys.argv[1]]
signal.signal(signal.SIGINT, signal.default_int_handler)  # who started the tests may ignore it
try:
    print("waits", flush=True)
    call(sys.argv[2])
except KeyboardInterrupt:
    print("interrupted")
"""


def other_end(pipe, call):
    """The other end of a pipe, once the process is at its own; None where that is what it waits for."""
    if call in ("save", "save_file"):
        return None
    if call == "full":
        end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        select.select([end], [], [])  # what fits into the pipe is there
        return end
    while True:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            assert error.errno == errno.ENXIO
            os.sched_yield()


@pytest.mark.parametrize("call", ["load", "load_file", "safe_open", "save", "save_file", "full"])
def test_waiting_for_a_pipe_ends_with_ctrl_c(tmp_path, call):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = subprocess.Popen([sys.executable, "-c", WAITS, call, pipe], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "waits\n"
    end = other_end(pipe, call)
    process.send_signal(signal.SIGINT)
    try:
        assert process.wait(60) == 0 and process.stdout.read() == "interrupted\n"
    finally:
        process.kill()
        process.stdout.close()
    if end is not None:
        os.close(end)


@pytest.mark.parametrize("given, said", [
    (io.StringIO("x"), r"load: f.read\(\) must return bytes, got str; open the file in binary mode, 'rb'"),
    (3.5, r"load: f must be a path or a file that is open for reading, got 3.5 \(float\)"),
    (None, r"load: f must be a path or a file that is open for reading, got None \(NoneType\)"),
])  # fmt: skip
def test_what_is_no_file_is_named(given, said):
    with pytest.raises(TypeError, match=f"^{said}$"):
        tenon.load(given)


def test_files_that_are_open_as_text_are_refused(tmp_path):
    path = tmp_path / "x.pt"
    tenon.save(1, path)
    with open(path, encoding="latin-1") as file, pytest.raises(TypeError, match=r"load: f.read\(\) must return bytes, got str; open the file in binary mode, 'rb'"):
        tenon.load(file)
    with pytest.raises(TypeError, match=r"save: f.write\(\) must take bytes, not str; open the file in binary mode, 'wb'"):
        tenon.save(1, io.StringIO())


def test_save_says_what_is_no_file():
    with pytest.raises(TypeError, match=r"^save: f must be a path or a file that is open for writing, got \[\] \(list\)$"):
        tenon.save([1], [])


def test_safetensors_says_what_is_no_path():
    from tenon.safetensors import load_file, safe_open, save_file

    for function, call in [("load_file", load_file), ("safe_open", safe_open), ("save_file", lambda path: save_file({}, path))]:
        with pytest.raises(TypeError, match=rf"^{function}: filename must be a path, got 5 \(int\)$"):
            call(5)
    for function, call in [("load", tenon.load), ("save", lambda path: tenon.save(1, path)), ("load_file", load_file), ("safe_open", safe_open)]:
        with pytest.raises(ValueError, match=f"^{function}: the path has a null character"):
            call("a\0b")


class Reads(io.RawIOBase):
    """A file whose read() gives what a test says."""

    def __init__(self, give):
        self.give = give

    def read(self, size=-1):
        return self.give(size)


def test_files_that_read_otherwise():
    with pytest.raises(RuntimeError, match=r"^load: f.read\(\) returned None: the file does not wait"):
        tenon.load(Reads(lambda size: None))
    with pytest.raises(ValueError, match=r"^load: f.read\(20\) returned 21 bytes"):
        tenon.load(Reads(lambda size: bytes(size + 1)))
    with pytest.raises(ZeroDivisionError):
        tenon.load(Reads(lambda size: 1 // 0))
    whole = files.sealed(b"\x80\4K\5.")
    rest = io.BytesIO(whole)
    assert tenon.load(Reads(lambda size: bytearray(rest.read(min(size, 3))))) == 5  # piece by piece


# Archives


def entry(name, data):
    import zlib

    return b"PK\3\4" + struct.pack("<HHHIIIIHH", 20, 0, 0, 0, zlib.crc32(data), len(data), len(data), len(name), 0) + name + data


def test_entries_that_overlap_are_refused(tmp_path):
    """One large entry whose bytes are those of the next ones too, which would be read once for each."""
    import zlib

    inner = entry(b"a/data/1", bytes(1000))
    entries = entry(b"a/data.pkl", b"\x80\2]."), entry(b"a/data/0", inner)
    body, rows = b"".join(entries), b""
    places = [(b"a/data.pkl", b"\x80\2].", 0), (b"a/data/0", inner, len(entries[0])), (b"a/data/1", bytes(1000), len(body) - len(inner))]
    for name, data, at in places:
        rows += b"PK\1\2" + struct.pack("<HHHHIIIIHHHHHII", 20, 20, 0, 0, 0, zlib.crc32(data), len(data), len(data), len(name), 0, 0, 0, 0, 0, at) + name
    data = body + rows + b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 3, 3, len(rows), len(body), 0)
    with pytest.raises(ValueError, match="^load: the file: at byte .*: entry 'a/data/1' overlaps entry 'a/data/0'"):
        tenon.load(io.BytesIO(data))


def test_long_names_are_cut_in_messages(tmp_path):
    header = json.dumps({"x" * 100_000: {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}).encode()
    path = tmp_path / "long"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    with pytest.raises(ValueError, match="^load: .*: tensor 'x+...' of shape") as caught:
        tenon.load(path)
    assert len(str(caught.value)) < 500
