#!/usr/bin/env python3
"""Loads altered files of every kind and pickles made at random: an error that says where, or what the bytes hold.

    python tests/fuzz/files.py own --count 20000 --seed 1     prints a line of figures, as JSON
    python tests/fuzz/files.py --list                         the kinds

What counts as wrong: a signal, an exception that is none of load's, a message without the function and the file, a value
that is not what an independent reader finds (Python's pickle without names, json), memory beyond 64 MB and twice the file,
and a change of the package. Nothing but PYTHONPATH is needed, so it runs as it is with a sanitizer's build.
"""

import argparse
import collections
import io
import json
import os
import pickle
import random
import struct
import sys
import tempfile
import types
import zipfile
import zlib

import tenon

MAGIC, FIRST = b"tenon checkpoint, 2\n", b"tenon-checkpoint-1\n"
SLACK = 64 << 20  # bytes of memory beyond twice a file's size

# What pickles hold, read by Python's own unpickler, in which every name is a record.


class Record:
    """A name that a pickle calls, with its arguments and its state."""

    def __init__(self, name, *arguments):
        self.name, self.arguments = name, arguments


class Name:
    def __init__(self, name):
        self.name = name

    def __call__(self, *arguments):
        return Record(self.name, *arguments)


class Reader(pickle._Unpickler):
    def find_class(self, module, name):
        return Name(f"{module}.{name}")

    def persistent_load(self, identifier):
        return Record("stored", *identifier)


class LegacyReader(Reader):
    """Of the format before 1.6: what it knows of each storage is the type that its first tensor names."""

    kinds: dict

    def persistent_load(self, identifier):
        self.kinds.setdefault(identifier[2], identifier[1].name)
        return super().persistent_load(identifier)


def legacy_content(data):
    """The same of such a file."""
    file, kinds = io.BytesIO(data), {}

    def following():
        reader = LegacyReader(file, encoding="utf-8", errors="surrogatepass")
        reader.kinds = kinds
        return reader.load()

    *_, value, keys = [following() for _ in range(5)]
    entries = {}
    for key in keys:
        (count,) = struct.unpack("<q", file.read(8))
        entries[key] = file.read(count * ITEM_SIZES[kinds[key]])
    return plain(value, entries)


class Unknown(Exception):
    """A value of a kind that this reader does not know."""


def content(data, entries):
    """What a pickle holds, for comparison. Raises anything where it cannot be read."""
    return plain(Reader(io.BytesIO(data), encoding="utf-8", errors="surrogatepass").load(), entries)


def dtype_of(name):
    module, _, dtype = name.rpartition(".")
    found = getattr(tenon, dtype, None)
    return found if module in ("torch", "tenon", "tenon._C") and isinstance(found, tenon.dtype) else None


