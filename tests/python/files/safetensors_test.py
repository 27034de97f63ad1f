"""tenon.safetensors beside the package safetensors, and files that are no such thing."""

import json
import os
import random
import struct
import subprocess
import sys

import numpy as np
import pytest

import tenon
from tenon.safetensors import load, load_file, load_model, safe_open, save, save_file, save_model

reference = pytest.importorskip("safetensors")

NAMES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "float16": "F16",
    "bfloat16": "BF16", "float32": "F32", "float64": "F64", "complex64": "C64", "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}  # fmt: skip


def bytes_of(tensor):
    """The elements in order, by NumPy."""
    return tensor.contiguous().view(-1).view(tenon.uint8).numpy().tobytes() if tensor.numel() else b""


def of_every_dtype():
    """Tensors of several shapes, of random bytes; bool has its two."""
    draw = np.random.default_rng(0)
    out = {}
    for name in NAMES:
        dtype = getattr(tenon, name)
        for shape in [(3, 5), (), (0, 4), (7,)]:
            size = int(np.prod(shape, dtype=int)) * dtype.itemsize
            raw = draw.integers(0, 2 if name == "bool" else 256, size, dtype=np.uint8)
            out[f"{name} {shape}"] = tenon.tensor(raw).view(dtype).reshape(shape)
    return out


@pytest.fixture
def path(tmp_path):
    return tmp_path / "weights.safetensors"


def test_the_reference_reads_what_tenon_writes(path):
    tensors = of_every_dtype()
    save_file(tensors, path, {"format": "pt", "größe": "\x01\n\"x\""})
    found = dict(reference.deserialize(path.read_bytes()))
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name]["dtype"] == NAMES[name.split()[0]] and found[name]["shape"] == list(tensor.shape)
        assert bytes(found[name]["data"]) == bytes_of(tensor)
    with reference.safe_open(path, "numpy") as file:
        assert file.metadata()["größe"] == "\x01\n\"x\""


@pytest.mark.parametrize("mmap", [False, True])
def test_tenon_reads_what_the_reference_writes(path, mmap):
    tensors = of_every_dtype()
    rows = {}
    for name, t in tensors.items():
        dtype = str(t.dtype).removeprefix("tenon.")
        rows[name] = reference.TensorSpec(dtype=dtype, shape=list(t.shape), data_ptr=t.data_ptr() or 1, data_len=t.nbytes)
    written = bytes(reference.serialize(rows, {"a": "b"}))
    path.write_bytes(written)
    for found in (load_file(path, mmap=mmap), tenon.load(path, mmap=mmap), load(written)):
        assert found.keys() == rows.keys()
        for name in rows:
            tensor = found[name]
            assert tensor.dtype == tensors[name].dtype and tensor.shape == tensors[name].shape
            assert bytes_of(tensor) == bytes_of(tensors[name])
    with safe_open(path) as file:
        assert file.metadata() == {"a": "b"}


def test_strided_tensors_come_back_in_order_and_in_the_order_of_the_dict(path):
    x = tenon.arange(24.0).reshape(4, 6)
    tensors = {"z": x.T, "a": x[::2, 1::3], "tied": x, "m": tenon.ones(3, dtype=tenon.int8).expand(2, 3)}
    tenon.save(tensors, path)
    found = tenon.load(path)
    assert list(found) == list(tensors)
    for name, tensor in tensors.items():
        assert found[name].tolist() == tensor.tolist() and found[name].is_contiguous()


