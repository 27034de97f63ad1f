#!/usr/bin/env python3
"""Loads altered ONNX files: an error that says where, or a model whose weights are the file's; and runs what loads.

    python tests/fuzz/onnx_files.py bytes --count 20000 --seed 1     bytes of small models are changed
    python tests/fuzz/onnx_files.py fields --count 20000 --seed 1    their numbers, names and messages are, before they are written

What counts as wrong: a signal, an exception that is none of load's, a message without the function and the file, a weight that
is not in the file, an exception of a run that is no error of Tenon, memory for loading beyond 64 MB and twice the file, and a
change of the package. Nothing but PYTHONPATH is needed.
"""

import argparse
import collections
import json
import os
import random
import resource
import struct
import sys
import tempfile

import tenon
from files import SLACK, altered, peak, state_of_the_package

FLOAT, INT8, INT64, BOOL = 1, 3, 7, 9
NUMBERS = [0, 1, 2, 3, 5, 7, 9, 16, 255, -1, -2, 1 << 31, (1 << 31) - 1, -(1 << 31), 1 << 32, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63)]
WORDS = ["", "x", "w", "y", "h", "n", "keep", "Add", "If", "Loop", "Scan", "Twice", "Gather", "Reshape", "Slice", "Conv", "QuantizeLinear", "test",
         "body", "axis", "../weights", "/etc/passwd", "weights", "4096", "-1", "99999999999999999999", "\0", "\N{SNOWMAN}" * 9]  # fmt: skip
EXTERNAL = struct.pack("<2048f", *range(2048))


class Writer:
    """Fields of protocol buffers. With `draw`, one of them is changed now and then."""

    def __init__(self, draw=None):
        self.draw = draw

    def changes(self):
        return self.draw is not None and self.draw.random() < 0.006

    def field(self, tag, value):
        """A number, a text, bytes, a list of numbers (packed), or a message: a tuple of fields."""
        if isinstance(value, tuple):
            value = b"".join(self.parts(value))
        elif isinstance(value, list):
            value = b"".join(map(varint, (self.number(one) for one in value)))
        elif isinstance(value, str):
            value = (self.draw.choice(WORDS) if self.changes() else value).encode()
        elif isinstance(value, float):
            return varint(tag << 3 | 5) + struct.pack("<f", value)
        elif isinstance(value, int):
            return varint(tag << 3) + varint(self.number(value))
        elif self.changes():
            value = altered(value, self.draw)
        return varint(tag << 3 | 2) + varint(len(value)) + value

    def number(self, value):
        return self.draw.choice(NUMBERS) if self.changes() else value

    def parts(self, fields):
        out = [part for part in fields if part]
        if out and self.changes():
            i, j = self.draw.randrange(len(out)), self.draw.randrange(len(out))
            change = self.draw.randrange(3)
            if change == 0:
                del out[i]
            elif change == 1:
                out.insert(i, out[j])
            else:
                out[i], out[j] = out[j], out[i]
        return out

    def tensor(self, name, dims, kind, raw=None, packed=None, external=False):
        f = self.field
        entry = lambda key, value: f(13, (f(1, key), f(2, value)))
        placed = external and entry("location", "weights") + entry("offset", "4096") + entry("length", "4096") + f(14, 1)
        return (f(1, list(dims)), f(2, kind), f(8, name), raw is not None and f(9, raw), packed and f(packed[0], packed[1]), placed or b"")

    def attribute(self, name, value):
        f = self.field
        if isinstance(value, tuple):  # a message of a type: ("graph", fields)
            tag, kind = {"graph": (6, 5), "tensor": (5, 4), "reference": (21, 0)}[value[0]]
            return f(5, (f(1, name), f(tag, value[1]), f(20, kind or 2)))
        tag, kind = {int: (3, 2), float: (2, 1), str: (4, 3), list: (8, 7)}[type(value)]
        return f(5, (f(1, name), f(tag, value), f(20, kind)))

    def node(self, op, inputs, outputs, domain="", tag=1, **attributes):
        """A node of a graph, or with tag 7 of a function."""
        f = self.field
        return f(tag, tuple(f(1, one) for one in inputs.split(" ") if inputs) + tuple(f(2, one) for one in outputs.split())
                 + (f(4, op), domain and f(7, domain)) + tuple(self.attribute(*one) for one in attributes.items()))  # fmt: skip

    def port(self, tag, name, kind, dims):
        f = self.field
        shape = tuple(f(1, (f(1, dim) if isinstance(dim, int) else f(2, dim),)) for dim in dims)
        return f(tag, (f(1, name), f(2, (f(1, (f(1, kind), f(2, shape))),))))

    def graph(self, nodes, inputs, outputs, constants=(), sparse=()):
        f = self.field
        ports = tuple(self.port(11, *one) for one in inputs) + tuple(self.port(12, *one) for one in outputs)
        return tuple(nodes) + (f(2, "g"),) + tuple(f(5, one) for one in constants) + tuple(f(15, one) for one in sparse) + ports

    def model(self, graph, *functions):
        f = self.field
        return f(1, 8) + f(2, "fuzz") + f(7, graph) + f(8, (f(1, ""), f(2, 21))) + f(8, (f(1, "own"), f(2, 1))) + b"".join(f(25, one) for one in functions)


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