def plain(value, entries, depth=0):
    if depth > 100:  # a list may contain itself
        raise Unknown("depth")
    inner = lambda part: plain(part, entries, depth + 1)
    if isinstance(value, Name):
        if dtype_of(value.name) is None:
            raise Unknown(value.name)
        return "dtype", str(dtype_of(value.name))
    if isinstance(value, Record):
        return called(value, entries, inner)
    if isinstance(value, dict):
        return "dict", [(inner(key), inner(part)) for key, part in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [inner(part) for part in value]
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(repr(inner(part)) for part in value)
    if isinstance(value, float):
        return "float", struct.pack("d", value)
    if isinstance(value, (bool, int, str, bytes, bytearray, complex, type(None))):
        return type(value).__name__, value if not isinstance(value, complex) else repr(value)
    raise Unknown(type(value))


def called(value, entries, inner):
    name, arguments = value.name, value.arguments
    if name == "tenon._C._rebuild_tensor":
        kind, data, sizes, dtype, requires_grad, *_ = arguments
        return "tensor", data, tuple(sizes), str(dtype_of(dtype.name)), requires_grad, kind.name.endswith("Parameter")
    if name.startswith("torch._utils._rebuild_tensor"):
        stored, offset, sizes, strides, *rest = arguments
        if len(rest) not in ((0,) if name.endswith("_tensor") else (2, 3, 4)):
            raise TypeError(f"{name} of {len(arguments)} arguments")
        requires_grad = bool(rest) and rest[0]
        _, _, key, _, count, *view = stored.arguments
        offset += view[0][1] if view and view[0] else 0
        item = len(entries[key]) // count if count else 1
        flat = [entries[key][i * item : (i + 1) * item] for i in positions(offset, sizes, strides)]
        return "tensor", b"".join(flat), tuple(sizes), None, requires_grad, False
    if name == "torch._utils._rebuild_parameter":
        made = inner(arguments[0])
        return *made[:4], arguments[1], True
    if name in ("tenon.Size", "torch.Size"):
        return "Size", [inner(part) for part in arguments[0]]
    if name in ("builtins.complex", "__builtin__.complex"):
        return "complex", repr(complex(*arguments))
    if name in ("tenon.device", "torch.device"):
        return "device", ":".join(map(str, arguments))
    if name == "_codecs.encode":
        return "bytes", arguments[0].encode("latin1")
    if name in ("builtins.set", "__builtin__.set"):
        return inner(set(*arguments))
    if name in ("builtins.bytearray", "__builtin__.bytearray"):
        return "bytearray", bytearray(*arguments)
    raise Unknown(name)


def positions(offset, sizes, strides):
    if not sizes:
        return [offset]
    return [at for i in range(sizes[0]) for at in positions(offset + i * strides[0], sizes[1:], strides[1:])]


def found(value, depth=0):
    """The same of what tenon.load returned."""
    if depth > 100:  # a list may contain itself
        raise Unknown("depth")
    inner = lambda part: found(part, depth + 1)
    if isinstance(value, tenon.Tensor):
        data = value.detach().contiguous().flatten().view(tenon.uint8).numpy().tobytes() if value.numel() else b""
        return "tensor", data, tuple(value.shape), str(value.dtype), value.requires_grad, isinstance(value, tenon.nn.Parameter)
    if isinstance(value, tenon.dtype):
        return "dtype", str(value)
    if isinstance(value, tenon.device):
        return "device", str(value)
    if isinstance(value, tenon.Size):
        return "Size", [inner(part) for part in value]
    if isinstance(value, (collections.OrderedDict, collections.Counter)):
        raise Unknown("OrderedDict")  # a record without items in the other reader
    if isinstance(value, dict):
        return "dict", [(inner(key), inner(part)) for key, part in value.items()]
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(repr(inner(part)) for part in value)
    return plain(value, {}, depth) if not isinstance(value, (list, tuple)) else (type(value).__name__, [inner(part) for part in value])


def alike(a, b):
    """Whether two contents are the same; the dtype of a PyTorch tensor is its storage's, which no argument names."""
    if isinstance(a, tuple) and a[:1] == ("tensor",):
        return isinstance(b, tuple) and len(a) == len(b) and all(x is None or x == y for x, y in zip(a, b))
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(alike, a, b))
    return a == b


# Samples


def sealed(data):
    size = struct.pack("<Q", len(data))
    return MAGIC + size + struct.pack("<I", zlib.crc32(data, zlib.crc32(size))) + data


def sample():
    shared = [1, "x"]
    return {
        "weight": tenon.arange(6.0).reshape(2, 3),
        "half": tenon.ones(3, dtype=tenon.float16),
        "flags": tenon.tensor([True, False]),
        "parameter": tenon.nn.Parameter(tenon.ones(2)),
        "plain": [1, -2, 300, 70_000, 2.5, "größe", b"bytes", None, True, 1 << 80, 1 - 2j],
        "containers": ((), (1, 2), {3}, frozenset([4]), {5: {"six": [7]}}, shared, shared),
        "others": [tenon.Size([2, 3]), tenon.int64, tenon.device("cpu")],
    }