def test_single_tensors_of_an_open_file(path):
    save_file({"a": tenon.arange(12).reshape(3, 4), "b": tenon.ones(2)}, path, {"k": "v"})
    with safe_open(path, framework="pt", device="cpu") as file:
        assert file.keys() == ["a", "b"] and file.metadata() == {"k": "v"}
        assert file.get_tensor("b").tolist() == [1, 1]
        part = file.get_slice("a")
        assert part.get_shape() == [3, 4] and part[1:, 2].tolist() == [6, 10]
        with pytest.raises(ValueError, match="there is no tensor 'c'"):
            file.get_tensor("c")
        with pytest.raises(TypeError, match=r"^get_slice: name must be a str, got 1 \(int\)$"):
            file.get_slice(1)
    with pytest.raises(BufferError, match="^load: data must be contiguous bytes, got .*memoryview.*: .*contiguous"):
        load(memoryview(b"abcd")[::2])
    for open_on, name in ((safe_open, "safe_open"), (load_file, "load_file")):
        for wrong, shown in ((7, r"7 \(int\)"), (None, r"None \(NoneType\)")):
            with pytest.raises(TypeError, match=f"^{name}: device must be a .*, got {shown}$"):
                open_on(path, device=wrong)
    with pytest.raises(ValueError, match="closed"):
        file.keys()


@pytest.mark.parametrize("header", [
    {"z": ("U8", 0), "a": ("U8", 1), "m": ("U8", 2)}, {"z": ("U8", 2), "a": ("U8", 0), "m": ("U8", 1)}, {},
    {"__metadata__": {}}, {"__metadata__": None}, {"__metadata__": {}, "a": ("U8", 0)}, {"__metadata__": {"b": "2", "a": "1"}},
], ids=str)  # fmt: skip
def test_names_and_metadata_are_those_of_the_reference(path, header):
    rows = {name: row((1,), (r[1], r[1] + 1), r[0]) if isinstance(r, tuple) else r for name, r in header.items()}
    path.write_bytes(with_header(rows, bytes(sum(isinstance(r, tuple) for r in header.values()))))
    with safe_open(path) as file, reference.safe_open(path, "numpy") as theirs:
        assert file.keys() == theirs.keys() and file.metadata() == theirs.metadata()


def test_the_order_and_the_dtypes_of_an_open_file_are_those_of_the_reference(path):
    header = {"z": row((2,), (0, 2), "U8"), "a": row((), (4, 8), "F32"), "m": row((1, 2), (2, 4), "BOOL"), "e": row((0,), (8, 8), "BF16")}
    for data in (save(of_every_dtype()), with_header(header, bytes(8))):
        path.write_bytes(data)
        with safe_open(path) as file, reference.safe_open(path, "numpy") as theirs:
            sizes = {name: file.get_slice(name).get_shape() for name in file.keys()}
            full = lambda names: [name for name in names if 0 not in sizes[name]]  # empty ones begin where others do
            assert full(file.offset_keys()) == full(theirs.offset_keys()) and sorted(file.offset_keys()) == file.keys() == theirs.keys()
            for name in file.keys():
                assert file.get_slice(name).get_dtype() == theirs.get_slice(name).get_dtype(), name
                assert sizes[name] == theirs.get_slice(name).get_shape()
            with pytest.raises(ValueError, match="there is no tensor 'c'"):
                file.get_slice("c")
    with pytest.raises(ValueError, match="safe_open: the file is closed"):
        file.offset_keys()


def test_load_file_maps_and_reads_with_the_checksum_where_it_is_asked_to(path):
    save_file({"w": tenon.ones(4)}, path)
    found, read = load_file(path)["w"], load_file(path, mmap=False)["w"]
    with safe_open(path) as file, safe_open(path, mmap=False) as other:
        single, copy = file.get_tensor("w"), other.get_tensor("w")
    with open(path, "r+b") as file:  # what no program should do: it shows which tensors are mapped
        file.seek(-4, 2)
        file.write(struct.pack("<f", 7))
    assert found.tolist() == single.tolist() == load_file(path)["w"].tolist() == [1, 1, 1, 7]
    assert read.tolist() == copy.tolist() == [1, 1, 1, 1]
    model = tenon.nn.Module()
    model.w = tenon.nn.Parameter(tenon.zeros(4))
    for load_checked in (lambda: load_file(path, mmap=False), lambda: tenon.load(path), lambda: load_model(model, path)):
        with pytest.raises(ValueError, match="the checksum of the file is"):
            load_checked()
    save_file({"w": tenon.zeros(4)}, path)  # another file in its place: tensors of the old one stay as they are
    assert found.tolist() == [1, 1, 1, 7] and load_model(model, path) == ([], [])