# Models


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def perceptron(w):
    """Weights as raw bytes, as packed numbers, in another file; one of them large enough to be mapped."""
    constants = [w.tensor("w", (4, 3), FLOAT, floats(*range(12))), w.tensor("b", (4,), FLOAT, packed=(4, floats(1, 2, 3, 4))),
                 w.tensor("large", (4, 300), FLOAT, floats(*range(1200))), w.tensor("other", (1024,), FLOAT, external=True),
                 w.tensor("shape", (2,), INT64, packed=(7, [2, -1]))]  # fmt: skip
    nodes = [w.node("Gemm", "x w b", "h", transB=1, alpha=1.0), w.node("MatMul", "h large", "l"), w.node("Reshape", "other shape", "o"),
             w.node("Slice", "o starts ends axes", "p"), w.node("Concat", "l p", "y", axis=1),
             w.node("Softmax", "h", "z", axis=-1)]  # fmt: skip
    constants += [w.tensor(name, (1,), INT64, packed=(7, [at])) for name, at in (("starts", 0), ("ends", 7), ("axes", 1))]
    return w.model(w.graph(nodes, [("x", FLOAT, (2, 3))], [("y", FLOAT, ("b", 307)), ("z", FLOAT, (2, 4))], constants))


def nested(w):
    """Graphs in graphs, which read values from outside."""
    inner = w.graph([w.node("Mul", "v x", "t")], [], [("t", FLOAT, ())])
    body = w.graph([w.node("If", "keep", "u", then_branch=("graph", inner), else_branch=("graph", w.graph([w.node("Neg", "v", "r")], [], [("r", FLOAT, ())]))),
                    w.node("Identity", "keep", "k"), w.node("Add", "u one", "s")], [("i", INT64, ()), ("keep", BOOL, ()), ("v", FLOAT, ())],
                   [("k", BOOL, ()), ("u", FLOAT, ()), ("s", FLOAT, (2, 3))])  # fmt: skip
    step = w.graph([w.node("Add", "a b", "c"), w.node("Sqrt", "c", "d")], [("a", FLOAT, ()), ("b", FLOAT, ())], [("c", FLOAT, ()), ("d", FLOAT, ())])
    nodes = [w.node("Loop", "n go x", "y all", body=("graph", body)),
             w.node("Scan", "first all", "last each", body=("graph", step), num_scan_inputs=1, scan_input_axes=[0]),
             w.node("SplitToSequence", "each", "parts", axis=1), w.node("SequenceAt", "parts zero", "z")]  # fmt: skip
    constants = [w.tensor("one", (), FLOAT, floats(1)), w.tensor("go", (), BOOL, b"\1"), w.tensor("first", (2, 3), FLOAT, floats(*range(6))),
                 w.tensor("zero", (), INT64, packed=(7, [0])), w.tensor("n", (), INT64, packed=(7, [3]))]  # fmt: skip
    return w.model(w.graph(nodes, [("x", FLOAT, (2, 3))], [("y", FLOAT, (2, 3)), ("z", FLOAT, (3, 1, 3))], constants))