def own():
    file = io.BytesIO()
    tenon.save(sample(), file)
    return file.getvalue()


TORCH = b"ctorch._utils\n_rebuild_tensor_v2\n"


def torch_tensor(key, count, sizes, strides, kind=b"FloatStorage"):
    integer = lambda n: b"K" + bytes([n])
    numbers = lambda tuple_of: b"(" + b"".join(map(integer, tuple_of)) + b"t"  # each below 256
    stored = b"(X\7\0\0\0storagectorch\n" + kind + b"\nX\1\0\0\0" + key + b"X\3\0\0\0cpu" + integer(count) + b"tQ"
    return TORCH + b"(" + stored + integer(0) + numbers(sizes) + numbers(strides) + b"\x89Nt" + b"R"


TORCH_PICKLE = (
    b"\x80\2}q\0(X\1\0\0\0wq\1" + torch_tensor(b"0", 6, (2, 3), (3, 1)) + b"q\2X\1\0\0\0vq\3" + torch_tensor(b"1", 4, (2, 2), (1, 2)) +
    b"q\4X\1\0\0\0nq\5K\3X\1\0\0\0pq\6ctorch._utils\n_rebuild_parameter\n(h\2\x88NtRX\1\0\0\0lq\7](K\1h\3N\x88e}q\10K\2X\1\0\0\0ysX\1\0\0\0su."
)  # fmt: skip
TORCH_PICKLE = TORCH_PICKLE.replace(b"e}q\10K\2X\1\0\0\0ysX\1\0\0\0su.", b"eX\1\0\0\0dq\10}K\2X\1\0\0\0ysu.")
ENTRIES = {"0": struct.pack("<6f", *range(6)), "1": struct.pack("<4f", 1, 2, 3, 4)}


# In the format before 1.6 a storage's identifier has one part more: None, or which part of the storage is meant.
LEGACY = b"".join(pickle.dumps(part, 2) for part in (0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True}))
ITEM_SIZES = {"torch.FloatStorage": 4, "torch.ComplexFloatStorage": 8}
LEGACY_PICKLE = (
    b"\x80\2}(X\1\0\0\0w" + torch_tensor(b"0", 6, (2, 3), (3, 1)).replace(b"tQ", b"NtQ") + b"X\1\0\0\0v" +
    torch_tensor(b"0", 6, (2, 2), (2, 1)).replace(b"tQ", b"(X\1\0\0\0aK\2K\4ttQ") + b"X\1\0\0\0n" +
    torch_tensor(b"1", 4, (2, 2), (1, 2)).replace(b"tQ", b"NtQ") + b"u."
)  # fmt: skip