def test_a_checksum_alone_is_no_metadata(path):
    save_file({"a": tenon.ones(1)}, path)
    with safe_open(path) as file:
        assert file.metadata() is None


@pytest.mark.parametrize("mmap", [False, True])
def test_writing_to_a_loaded_tensor_does_not_reach_the_file(path, mmap):
    save_file({"w": tenon.ones(5000), "v": tenon.ones(3)}, path)
    before = path.read_bytes()
    found = load_file(path, mmap=mmap)
    found["w"].mul_(3)
    assert found["w"][4999].item() == 3 and found["v"].tolist() == [1, 1, 1]
    assert path.read_bytes() == before and load_file(path)["w"][0].item() == 1


def test_a_mapped_tensor_outlives_its_dict_and_its_file(path):
    save_file({"w": tenon.arange(5000.0)}, path)
    w = load_file(path, mmap=True)["w"][4000:]
    path.unlink()
    assert w.sum().item() == sum(range(4000, 5000))


CUT = """
import os, sys
import tenon
path = sys.argv[1]
tenon.save({"a": tenon.ones(100_000), "b": tenon.ones(100_000)}, path)
mapped, other = tenon.load(path, mmap=True), tenon.load(path)
kept = mapped["a"].clone()
os.truncate(path, 100_000)
mapped["b"].sum()  # zeros where the file ended; no signal ends the process
for _ in range(2):
    for tensor in mapped.values():
        try:
            print("no error", tensor.sum())
        except tenon.FileError as error:
            assert str(error).startswith(f"{path}: the file was cut short while tensors of it were mapped"), error
assert kept.sum() == other["b"].sum() == 100_000
del mapped
tenon.save({"a": tenon.ones(100_000)}, path)
assert tenon.load(path, mmap=True)["a"].sum() == 100_000
print("alive")
"""