def functions(w):
    """A function that calls another one, with attributes of the call."""
    f = w.field
    opsets = (f(9, (f(1, ""), f(2, 21))), f(9, (f(1, "own"), f(2, 1))))
    concat = w.node("Concat", "a a", "b", tag=7, axis=("reference", "axis"))
    twice = (f(1, "Twice"), f(4, "a"), f(5, "c"), f(6, "axis"), concat, w.node("Leaf", "b", "c", "own", 7), f(10, "own"), *opsets)
    leaf = (f(1, "Leaf"), f(4, "a"), f(4, "absent"), f(5, "b"), w.node("Relu", "a", "b", tag=7), f(10, "own"), f(11, (f(1, "axis"), f(3, 1), f(20, 2))))
    nodes = [w.node("Twice", "x", "h", "own", axis=1), w.node("Gather", "h i", "y", axis=0), w.node("ScatterND", "h j u", "z", reduction="add")]
    constants = [w.tensor("i", (2,), INT64, struct.pack("<2q", 1, -1)), w.tensor("j", (1, 2), INT64, struct.pack("<2q", 0, 5)), w.tensor("u", (1,), FLOAT, floats(9))]
    return w.model(w.graph(nodes, [("x", FLOAT, (2, 3))], [("y", FLOAT, (2, 6)), ("z", FLOAT, (2, 6))], constants), twice, leaf)


def sparse(w):
    """Sparse constants, and one that an attribute has; integers of 8 bits."""
    f = w.field
    places = w.tensor("", (3,), INT64, struct.pack("<3q", 0, 4, 11))
    pairs = w.tensor("", (2, 2), INT64, struct.pack("<4q", 0, 1, 2, 3))
    constants = [(f(1, w.tensor("s", (3,), FLOAT, floats(1, 2, 3))), f(2, places), f(3, [3, 4])),
                 (f(1, w.tensor("t", (2,), FLOAT, packed=(4, floats(5, 6)))), f(2, pairs), f(3, [3, 4]))]  # fmt: skip
    quantized = [w.tensor("q", (4, 2), INT8, struct.pack("<8b", *range(-4, 4))), w.tensor("scale", (2,), FLOAT, floats(0.5, 0.25)), w.tensor("zero", (2,), INT8, packed=(5, [1, -1]))]
    nodes = [w.node("Add", "s t", "w"), w.node("MatMul", "x w", "h"), w.node("DequantizeLinear", "q scale zero", "d", axis=1), w.node("MatMul", "h d", "y"),
             w.node("Constant", "", "c", value=("tensor", w.tensor("", (2,), FLOAT, floats(1, 2)))), w.node("Mul", "y c", "z"),
             w.node("ConstantOfShape", "shape", "o", value=("tensor", w.tensor("", (1,), FLOAT, floats(3)))), w.node("Expand", "z shape", "e")]  # fmt: skip
    quantized.append(w.tensor("shape", (2,), INT64, packed=(7, [2, 2])))
    return w.model(w.graph(nodes, [("x", FLOAT, (2, 3))], [("z", FLOAT, (2, 2)), ("o", FLOAT, (2, 2)), ("e", FLOAT, (2, 2))], quantized, constants))


MODELS = [perceptron, nested, functions, sparse]


# Checks


def text_of(kind, draw):
    made = draw.choice(MODELS)
    if kind == "bytes":
        return altered(made(Writer()), draw, [word.encode() for word in WORDS])
    return made(Writer(draw))