def legacy(data):
    """A file of the format before 1.6, with the storages that a pickle names."""
    item = 8 if b"ComplexFloat" in data else 4
    used = [key for key in ENTRIES if b"X\1\0\0\0" + key.encode() in data]
    return LEGACY + data + pickle.dumps(used, 2) + b"".join(struct.pack("<q", len(ENTRIES[key]) // item) + ENTRIES[key] for key in used)


def altered_legacy(draw):
    data = altered(legacy(LEGACY_PICKLE), draw, WORDS)
    return data, lambda: legacy_content(data)


def archive(data):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("archive/data.pkl", data)
        for key, entry in ENTRIES.items():
            made.writestr(f"archive/data/{key}", entry)
        made.writestr("archive/version", "3\n")
    return file.getvalue()


def tensors():
    return {"weight": tenon.arange(12.0).reshape(3, 4), "half": tenon.ones(3, dtype=tenon.bfloat16), "b": tenon.tensor([True, False])}


def foreign_safetensors():
    """As other programs write them: without a checksum."""
    header = {"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
              "b": {"dtype": "I64", "shape": [2], "data_offsets": [24, 40]}, "c": {"dtype": "BOOL", "shape": [3], "data_offsets": [40, 43]}}  # fmt: skip
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + struct.pack("<6f2q3B", *range(6), 7, 8, 1, 0, 1)


def safetensors_content(data):
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    return {name: (data[8 + size :][slice(*row["data_offsets"])], row["shape"], row["dtype"]) for name, row in header.items()}


NAMES = {tenon.float32: "F32", tenon.int64: "I64", tenon.bool: "BOOL", tenon.int32: "I32", tenon.uint8: "U8", tenon.int8: "I8",
         tenon.int16: "I16", tenon.float64: "F64", tenon.float16: "F16", tenon.bfloat16: "BF16", tenon.complex64: "C64",
         tenon.float8_e4m3fn: "F8_E4M3", tenon.float8_e5m2: "F8_E5M2"}  # fmt: skip


def safetensors_found(value):
    return {name: (found(t)[1], list(t.shape), NAMES[t.dtype]) for name, t in value.items()}


# Alterations


def altered(data, draw, words=()):
    """A few bytes changed, cut, doubled, moved, or a word put in."""
    data = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 1, 2, 3, 8])):
        if not data:
            break
        at, size = draw.randrange(len(data)), 1 << draw.randrange(7)
        case = draw.randrange(8)
        if case == 0:
            data[at] = draw.randrange(256)
        elif case == 1:
            data[at] ^= 1 << draw.randrange(8)
        elif case == 2:
            del data[at : at + draw.randrange(1, 9)]
        elif case == 3:
            data[at:at] = draw.randbytes(draw.randrange(1, 9))
        elif case == 4:
            start = draw.randrange(len(data))
            data[at:at] = data[start : start + size]
        elif case == 5:
            data[at : at + (size := min(size, 8))] = draw.choice([b"\xff", b"\x7f", b"\0"]) * size
        elif case == 6:
            del data[at:]
        elif words:
            data[at:at] = draw.choice(words)
    return bytes(data)


def word(name):
    module, _, name = name.rpartition(".")
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


WORDS = [*map(word, ["tenon.Tensor", "tenon._C._rebuild_tensor", "tenon.nn.parameter.Parameter", "tenon.Size", "tenon.device", "tenon.float32",
                     "collections.OrderedDict", "collections.Counter", "builtins.complex", "builtins.bytearray", "builtins.set", "_codecs.encode",
                     "torch.Tensor", "torch.Size", "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_parameter", "torch.FloatStorage",
                     "torch._tensor._rebuild_from_type_v2", "os.system", "builtins.eval", "builtins.getattr"])]  # fmt: skip