def test_a_file_that_is_cut_short_while_it_is_mapped_is_an_error(path):
    run = subprocess.run([sys.executable, "-c", CUT, path], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("alive\n", "")


WRITES = """
import os, sys
import tenon
path = sys.argv[1]
if sys.argv[2] == "after a recording":
    tenon.compile(lambda x: x * 2)(tenon.ones(3))
def writes(t):
    ones = tenon.ones_like(t)
    mask = ones.bool()
    yield lambda: t.add_(1)
    yield lambda: t.mul_(ones)
    yield lambda: t.copy_(ones)
    yield lambda: t.fill_(2)
    yield lambda: t.zero_()
    yield lambda: t.clamp_(0, 1)
    yield lambda: t.masked_fill_(mask, 0)
    yield lambda: t.uniform_()
    yield lambda: t.__setitem__(0, 1)
    yield lambda: t.__setitem__(mask, 1)
    yield lambda: t.detach().sub_(1)
    yield lambda: t.view(-1).neg_()
    yield lambda: t[1:].exp_()
    yield lambda: t.t().sqrt_()
    yield lambda: tenon.add(ones, ones, out=t)
    yield lambda: tenon.matmul(ones, ones, out=t)
    yield lambda: tenon.sum(ones, dim=0, out=t[0])
    yield lambda: tenon.sort(ones, out=(t, tenon.empty(64, 64, dtype=tenon.int64)))
    yield lambda: tenon.cat([ones[:32], ones[32:]], out=t)
    yield lambda: tenon.zeros(64, 64, out=t)
    yield lambda: tenon.nn.init.ones_(t)
    yield lambda: tenon.compile(lambda x: x.add_(1))(t)
    yield lambda: t.numpy()
tenon.save({"t": tenon.ones(64, 64), "last": tenon.ones(64, 64)}, path)
mapped = tenon.load(path, mmap=True)
os.truncate(path, 4096)
mapped["last"].sum()
for i, write in enumerate(writes(mapped["t"])):
    try:
        write()
        print("no error", i)
    except tenon.FileError as error:
        assert "the file was cut short" in str(error), error
print("alive")
"""


@pytest.mark.parametrize("when", ["before a recording", "after a recording"])
def test_writing_to_a_mapped_tensor_of_a_file_cut_short_is_an_error(path, when):
    run = subprocess.run([sys.executable, "-c", WRITES, path, when], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("alive\n", "")


def test_an_open_file_remembers_that_it_was_cut_short(path):
    tenon.save({"a": tenon.ones(100_000), "b": tenon.ones(4)}, path)
    wanted = f"^{path}: the file was cut short while tensors of it were mapped"
    with safe_open(path, mmap=True) as file:
        kept = file.get_tensor("b")
        os.truncate(path, 4096)
        with pytest.raises(tenon.FileError, match=wanted):  # the loop of a program that loads weights
            for name in file.keys():
                tenon.empty(100_000 if name == "a" else 4).copy_(file.get_tensor(name))
        with pytest.raises(tenon.FileError, match=wanted):
            file.get_slice("a")[0]
        with pytest.raises(tenon.FileError, match=wanted):
            kept.sum()
    tenon.save({"a": tenon.ones(100_000)}, path)
    with safe_open(path, mmap=True) as file:
        file.get_tensor("a")
        os.truncate(path, 4096)
        for _ in range(2):
            with pytest.raises(tenon.FileError, match=wanted):
                file.get_tensor("a").clone()
        os.truncate(path, 500_000)  # zeros, which nothing wrote
        with pytest.raises(tenon.FileError, match=wanted):
            file.get_tensor("a").clone()


def test_a_foreign_sigbus_is_passed_on(path):
    program = CUT.split("os.truncate")[0] + (
        "import faulthandler, mmap\n"
        "with open(path + '2', 'wb') as f: f.write(bytes(10000))\n"
        "with open(path + '2', 'r+b') as f: m = mmap.mmap(f.fileno(), 0)\n"
        "os.truncate(path + '2', 0)\n"
        "m[5000]\n"
    )
    run = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True)
    assert run.returncode == -7
    run = subprocess.run([sys.executable, "-X", "faulthandler", "-c", program, path], capture_output=True, text=True)
    assert run.returncode == -7 and "Fatal Python error: Bus error" in run.stderr


def test_map_location_is_taken(path):
    tenon.save({"w": tenon.ones(2)}, path)
    assert tenon.load(path, map_location="cpu")["w"].device.type == "cpu"
    assert tenon.load(path, map_location={"cpu": "meta"})["w"].is_meta
    seen = []
    tenon.load(path, map_location=lambda storage, place: seen.append((storage.nbytes(), place)))
    assert seen == [(8, "cpu")]
    with pytest.raises(RuntimeError, match="map_location"):
        tenon.load(path, map_location="nothing:0")


@pytest.mark.parametrize(
    "value, error, text",
    [
        ({"c": tenon.ones(1, dtype=tenon.complex128)}, TypeError, "tensor 'c' is complex128, which safetensors does not have"),
        ({"m": tenon.ones(2, device="meta")}, ValueError, "tensor 'm' is on the meta device"),
        ({"n": 3}, TypeError, "'n' is a int"),
        ({1: tenon.ones(2)}, TypeError, "names and metadata are str, not int"),
        ({"__metadata__": tenon.ones(2)}, ValueError, "the name '__metadata__' is taken"),
        ({"w\udc80": tenon.ones(2)}, ValueError, r"^save: 'w\\udc80' is no text that UTF-8 can hold"),
        ([tenon.ones(2)], TypeError, "holds a dict of tensors, got list"),
    ],
)  # fmt: skip
def test_what_the_format_has_no_place_for(path, value, error, text):
    with pytest.raises(error, match=text):
        tenon.save(value, path)
    assert not path.exists()


def test_a_list_is_no_dict_of_tensors(path):
    for write in (save, lambda tensors: save_file(tensors, path)):
        with pytest.raises(TypeError, match=r"^save(_file)?: safetensors holds a dict of tensors, got \[1\] \(list\)$"):
            write([1])


@pytest.mark.parametrize("metadata", [{"a": 1}, {1: "a"}, ["a"]])
def test_metadata_is_text(path, metadata):
    with pytest.raises(TypeError, match="str"):
        save_file({}, path, metadata)


def test_models_are_saved_with_one_name_for_a_tied_tensor(path):
    def tied():
        m = tenon.nn.Sequential(tenon.nn.Linear(3, 3, bias=False), tenon.nn.Linear(3, 3))
        m[1].weight = m[0].weight
        return m

    model, other = tied(), tied()
    save_model(model, path, {"made by": "a test"})
    with reference.safe_open(path, "numpy") as file:  # as safetensors.torch.save_model writes them
        assert set(file.keys()) == {"0.weight", "1.bias"}
        metadata = file.metadata()
        assert metadata["1.weight"] == "0.weight" and metadata["made by"] == "a test"
        weight = file.get_tensor("0.weight")
    assert load_model(other, path) == ([], [])
    assert np.array_equal(other[1].weight.detach().numpy(), weight) and other[1].weight is other[0].weight
    bare = tenon.nn.Sequential(tenon.nn.Linear(3, 3))
    with pytest.raises(RuntimeError, match='Missing key.*"0.bias".*\n.*Unexpected key.*"1.bias"'):
        load_model(bare, path)
    assert load_model(bare, path, strict=False) == (["0.bias"], ["1.bias"])
    assert np.array_equal(bare[0].weight.detach().numpy(), weight)


def with_header(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def row(shape=(2,), offsets=(0, 8), dtype="F32"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


BAD = [
    (b"", "at byte 0: 8 bytes are expected here, and the file ends at byte 0"),
    (b"\1\0\0", "at byte 0: 8 bytes are expected"),
    (struct.pack("<Q", 100_000_001) + b"{}", "at byte 0: the header's length is given as 100000001 bytes; at most 100000000"),
    (struct.pack("<Q", 99_999_999) + b"{}", "at byte 0: 100000007 bytes are expected here, and the file ends at byte 10"),
    (with_header(b" \f{}"), "at byte 8: the header must begin with '{'"),
    (with_header(b"  "), "at byte 8: the header must begin with '{'"),
    (with_header(b"{}\0"), "at byte 10: the header is no JSON: it has a NUL"),
    (with_header(b"{} \0 "), "at byte 11: the header is no JSON: it has a NUL"),
    (with_header(b"{} x"), "at byte 12: the header is no JSON"),
    (with_header(b'{"a":'), "the header is no JSON"),
    (with_header(b'{"a\xff":1}'), "the header is no JSON"),
    (with_header({"a": 3}), "a number where the format has none, at 'a'"),
    (with_header(b'{"a":' + b"[" * 100_000), "a list where the format has none, at 'a'"),
    (with_header(b'{"a":' * 100_000), "the header is no JSON"),
    (with_header({"a": {"dtype": "F32", "shape": [2]}}, bytes(8)), "tensor 'a' lacks dtype, shape or data_offsets"),
    (with_header({"a": {"more": [{"dtype": 1}], "shape": [2]}}, bytes(8)), "tensor 'a' lacks dtype, shape or data_offsets"),
    (with_header({"a": {"more": {}}, "b": row(shape=[{}])}, bytes(8)), "tensor 'a' lacks"),
    (with_header({"a": row(shape=[{}])}, bytes(8)), "an object where the format has none, at 'a'"),
    (with_header(b'{"a":{"dtype":"F32","dtype":"F32"}}'), "tensor 'a' has the field 'dtype' twice"),
    (with_header(b'{"__metadata__":{"k":"v","k":"v"}}'), "the metadata key 'k' occurs twice"),
    (with_header({"__metadata__": {"k": 1}}), "a number where the format has none"),
    (with_header({"a": row(dtype="F8_E8M0")}, bytes(8)), r"tensor 'a' has dtype 'F8_E8M0', which Tenon does not have; safe_open \(C\+\+: safetensors::File\) reads the other tensors"),
    (with_header({"a": row(shape=[1] * 1000, offsets=(0, 4))}, bytes(4)), "tensor 'a' has more than 255 dimensions, the most that Tenon's have"),
    (with_header({"a": row(dtype="F8_E8M0"), "b": row(offsets=(4, 12))}, bytes(12)), "tensor 'b' overlaps another"),
    (with_header({"a": row(shape=(-2,))}, bytes(8)), "a negative number where the format has none, at 'a'"),
    (with_header({"a": row(shape=(2.0,))}, bytes(8)), "a number that is no integer where the format has none, at 'a'"),
    (with_header({"a": row(shape=(1 << 63,))}, bytes(8)), "tensor 'a': 9223372036854775808 is too large"),
    (with_header({"a": row(shape=(1 << 62, 4))}, bytes(8)), "has more bytes than can be counted"),
    (with_header({"a": row(shape=(1 << 62, 1 << 62, 0))}, bytes(8)), "has more bytes than can be counted"),
    (with_header({"a": row(offsets=(0, 12))}, bytes(12)), r"tensor 'a' of shape \[2\] and dtype F32 takes 8 bytes, its data_offsets are \[0, 12\]"),
    (with_header({"a": row(offsets=(8, 0))}, bytes(8)), r"data_offsets are \[8, 0\]"),
    (with_header({"a": row(offsets=(0, 8, 8))}, bytes(8)), "tensor 'a': data_offsets must be two numbers"),
    (with_header({"a": row(), "b": row(offsets=(4, 12))}, bytes(12)), "tensor 'b' overlaps another: its bytes begin at 4 of the data, those before it end at 8"),
    (with_header({"a": row(), "b": row(offsets=(9, 17))}, bytes(17)), "tensor 'b' follows a gap"),
    (with_header({"a": row(), "b": row(offsets=(8, 16))}, bytes(12)), "tensor 'b' reaches beyond the end of the file, to byte"),
    (with_header({"a": row()}, bytes(9)), "bytes follow the last tensor, which ends here"),
    (with_header(b'{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"a":{}}', bytes(4)), "the name 'a' occurs twice"),
    (with_header(b'{ "__metadata__":{"tenon.xxh3":"0123456789abcdef"} }'), "at byte 40: the checksum of the file is [0-9a-f]{16}, and 0123456789abcdef was written with it"),
    (with_header(b'{ "__metadata__":{"tenon.xxhx":"0123456789abcdef"} }'), "the header misses its checksum"),
]  # fmt: skip


@pytest.mark.parametrize("data, text", BAD, ids=[str(i) for i in range(len(BAD))])
def test_what_does_not_load_says_where_and_why(path, data, text):
    path.write_bytes(data)
    for mmap in False, True:
        if mmap and "checksum" in text and "misses" not in text:
            continue
        with pytest.raises(ValueError, match=f"^load(_file)?: {path}: at byte \\d+: .*" if not text.startswith("at byte") else text) as caught:
            load_file(path, mmap=mmap)
        caught.match(text)
    with pytest.raises(ValueError, match=text):
        load(data)


ACCEPTED = {
    "blanks before the header": with_header(b' \n\t\r{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} \n', bytes(8)),
    "no header's blanks": with_header(b" { } "),
    "a field of the future": with_header({"a": {"more": {"dtype": [1, -2.5, {"shape": None}], "x": "y"}, **row(), "k": True}}, bytes(8)),
    "such a field twice": with_header(b'{"a":{"k":1,"k":[],"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', bytes(8)),
    "no metadata": with_header({"__metadata__": None, "a": row()}, bytes(8)),
}  # fmt: skip


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_the_reference_reads_is_read(case, path):
    wanted = dict(reference.deserialize(ACCEPTED[case]))
    found = load(ACCEPTED[case])
    path.write_bytes(ACCEPTED[case])
    assert tenon.load(path).keys() == wanted.keys()
    assert found.keys() == wanted.keys()
    for name, tensor in found.items():
        assert list(tensor.shape) == wanted[name]["shape"] and bytes_of(tensor) == bytes(wanted[name]["data"])


def test_a_dtype_that_tenon_lacks_does_not_hide_other_tensors(path):
    header = {"ids": row(shape=(4,), dtype="F8_E8M0"), "w": row(offsets=(8, 16)), "q": row(shape=(3,), offsets=(16, 18), dtype="F6_E2M3")}
    path.write_bytes(with_header(header, bytes(8) + np.array([1, 2], np.float32).tobytes() + bytes(2)))
    for mmap in False, True:
        with safe_open(path, mmap=mmap) as file:
            assert file.keys() == ["ids", "q", "w"] and file.get_tensor("w").tolist() == [1, 2]
            assert file.get_slice("ids").get_dtype() == "F8_E8M0" and file.get_slice("ids").get_shape() == [4]
            with pytest.raises(ValueError, match="tensor 'ids' has dtype 'F8_E8M0', which"):
                file.get_slice("ids")[0]
            for name, dtype in ("ids", "F8_E8M0"), ("q", "F6_E2M3"):
                with pytest.raises(ValueError, match=f"^(load|load_file|get_tensor): {path}: at byte \\d+: tensor '{name}' has dtype '{dtype}', which"):
                    file.get_tensor(name)
        with pytest.raises(ValueError, match="tensor 'ids' has dtype 'F8_E8M0'.*safe_open"):
            load_file(path, mmap=mmap)


def test_a_checksum_that_another_program_copied_is_not_looked_at(path):
    save_file({"w": tenon.ones(2)}, path)
    with reference.safe_open(path, "numpy") as file:
        metadata = file.metadata()
    assert "tenon.xxh3" in metadata
    numpy = pytest.importorskip("safetensors.numpy")
    numpy.save_file({"w": np.zeros(2, np.float32)}, path, metadata)
    assert load_file(path, mmap=False)["w"].tolist() == [0, 0]


def test_every_changed_bit_is_noticed():
    whole = save({"weight": tenon.arange(12.0).reshape(3, 4), "b": tenon.tensor([True, False])}, {"k": "v"})
    for i in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[i] ^= 1 << bit
            with pytest.raises(ValueError, match="^load: the bytes: at byte"):
                load(damaged)


def test_every_cut_and_random_damage_is_noticed():
    whole = save({"weight": tenon.arange(12.0).reshape(3, 4), "b": tenon.tensor([True, False])}, {"k": "v"})
    for n in range(len(whole)):
        with pytest.raises(ValueError, match="^load(_file)?: "):
            load(whole[:n])
    draw = random.Random(1)
    for _ in range(int(os.environ.get("TENON_MUTATIONS", 2000))):
        damaged = bytearray(whole)
        for _ in range(draw.randrange(1, 20)):
            damaged[draw.randrange(len(whole))] = draw.randrange(256)
        if damaged != whole:
            with pytest.raises(ValueError, match="^load(_file)?: "):
                load(damaged)


def test_weights_that_are_mapped_are_recorded(path):
    """Nobody else writes to them; once NumPy shows them, someone may."""
    save_file({"w": tenon.rand(64, 64), "b": tenon.rand(64)}, path)
    weights = load_file(path)
    x = tenon.rand(1024, 64)

    def step(x):
        return (x @ weights["w"] + weights["b"]).relu() * 2

    compiled = tenon.compile(step)
    want = step(x)
    for _ in range(3):
        assert tenon.equal(compiled(x), want)
    assert "shared" not in str(compiled.explain())
    shown = weights["b"].numpy()
    compiled(x)
    assert "its memory is shared with NumPy" in str(compiled.explain())
    shown += 1
    assert tenon.equal(compiled(x), step(x))