def inputs_of(model):
    """Ones of the shapes that the file says, if they are small."""
    out = []
    for port in model.inputs:
        sizes = [dim if isinstance(dim, int) else 2 for dim in port.shape or []]
        if len(sizes) > 6 or any(not 0 <= size <= 8 for size in sizes):
            return None
        out.append(tenon.ones(sizes, dtype=port.dtype or tenon.float32))
    return out


def limited(megabytes):
    """Bounds the memory that the process may have from now on: what a run asks for beyond it is refused."""
    with open("/proc/self/statm") as statm:
        now = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + (megabytes << 20), resource.RLIM_INFINITY))


def one(kind, number, path, data, counts, problems, runs):
    folder = os.path.dirname(path)
    in_memory = number % 4 == 3
    name = "a model in memory" if in_memory else path
    wrong = lambda error: problems.append(f"{kind} {number}: {type(error).__name__}: {error}"[:400])
    source = data if in_memory else path
    try:
        tenon.onnx.contents(source)
        model = tenon.onnx.load(source)
    except (ValueError, NotImplementedError, OSError, MemoryError) as error:
        counts["refused"] += 1
        if not str(error).startswith(("onnx.load: ", "load: ")) and not isinstance(error, OSError) or (name not in str(error) and folder not in str(error)):
            wrong(error)
        return
    except Exception as error:  # noqa: BLE001
        return wrong(error)
    counts["loaded"] += 1
    for weight, value in model.state_dict().items():
        stored = value.detach().contiguous().flatten().view(tenon.uint8).numpy().tobytes() if value.numel() else b""
        is_sparse = stored.count(0) > len(stored) // 4 * 3
        if len(stored) > 1000 and not is_sparse and stored not in data and stored not in EXTERNAL:
            problems.append(f"{kind} {number}: weight '{weight}' is not in the file")
    inputs = inputs_of(model) if runs else None
    if inputs is None:
        return
    try:
        model(*inputs)
        counts["run"] += 1
    except (ValueError, TypeError, IndexError, NotImplementedError, RuntimeError, MemoryError) as error:
        counts["failed"] += 1
        if not isinstance(error, MemoryError) and "onnx" not in str(error):
            wrong(error)
    except Exception as error:  # noqa: BLE001
        wrong(error)


def fuzz(kind, count, seed, problems, runs):
    counts = collections.Counter(loaded=0, refused=0, run=0, failed=0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a file")
        with open(os.path.join(folder, "weights"), "wb") as file:
            file.write(EXTERNAL)
        for make in MODELS:  # unchanged, they run
            with open(path, "wb") as file:
                file.write(make(Writer()))
            model = tenon.onnx.load(path)
            model(*inputs_of(model))
        before, at_first, largest = state_of_the_package(), peak(), 0
        if runs:
            limited(512)
        for number in range(count):
            data = text_of(kind, random.Random(f"{kind} {seed} {number}"))
            largest = max(largest, len(data))
            with open(path, "r+b") as file:
                file.write(data)
                file.truncate()
            one(kind, number, path, data, counts, problems, runs)
        growth = peak() - at_first
        if not runs and growth > SLACK + 2 * largest:
            problems.append(f"{kind}: memory grew by {growth} bytes, for files of at most {largest}")
        after = state_of_the_package()
        problems += [f"{kind}: {'.'.join(key)} is another one after the loads" for key in before.keys() & after.keys() if before[key] != after[key]]
    return dict(counts, kind=kind, growth=growth, largest=largest)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["bytes", "fields"])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run", action="store_true", help="also run what loads")
    parser.add_argument("--only", type=int, help="one file: prints its bytes, loads and runs it")
    args = parser.parse_args()
    if args.only is not None:
        data = text_of(args.kind, random.Random(f"{args.kind} {args.seed} {args.only}"))
        print(data)
        model = tenon.onnx.load(data)
        print(model(*inputs_of(model)))
        return 0
    problems = []
    print(json.dumps(fuzz(args.kind, args.count, args.seed, problems, args.run)))
    print(*problems[:50], sep="\n", file=sys.stderr)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