def made(draw):
    """A pickle of random operations: of every opcode, with the stack mostly as they want it."""
    out, depth = [b"\x80" + bytes([draw.choice([2, 3, 4, 5])])], 0
    integer = lambda: draw.choice([0, 1, 2, 255, 1 << 16, 1 << 29, 1 << 31, 1 << 62])
    text = lambda: draw.choice([b"", b"a", b"item", b"cpu", b"latin1", b"\xff\xfe", b"\xed\xa0\x80", b"x" * 300, b"__dict__", b"storage"])
    small = lambda data: bytes([len(data) & 255]) + data
    atoms = [
        lambda: b"N", lambda: draw.choice([b"\x88", b"\x89"]), lambda: b"J" + struct.pack("<i", draw.randrange(-(1 << 31), 1 << 31)),
        lambda: b"K" + draw.randbytes(1), lambda: b"M" + draw.randbytes(2), lambda: b"\x8a" + small(draw.randbytes(draw.randrange(12))),
        lambda: b"\x8b" + struct.pack("<I", 9) + draw.randbytes(9), lambda: b"G" + draw.randbytes(8), lambda: b"\x8c" + small(text()),
        lambda: b"X" + struct.pack("<I", len(word := text())) + word, lambda: b"\x8d" + struct.pack("<Q", len(word := text())) + word,
        lambda: b"U" + small(text()), lambda: b"C" + small(text()), lambda: b"B" + struct.pack("<I", len(word := text())) + word,
        lambda: b"\x8e" + struct.pack("<Q", len(word := text())) + word, lambda: b"\x96" + struct.pack("<Q", len(word := text())) + word,
        lambda: b"]", lambda: b")", lambda: b"}", lambda: b"\x8f", lambda: draw.choice(WORDS), lambda: b"h" + bytes([draw.randrange(4)]),
        lambda: b"j" + struct.pack("<I", draw.randrange(4)), lambda: b"2", lambda: b"(",
    ]  # fmt: skip
    others = [b"0", b"1", b"a", b"e", b"s", b"u", b"\x85", b"\x86", b"\x87", b"t", b"l", b"d", b"b", b"R", b"\x81", b"\x90", b"\x91", b"\x93", b"\x94",
              b"Q", b"o", b"i", b"p0\n", b"g0\n", b"S'x'\n", b"Vx\n", b"I1\n", b"F1\n", b"L1\n", b"P1\n", b"\x82\1", b"\x83\1\0", b"\x84\1\0\0\0",
              b"\x92", b"\x97", b"\x98", b"\x95" + b"\0" * 8]  # fmt: skip
    for _ in range(draw.randrange(2, 40)):
        if depth < 2 or draw.random() < 0.55:
            out.append(draw.choice(atoms)())
            depth += 1
        elif draw.random() < 0.15:
            out.append(b"q" + bytes([draw.randrange(4)]) if draw.random() < 0.8 else b"r" + struct.pack("<I", integer() & 0xFFFFFFFF))
        elif draw.random() < 0.8:
            wants, opcode = draw.choice([(2, b"\x86"), (2, b"s"), (2, b"R"), (2, b"b"), (1, b"\x85"), (1, b"a"), (2, b"\x93"), (3, b"\x87"), (1, b"0"), (1, b"e"), (1, b"t"), (1, b"Q")])
            if depth >= wants:
                out.append(opcode)
                depth -= wants - 1
        else:
            out.append(draw.choice(others))
    while depth > 1 and draw.random() < 0.9:
        out.append(b"\x86")
        depth -= 1
    return b"".join(out) + b"."


# Kinds: what is loaded for a draw, and what it may be: a function of the bytes that gives the content, as `found` does of the
# value; None where any change must be noticed or change nothing.


def pickle_kind(wrap, data, entries=None):
    def make(draw):
        inside = altered(data, draw, WORDS)
        return wrap(inside), lambda: content(inside, entries or {})

    return make


def whole_kind(data, load=tenon.load):
    right = found(load(io.BytesIO(data)))

    def make(draw):
        return altered(data, draw), lambda: right

    return make


def hand_made(draw):
    inside = made(draw)
    wrap = draw.choice([sealed, lambda data: FIRST + data, archive])
    return wrap(inside), lambda: content(inside, ENTRIES if wrap is archive else {})


def saved_safetensors():
    from tenon.safetensors import save

    return save(tensors(), {"format": "pt"})


def foreign(draw):
    data = altered(foreign_safetensors(), draw, [b'"a":', b'"F32"', b"[0,0]", b"1e400", b'"\\u0000"', b'"dtype":'])
    return data, lambda: safetensors_content(data)


KINDS = {
    "own": lambda: whole_kind(own()),
    "own-sealed": lambda: pickle_kind(sealed, own()[len(MAGIC) + 12 :]),
    "first": lambda: pickle_kind(lambda data: FIRST + data, own()[len(MAGIC) + 12 :]),
    "pytorch": lambda: whole_kind(archive(TORCH_PICKLE)),
    "pytorch-sealed": lambda: pickle_kind(archive, TORCH_PICKLE, ENTRIES),
    "legacy": lambda: altered_legacy,
    "safetensors": lambda: whole_kind(saved_safetensors()),
    "safetensors-foreign": lambda: foreign,
    "hand-made": lambda: hand_made,
}


