"""Checkpoints that PyTorch wrote, as tenon.load reads them: made by PyTorch where it is installed, and by hand elsewhere."""

import collections
import io
import os
import pickle
import random
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tenon

DTYPES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
    "BoolStorage": "bool", "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
}  # fmt: skip


class Name:
    """A type or function that a pickle names, which is not there."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __call__(self, *arguments):
        return Call(self, arguments)


class Call:
    def __init__(self, function, arguments, state=None):
        self.function, self.arguments, self.state = function, arguments, state


class Stored:
    def __init__(self, kind, key, count, place="cpu", *view):
        self.identifier = ("storage", Name(*kind.rsplit(".", 1)), key, place, count, *view)


class Pickler(pickle._Pickler):
    """Writes the names of PyTorch's functions as PyTorch does, without having them."""

    def persistent_id(self, obj):
        return obj.identifier if isinstance(obj, Stored) else None

    def save(self, obj, *rest, **named):
        if isinstance(obj, Name):
            self.write(f"c{obj.module}\n{obj.name}\n".encode())
        elif isinstance(obj, Call):
            self.save(obj.function)
            self.save(obj.arguments)
            self.write(b"R")
            if obj.state is not None:
                self.save(obj.state)
                self.write(b"b")
        else:
            super().save(obj, *rest, **named)


def pickled(value):
    file = io.BytesIO()
    Pickler(file, 2).dump(value)
    return file.getvalue()


def tensor(array, key="0", kind="FloatStorage", requires_grad=False):
    """A tensor as PyTorch pickles it, contiguous."""
    strides = [s // array.itemsize for s in array.strides]
    arguments = (
        Stored(f"torch.{kind}", key, array.size), 0, array.shape, tuple(strides), requires_grad,
        Call(Name("collections", "OrderedDict"), ()),
    )  # fmt: skip
    return Call(Name("torch._utils", "_rebuild_tensor_v2"), arguments)


def archive(value, data=(), folder="archive", compression=zipfile.ZIP_STORED, extra={}, pickle=None):
    """A checkpoint with these entries of data."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        made.writestr(f"{folder}/data.pkl", pickled(value) if pickle is None else pickle)
        made.writestr(f"{folder}/byteorder", "little")
        for i, entry in enumerate(data):
            made.writestr(f"{folder}/data/{i}", entry)
        made.writestr(f"{folder}/version", "3\n")
        for name, text in extra.items():
            made.writestr(f"{folder}/{name}", text)
    return file.getvalue()


SYSTEM = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}


def old(value, storages=(), version=1001, system=SYSTEM, keys=None, protocol=2):
    """A file of the format before 1.6: storages are pairs of a key and an array."""
    parts = [pickle.dumps(part, protocol) for part in (0x1950A86A20F9469CFC6C, version, system)]
    parts += [value if isinstance(value, bytes) else pickled(value), pickle.dumps([key for key, _ in storages] if keys is None else keys, protocol)]
    return b"".join(parts + [struct.pack("<q", array.size) + array.tobytes() for _, array in storages])


def old_tensor(array, view=None, key="94", function="_rebuild_tensor_v2", kind="FloatStorage"):
    """A tensor over a storage of six elements, or over a part of it."""
    strides = tuple(s // array.itemsize for s in array.strides)
    rest = () if function == "_rebuild_tensor" else (False, Call(Name("collections", "OrderedDict"), ()))
    return Call(Name("torch._utils", function), (Stored(f"torch.{kind}", key, 6, "cpu", view), 0, array.shape, strides, *rest))


def load(data, **options):
    return tenon.load(io.BytesIO(data), **options)


ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)


def sample():
    """A checkpoint of every kind of value."""
    bytes_2 = Call(Name("_codecs", "encode"), ("a\xff", "latin1"))
    value = {
        "model": Call(Name("collections", "OrderedDict"), (), {"_metadata": {"": {"version": 1}}}),
        "w": tensor(ARRAY),
        "parameter": Call(Name("torch._utils", "_rebuild_parameter"), (tensor(ARRAY), True, None)),
        "plain": [1, -3, 1 << 80, -(1 << 70), 2.5, True, None, "größe", (), (1,), {7: {"x": 1}}],
        "complex": Call(Name("__builtin__", "complex"), (1.0, -2.0)),
        "bytes": bytes_2,
        "set": Call(Name("__builtin__", "set"), ([1, 2],)),
        "counter": Call(Name("collections", "Counter"), ({3: 2, "x": 1},)),
        "size": Call(Name("torch", "Size"), ((2, 3),)),
        "dtype": Name("torch", "bfloat16"),
        "device": Call(Name("torch", "device"), ("cpu",)),
    }
    return archive(value, [ARRAY.tobytes()])


def test_every_kind_of_value():
    found = load(sample())
    assert found["w"].tolist() == ARRAY.tolist() and not found["w"].requires_grad
    assert isinstance(found["parameter"], tenon.nn.Parameter) and found["parameter"].requires_grad
    assert found["parameter"].is_leaf and found["parameter"].data_ptr() == found["w"].data_ptr()
    assert type(found["model"]) is collections.OrderedDict and not found["model"]
    assert found["plain"] == [1, -3, 1 << 80, -(1 << 70), 2.5, True, None, "größe", (), (1,), {7: {"x": 1}}]
    assert found["complex"] == 1 - 2j and found["bytes"] == b"a\xff" and found["set"] == {1, 2}
    assert found["counter"] == collections.Counter({3: 2, "x": 1}) and type(found["counter"]) is collections.Counter
    assert found["size"] == tenon.Size((2, 3)) and type(found["size"]) is tenon.Size
    assert found["dtype"] is tenon.bfloat16 and found["device"] == tenon.device("cpu")


@pytest.mark.parametrize("kind, dtype", DTYPES.items())
def test_every_dtype(kind, dtype):
    raw = bytes(i % 2 for i in range(32))
    size = getattr(tenon, dtype).itemsize
    found = load(archive([tensor(np.zeros(32 // size, f"V{size}"), kind=kind)], [raw]))[0]
    assert found.dtype is getattr(tenon, dtype) and found.view(tenon.uint8).numpy().tobytes() == raw


@pytest.mark.parametrize("mmap", [False, True])
def test_tensors_share_storages_as_they_did(tmp_path, mmap):
    stored = Stored("torch.FloatStorage", "0", 6)
    rebuild, none = Name("torch._utils", "_rebuild_tensor_v2"), Call(Name("collections", "OrderedDict"), ())
    views = [
        rebuild(stored, 0, (2, 3), (3, 1), False, none),
        rebuild(stored, 1, (3, 2), (1, 3), False, none),
        rebuild(stored, 5, (4,), (0,), False, none),
        rebuild(stored, 0, (0, 5), (5, 1), False, none),
    ]
    views[1].arguments = (stored, 0, (3, 2), (1, 3), False, none)
    path = tmp_path / "views.pt"
    path.write_bytes(archive(views, [ARRAY.tobytes()]))
    a, b, c, d = tenon.load(path, mmap=mmap)
    assert b.tolist() == ARRAY.T.tolist() and c.tolist() == [5] * 4 and d.shape == (0, 5)
    a.mul_(2)
    assert b.tolist() == (2 * ARRAY.T).tolist()
    assert path.read_bytes() == archive(views, [ARRAY.tobytes()])


def test_zip64_is_read():
    class Big(zipfile.ZipInfo):
        def FileHeader(self, zip64=None):
            return super().FileHeader(zip64=True)

    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, data in [("a/data.pkl", pickled({"w": tensor(ARRAY)})), ("a/data/0", ARRAY.tobytes())]:
            made.writestr(Big(name), data)
    data = file.getvalue()
    # The directory with its numbers in zip64 fields, and the end of zip64.
    end = data.rindex(b"PK\5\6")
    count, size, offset = struct.unpack("<HII", data[end + 10 : end + 20])
    directory, rows = data[offset:end], b""
    while directory:
        names, extras, comment = struct.unpack("<HHH", directory[28:34])
        compressed, plain, local = *struct.unpack("<II", directory[20:28]), struct.unpack("<I", directory[42:46])[0]
        field = struct.pack("<HHQQQ", 1, 24, plain, compressed, local)
        rows += directory[:20] + b"\xff" * 8 + struct.pack("<HHH", names, len(field), 0)
        rows += directory[34:42] + b"\xff" * 4 + directory[46 : 46 + names] + field
        directory = directory[46 + names + extras + comment :]
    end64 = b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, len(rows), offset)
    locator = b"PK\6\7" + struct.pack("<IQI", 0, offset + len(rows), 1)
    small = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    assert load(data[:offset] + rows + end64 + locator + small)["w"].tolist() == ARRAY.tolist()


@pytest.mark.parametrize("metadata", [{"conj": True}, {"neg": True}, {"conj": True, "neg": True}, {"conj": False}])
def test_conjugated_and_negated_views(metadata):
    data = np.array([1 + 2j, 3 - 4j], np.complex64)
    call = tensor(data, kind="ComplexFloatStorage")
    call.arguments = (*call.arguments, metadata)
    want = data.conj() if metadata.get("conj") else data
    assert load(archive([call], [data.tobytes()]))[0].tolist() == (-want if metadata.get("neg") else want).tolist()
    call.arguments = (*call.arguments[:-1], {"folded": True})
    with pytest.raises(ValueError, match="a tensor has metadata that is not known"):
        load(archive([call], [data.tobytes()]))


def test_map_location_and_devices_that_are_not_there():
    value = [Call(Name("torch._utils", "_rebuild_tensor_v2"), (Stored("torch.FloatStorage", "0", 6, "cuda:0"), 0, (6,), (1,), False, None))]
    data = archive(value, [ARRAY.tobytes()])
    with pytest.raises(RuntimeError, match="a tensor was saved on cuda:0.*map_location='cpu'"):
        load(data)
    for where in ("cpu", tenon.device("cpu"), {"cuda:0": "cpu"}, lambda storage, place: storage):
        assert load(data, map_location=where)[0].tolist() == list(range(6))
    for where, text in ((None, "a tensor was saved on cuda:0: "), ("cpu:1", "load: map_location: there is no device cpu:1: cpu has cpu:0$")):
        with pytest.raises(RuntimeError, match=text):
            load(data, map_location=where)
    with pytest.raises(TypeError, match="must return an UntypedStorage"):
        load(data, map_location=lambda storage, place: 3)
    with pytest.raises(ValueError, match="returned a storage of 4 bytes, and tensors need 24"):
        load(data, map_location=lambda storage, place: tenon.zeros(1).untyped_storage())
    with pytest.raises(ZeroDivisionError):
        load(data, map_location=lambda storage, place: 1 / 0)


def test_a_name_that_has_kernels_and_no_device():
    tenon.library.Library("aten", "IMPL").impl("sgn", lambda x: x, "HIP")
    value = [Call(Name("torch._utils", "_rebuild_tensor_v2"), (Stored("torch.FloatStorage", "0", 6, "hip:0"), 0, (6,), (1,), False, None))]
    with pytest.raises(RuntimeError, match="a tensor was saved on hip:0: .*map_location='cpu'"):
        load(archive(value, [ARRAY.tobytes()]))


def broken(function, *arguments):
    return archive([Call(Name(*function), arguments)], [ARRAY.tobytes()])


REBUILD = ("torch._utils", "_rebuild_tensor_v2")
STORED = Stored("torch.FloatStorage", "0", 6)


def absent(dtype):
    """A tensor as PyTorch pickles one whose dtype has no storages of its own."""
    bytes_of = Stored("torch.storage.UntypedStorage", "0", 24)
    none = Call(Name("collections", "OrderedDict"), ())
    return Call(Name("torch._utils", "_rebuild_tensor_v3"), (bytes_of, 0, (2, 3), (3, 1), False, none, Name("torch", dtype)))


def holding(dtype):
    return lambda: archive({"step": 1, "model": {"0.weight": [tensor(ARRAY), absent(dtype)]}}, [ARRAY.tobytes()])


def absent_parameter():
    return archive([Call(Name("torch._utils", "_rebuild_parameter"), (absent("complex32"), True, None))], [ARRAY.tobytes()])


BAD = {
    **{dtype: (holding(dtype), rf"tensor \['model'\]\['0.weight'\]\[1\] of shape \[2, 3\] is torch.{dtype}, a dtype that Tenon does not have")
       for dtype in ("complex32", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")},
    "complex32 parameter": (absent_parameter, r"tensor \[0\] of shape \[2, 3\] is torch.complex32"),
    "a dtype alone": (lambda: archive([Name("torch", "complex32")]), "it holds the name torch.complex32 as a value; save tensors"),
    "frozenset": (lambda: broken(("builtins", "frozenset"), [1]), "it names builtins.frozenset"),
    "frozenset of protocol 4": (lambda: archive(0, pickle=b"\x80\x04(K\1\x91."), "it holds a frozenset, as no checkpoint of PyTorch does; save a set"),
    "defaultdict": (lambda: broken(("collections", "defaultdict")), "it names collections.defaultdict"),
    "a counter of a list": (lambda: broken(("collections", "Counter"), [1]), "argument 1 of Counter must be a dict"),
    "runs code": (lambda: broken(("os", "system"), "touch /tmp/never"), "it names os.system; a checkpoint holds tensors.* Nothing of it was executed"),
    "builtin": (lambda: broken(("builtins", "eval"), "1"), "it names builtins.eval"),
    "a module": (lambda: broken(("torch.nn.modules.linear", "Linear")), r"it names torch.nn.modules.linear.Linear.* save its state_dict\(\)"),
    "sparse": (lambda: broken(("torch._utils", "_rebuild_sparse_tensor")), r"it holds a sparse tensor, and Tenon has none yet; save its to_dense\(\)"),
    "quantized": (lambda: broken(("torch._utils", "_rebuild_qtensor")), r"it holds a quantized tensor, .*; save its dequantize\(\)"),
    "nested": (lambda: broken(("torch._utils", "_rebuild_nested_tensor")), r"it holds a nested tensor, and Tenon has none yet; save its unbind\(\)"),
    "meta": (lambda: broken(("torch._utils", "_rebuild_meta_tensor_no_storage")), "it holds a tensor on the meta device, which has no elements; save one that has"),
    "a layout": (lambda: broken(("torch.serialization", "_get_layout"), "torch.strided"), "it holds a layout, such as torch.strided, and Tenon has none yet"),
    "attributes that are no dict": (lambda: broken(("torch._utils", "_rebuild_parameter_with_state"), tensor(ARRAY), True, None, 3), "argument 4 of _rebuild_parameter_with_state must be a dict of attributes"),
    "an attribute without a name": (lambda: broken(("torch._utils", "_rebuild_parameter_with_state"), tensor(ARRAY), True, None, {5: 6}), "an attribute's name is an int, and no text"),
    "calls a type": (lambda: broken(("torch", "Tensor"), 1), "it calls Tensor"),
    "a name as value": (lambda: archive([Name("torch", "FloatStorage")]), "it holds the name torch.FloatStorage as a value; save tensors"),
    "a storage as value": (lambda: archive([STORED], [ARRAY.tobytes()]), "it holds a storage as a value; save a tensor over the storage instead"),
    "compressed": (lambda: archive({"a": list(range(1000))}, compression=zipfile.ZIP_DEFLATED), r"entry 'archive/byteorder' is compressed \(deflate\)"),
    "encrypted": (lambda: flagged(1), "entry 'archive/data.pkl' is encrypted"),
    "no pickle": (lambda: renamed(b"data.pkl", b"data.pkx"), "no data.pkl in a folder of its own"),
    "TorchScript": (lambda: archive({}, extra={"constants.pkl": b""}), "this is a TorchScript program"),
    "big endian": (lambda: sample().replace(b"little", b"big...").replace(struct.pack("<I", zipfile.crc32(b"little")), struct.pack("<I", zipfile.crc32(b"big..."))), "the byte order is 'big...'"),
    "a missing entry": (lambda: archive([tensor(ARRAY, "7")], [ARRAY.tobytes()]), "entry 'archive/data/7', which a tensor needs, is not in the archive"),
    "a short entry": (lambda: archive([tensor(ARRAY)], [b"123"]), "entry 'archive/data/0' has 3 bytes, and a storage of 24 is expected"),
    "beyond the storage": (lambda: broken(REBUILD, STORED, 1, (2, 3), (3, 1), False, None), r"a tensor of shape \[2, 3\] reaches beyond its storage '0' of 24 bytes"),
    "large strides": (lambda: broken(REBUILD, STORED, 0, (2, 3), (1 << 62, 1 << 62), False, None), "more elements than can be counted"),
    "large sizes": (lambda: broken(REBUILD, STORED, 0, (1 << 40, 1 << 40), (0, 0), False, None), "more elements than can be counted"),
    "negative": (lambda: broken(REBUILD, STORED, 0, (-2, 3), (3, 1), False, None), "argument 3 of _rebuild_tensor must be a tuple of numbers, none negative"),
    "negative offset": (lambda: broken(REBUILD, STORED, -1, (2,), (1,), False, None), "argument 2 of _rebuild_tensor must be 0 or more"),
    "strides": (lambda: broken(REBUILD, STORED, 0, (2, 3), (3,), False, None), "argument 4 of _rebuild_tensor must be as long as the sizes"),
    "dimensions": (lambda: broken(REBUILD, STORED, 0, (1,) * 100, (1,) * 100, False, None), "a tuple of at most 64 numbers"),
    "no storage": (lambda: broken(REBUILD, 3, 0, (2,), (1,), False, None), "argument 1 of _rebuild_tensor must be a storage"),
    "integers with gradients": (lambda: archive([tensor(np.arange(3), kind="LongStorage", requires_grad=True)], [bytes(24)]), "a tensor of int64 requires grad"),
    "deep": (lambda: archive(0, pickle=b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."), "nest more than 1000 deep"),
    "deep tuples": (lambda: archive(0, pickle=b"\x80\x02)" + b"\x85" * 1_000_000 + b"."), "nest more than 1000 deep"),
    "chains": (lambda: archive(0, pickle=chains()), "nest more than 1000 deep"),
    "marks": (lambda: archive(0, pickle=b"\x80\x02" + b"(" * 1000), "1 bytes are expected, and the pickle ends"),
    "protocol": (lambda: archive(0, pickle=b"\x80\x09N."), "protocol 9 is not one of 2 to 5"),
    "opcode": (lambda: archive(0, pickle=b"\x80\x02(ios\nsystem\n."), "opcode 0x69, which a checkpoint does not need"),
    "a key": (lambda: archive(0, pickle=b"\x80\x02}]Ns."), "it holds a list as a key, which cannot be hashed"),
    "no value": (lambda: archive(0, pickle=b"\x80\x02."), "a value is missing"),
    "left over": (lambda: archive(0, pickle=b"\x80\x02NN."), "values are left over at its end"),
    "more bytes": (lambda: archive(0, pickle=b"\x80\x02N.N"), "bytes follow its end"),
    "memo": (lambda: archive(0, pickle=b"\x80\x02h\x05."), "it recalls value 5, which it has not kept"),
    "length": (lambda: archive(0, pickle=b"\x80\x04\x8d" + b"\xff" * 8), "18446744073709551615 bytes are expected, and the pickle ends"),
    "tar": (lambda: tar(), "this is a tar archive, as PyTorch's first releases wrote; load it with PyTorch, weights_only=False, and save it again"),
    "old: version": (lambda: old(0, version=1002), "the version of PyTorch's format before 1.6 is not 1001"),
    "old: big endian": (lambda: old(0, system={"little_endian": False}), "the file does not say that it is little endian, and little endian alone is read"),
    "old: no system": (lambda: old(0, system=3), "the file does not say that it is little endian"),
    "old: a module": (lambda: old([Call(Name("torch.nn.modules.linear", "Linear"), ())]), r"it names torch.nn.modules.linear.Linear.* save its state_dict\(\)"),
    "old: a class": (lambda: old(b"\x80\2(X\6\0\0\0modulec__main__\nNet\nNNtQ."), r"it names __main__.Net; .*If a whole module was saved, save its state_dict\(\)"),
    "old: a tensor in its head": (lambda: old_head(), "a tensor is where none is expected"),
    "old: keys": (lambda: old(0, keys=3), "the list of storages is an int"),
    "old: an unused key": (lambda: old(0, [("1", ARRAY)]), "key 0 of the list of storages is one that no tensor uses, or is there twice"),
    "old: a key twice": (lambda: old(old_tensor(ARRAY), [("94", ARRAY)] * 2), "key 1 of the list of storages is one that no tensor uses, or is there twice"),
    "old: a number as key": (lambda: old(old_tensor(ARRAY), [(94, ARRAY)]), "key 0 of the list of storages is one that no tensor uses"),
    "old: a missing storage": (lambda: old(old_tensor(ARRAY)), "storage '94', which a tensor needs, is not in the file"),
    "old: a count": (lambda: old(old_tensor(ARRAY), [("94", ARRAY[:1])]), "storage '94' has 3 elements here, and 6 are expected"),
    "old: cut": (lambda: old(old_tensor(ARRAY), [("94", ARRAY)])[:-1], "24 bytes are expected here, and the file ends at byte"),
    "old: cut in the pickle": (lambda: old(old_tensor(ARRAY), [("94", ARRAY)]).partition(b"pu")[0], "3 bytes are expected, and the pickle ends"),
    "old: cut in a line": (lambda: old(old_tensor(ARRAY), [("94", ARRAY)]).partition(b"FloatSt")[0], "a line without an end"),
    "old: a large storage": (lambda: old(Call(Name("torch._utils", "_rebuild_tensor"), (Stored("torch.FloatStorage", "94", 1 << 60, "cpu", None), 0, (2,), (1,))), keys=["94"]) + struct.pack("<q", 1 << 60), "4611686018427387904 bytes are expected here, and the file ends"),
    "old: five parts": (lambda: old([tensor(ARRAY)], [("0", ARRAY)]), "a storage has 5 arguments"),
    "old: a view that is no tuple": (lambda: old(old_tensor(ARRAY, 3), [("94", ARRAY)]), "argument 6 of a storage must be a tuple"),
    "old: a view of two parts": (lambda: old(old_tensor(ARRAY, ("95", 1)), [("94", ARRAY)]), "a view of a storage has 2 arguments"),
    "old: a view beyond": (lambda: old(old_tensor(ARRAY[:1], ("95", 4, 3)), [("94", ARRAY)]), "a view of storage '94' reaches beyond it"),
    "old: a negative view": (lambda: old(old_tensor(ARRAY[:1], ("95", -1, 3)), [("94", ARRAY)]), "a view of storage '94' reaches beyond it"),
    "old: beyond a view": (lambda: old(old_tensor(ARRAY, ("95", 1, 5)), [("94", ARRAY)]), r"a tensor of shape \[2, 3\] reaches beyond its storage '94' of 20 bytes"),
    "old: between elements": (lambda: between_elements(), "a tensor of int32 is over a view of a storage that begins between two elements"),
    "cut": (lambda: sample()[:-1], "a zip archive ends with its directory, and there is none"),
}  # fmt: skip


def tar():
    import tarfile

    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as made:
        for part in ("sys_info", "pickle", "tensors", "storages"):
            made.addfile(tarfile.TarInfo(part))
    return file.getvalue()


def old_head():
    return b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001)) + pickled(old_tensor(ARRAY))


def between_elements():
    stored = Stored("torch.ByteStorage", "94", 6, "cpu", ("95", 1, 4))
    value = Call(Name("torch._utils", "_rebuild_tensor_v3"), (stored, 0, (1,), (1,), False, None, Name("torch", "int32")))
    return old(value, [("94", np.zeros(6, np.uint8))])


def chains():
    """Lists of 400 levels, each of which ends in the one before: 4,000 deep together, and none on its own."""
    text = b"\x80\x02N\x94"
    for i in range(10):
        text += b"0" + b"h" + bytes([i]) + b"\x85" * 400 + b"\x94"
    return text + b"0(" + b"".join(b"h" + bytes([i]) for i in range(1, 11)) + b"t."


def flagged(flag):
    data = bytearray(sample())
    data[data.index(b"PK\1\2") + 8] |= flag
    return bytes(data)


def renamed(old, new):
    return sample().replace(old, new)


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_load_says_where_and_why(tmp_path, name):
    make, text = BAD[name]
    data = make()
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=text):
        tenon.load(path)
    with pytest.raises(ValueError, match=rf"^load: the file: at byte \d+: .*{text}"):
        load(data)


def test_lists_and_dicts_that_contain_themselves():
    value = [{}]
    value.append(value)
    value[0]["list"] = value
    found = load(archive(value))
    assert found[1] is found and found[0]["list"] is found and len(found) == 2


def test_attributes_of_parameters_and_tensors():
    attributes = {"tag": "first", "sizes": [1, 2], "other": tensor(ARRAY)}
    parameter = Call(Name("torch._utils", "_rebuild_parameter_with_state"), (tensor(ARRAY), True, None, attributes))
    inner = tensor(ARRAY)
    typed = Call(Name("torch._tensor", "_rebuild_from_type_v2"), (inner.function, Name("torch", "Tensor"), inner.arguments, {"tag": "second"}))
    slots = Call(Name("torch._utils", "_rebuild_parameter_with_state"), (tensor(ARRAY), False, None, ({"tag": "third"}, {})))
    found, plain, third = load(archive([parameter, typed, slots], [ARRAY.tobytes()]))
    assert isinstance(found, tenon.nn.Parameter) and found.requires_grad and found.tolist() == ARRAY.tolist()
    assert (found.tag, found.sizes, found.other.tolist()) == ("first", [1, 2], ARRAY.tolist())
    assert type(plain) is tenon.Tensor and plain.tag == "second" and plain.tolist() == ARRAY.tolist()
    assert third.tag == "third" and not third.requires_grad


def test_attributes_of_an_ordered_dict():
    assert load(sample())["model"]._metadata == {"": {"version": 1}}


def test_sums_that_pytorch_did_not_compute_are_not_looked_at():
    data = bytearray(archive([tensor(ARRAY)], [ARRAY.tobytes()]))
    at = 0
    while (at := data.find(b"PK\1\2", at)) >= 0:
        data[at + 16 : at + 20] = bytes(4)
        at += 4
    assert load(data)[0].tolist() == ARRAY.tolist()


def test_every_changed_bit_gives_an_error_or_the_right_tensors():
    whole = archive({"weight": tensor(ARRAY), "n": 3}, [ARRAY.tobytes()])
    same = 0
    for i in range(len(whole)):
        for bit in range(0, 8, 3):
            damaged = bytearray(whole)
            damaged[i] ^= 1 << bit
            same += is_right(damaged)
    assert 0 < same < len(whole)


def is_right(data):
    """Whether damaged bytes load; then they are right, for what else they hold are times and versions."""
    try:
        found = load(data)
    except ValueError as error:
        assert str(error).startswith("load: ")
        return False
    assert found["weight"].tolist() == ARRAY.tolist() and found["n"] == 3
    return True


def test_random_damage_gives_an_error_or_the_right_tensors():
    whole = archive({"weight": tensor(ARRAY), "n": 3}, [ARRAY.tobytes()])
    draw = random.Random(1)
    for _ in range(int(os.environ.get("TENON_MUTATIONS", 2000))):
        damaged = bytearray(whole)
        for _ in range(draw.randrange(1, 20)):
            damaged[draw.randrange(len(whole))] = draw.randrange(256)
        is_right(damaged)
    for n in range(len(whole)):
        assert not is_right(whole[:n])


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("function", ["_rebuild_tensor", "_rebuild_tensor_v2"])
def test_the_format_before_1_6(function, protocol):
    """Storages of any order, of which some are views of others."""
    other = np.arange(6, dtype=np.float64)
    value = {
        "whole": old_tensor(ARRAY, function=function),
        "view": old_tensor(np.zeros((2, 2), np.float32), ("95", 2, 4), function=function),
        "again": old_tensor(np.zeros(3, np.float32), ("96", 1, 3), function=function),
        "other": old_tensor(other, key="7", function=function, kind="DoubleStorage"),
        "n": 3,
    }
    data = old(value, [("7", other), ("94", ARRAY)], protocol=protocol)
    for mmap in (False, True):
        found = load(data, mmap=mmap)
        assert found["whole"].tolist() == ARRAY.tolist() and found["view"].tolist() == [[2, 3], [4, 5]]
        assert found["again"].tolist() == [1, 2, 3] and found["other"].tolist() == other.tolist() and found["n"] == 3
        found["whole"][0, 2] = 9
        assert found["view"][0, 0] == 9 and found["again"][1] == 9


def test_views_of_bytes_before_1_6():
    """A view of other elements than the storage's, as PyTorch writes untyped storages."""
    stored = Stored("torch.storage.UntypedStorage", "94", 24, "cpu", None)
    value = Call(Name("torch._utils", "_rebuild_tensor_v3"), (stored, 1, (5,), (1,), False, None, Name("torch", "float32")))
    assert load(old(value, [("94", ARRAY.view(np.uint8).reshape(-1))])).tolist() == [1, 2, 3, 4, 5]


def test_what_python_2_wrote():
    """Its texts are bytes, and its OrderedDict is called with lists of two."""
    value = Call(Name("collections", "OrderedDict"), ([["w", old_tensor(ARRAY, function="_rebuild_tensor")], ["n", 3]],))
    data = re.sub(rb"X(.)\0\0\0", rb"U\1", pickled(value), flags=re.DOTALL)
    found = load(old(data.replace(b"U\x01w", b"T\x01\0\0\0w"), [("94", ARRAY)]))
    assert type(found) is collections.OrderedDict and found["w"].tolist() == ARRAY.tolist() and found["n"] == 3


def test_a_large_pickle_before_1_6():
    """More than is read at once."""
    value = {"w": old_tensor(ARRAY), "text": ["x" * 1000 + str(i) for i in range(1000)]}
    found = load(old(value, [("94", ARRAY)]))
    assert found["w"].tolist() == ARRAY.tolist() and found["text"] == value["text"]


@pytest.mark.parametrize("shift", range(8))
def test_what_is_aligned_is_mapped_before_1_6(tmp_path, shift):
    path = tmp_path / "x.pt"
    data = old({"w": old_tensor(ARRAY), "padding": "x" * shift}, [("94", ARRAY)])
    path.write_bytes(data)
    found = tenon.load(path, mmap=True)["w"]
    assert found.tolist() == ARRAY.tolist()
    with open(path, "r+b") as file:  # what no program should do: it shows which tensors are mapped
        file.seek(-4, 2)
        file.write(struct.pack("<f", 7))
    assert found[1, 2] == (7 if (len(data) - 24) % 4 == 0 else 5)


def test_several_values_in_one_open_file_before_1_6(tmp_path):
    """As PyTorch reads them; a path has one."""
    one, two = old(old_tensor(ARRAY), [("94", ARRAY)]), old([1, "x"])
    file = io.BytesIO(b"before" + one + two + b"after")
    file.seek(6)
    assert tenon.load(file).tolist() == ARRAY.tolist() and tenon.load(file) == [1, "x"] and file.read() == b"after"
    path = tmp_path / "x.pt"
    path.write_bytes(one + two)
    with pytest.raises(ValueError, match=f"at byte {len(one)}: bytes follow the last storage; the file is damaged, or more was appended to it: load from the open file"):
        tenon.load(path)


def test_map_location_before_1_6():
    stored = Stored("torch.FloatStorage", "94", 6, "cuda:0", None)
    data = old(Call(Name("torch._utils", "_rebuild_tensor"), (stored, 0, (6,), (1,))), [("94", ARRAY)])
    with pytest.raises(RuntimeError, match="a tensor was saved on cuda:0.*map_location='cpu'"):
        load(data)
    assert load(data, map_location="cpu").tolist() == list(range(6))