# Checks


def state_of_the_package():
    """Every attribute of the package's modules and of the classes in them, by identity."""
    state = {}
    for name, module in list(sys.modules.items()):
        if name != "tenon" and not name.startswith("tenon."):
            continue
        for key, value in list(vars(module).items()):
            state[name, key] = id(value)
            if isinstance(value, type) and value.__module__.startswith("tenon"):
                state.update({(name, key, inner): id(part) for inner, part in list(vars(value).items())})
    import builtins

    state.update({("builtins", key): id(value) for key, value in vars(builtins).items()})
    return state


def peak():
    """The most memory that the process had. Not ru_maxrss, which a process has from the one that started it."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:"))


def fuzz(kind, count, seed, problems):
    make = KINDS[kind]()
    counts = collections.Counter(loaded=0, compared=0, refused=0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a file")
        tenon.save(sample(), path)
        tenon.load(path)
        found(tenon.load(path))
        before, at_first, largest = state_of_the_package(), peak(), 0
        for number in range(count):
            draw = random.Random(f"{kind} {seed} {number}")
            data, wanted = make(draw)
            largest = max(largest, len(data))
            with open(path, "r+b") as file:  # some file systems wait for the disk where a file is made shorter first
                file.write(data)
                file.truncate()
            one(kind, number, path, data, wanted, counts, problems)
        growth = peak() - at_first
        if growth > SLACK + 2 * largest:
            problems.append(f"{kind}: memory grew by {growth} bytes, for files of at most {largest}")
        after = state_of_the_package()
        for key in before.keys() | after.keys():
            if before.get(key) != after.get(key) and not (key not in before and len(key) == 2 and isinstance(getattr(sys.modules[key[0]], key[1], None), types.ModuleType)):
                problems.append(f"{kind}: {'.'.join(key)} is another one after the loads")
    return dict(counts, kind=kind, growth=growth, largest=largest)


def one(kind, number, path, data, wanted, counts, problems):
    opened = number % 4 == 3
    name = "the file" if opened else path
    try:
        value = tenon.load(io.BytesIO(data) if opened else path)
    except (ValueError, MemoryError, RuntimeError) as error:
        counts["refused"] += 1
        elsewhere = type(error) is RuntimeError and str(error).startswith(f"load: {name}: a tensor was saved on ")
        if not elsewhere and (type(error) not in (ValueError, tenon.OutOfMemoryError) or not str(error).startswith(f"load: {name}: ")):
            problems.append(f"{kind} {number}: {type(error).__name__}: {error}"[:300])
        return
    except Exception as error:  # noqa: BLE001
        problems.append(f"{kind} {number}: {type(error).__name__}: {error}"[:300])
        return
    counts["loaded"] += 1
    try:
        right = wanted()
        got = safetensors_found(value) if kind == "safetensors-foreign" else found(value)
    except Unknown:
        return
    except Exception as error:  # noqa: BLE001
        problems.append(f"{kind} {number}: loads, where another reader fails: {type(error).__name__}: {error}"[:300])
        return
    counts["compared"] += 1
    if not alike(right, got):
        problems.append(f"{kind} {number}: loads as {str(got)[:200]}, and holds {str(right)[:200]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", nargs="?", choices=KINDS)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="one file: prints its bytes and what load says")
    args = parser.parse_args()
    if args.list or not args.kind:
        print(*KINDS, sep="\n")
        return 0
    if args.only is not None:
        data, wanted = KINDS[args.kind]()(random.Random(f"{args.kind} {args.seed} {args.only}"))
        print(data)
        try:
            print("load:", tenon.load(io.BytesIO(data)))
        finally:
            print("holds:", wanted())
        return 0
    problems = []
    figures = fuzz(args.kind, args.count, args.seed, problems)
    print(json.dumps(figures))
    print(*problems[:50], sep="\n", file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
