#!/usr/bin/env python3
"""Runs onnx's node tests with other attributes, inputs and versions: every node computes something or fails with an error of Tenon.

    python tests/onnx/altered_nodes.py --count 20000 --seed 1    prints a line of figures, as JSON
    python tests/onnx/altered_nodes.py --seed 1 --only 17        one of them: prints the node, its inputs and what comes of them

What counts as wrong: a signal, and an exception that does not name the node. A process may take a gigabyte more than it had, so
that what asks for more is refused at once. Loops are left out: they may go on for ever.
"""

import argparse
import collections
import json
import random
import resource
import sys
import warnings

import numpy as np

import tenon

warnings.simplefilter("ignore")
import onnx  # noqa: E402
from onnx.backend.test.loader import load_model_tests  # noqa: E402

DTYPES = ["float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"]
# Nothing from 2^9 to 2^39, which memory has room for.
INTEGERS = [0, 1, 2, 3, 4, 7, -1, -2, -3, 255, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63)]
NUMBERS = [0.0, -1.0, 1.0, 0.5, float("nan"), float("inf"), -float("inf"), 1e30, -1e-30]
TEXTS = ["", "constant", "reflect", "edge", "wrap", "linear", "nearest", "cubic", "SAME_UPPER", "VALID", "add", "mul", "none", "mean", "bidirectional",
         "reverse", "Tanh", "x"]  # fmt: skip


def cases():
    """(name, bytes of the model, inputs) of the tests whose inputs are small arrays of dtypes that Tenon has."""
    for case in load_model_tests(kind="node"):
        if "loop" in case.name or "_expanded" in case.name:
            continue
        inputs = case.data_sets[0][0]
        if all(isinstance(x, (np.ndarray, np.generic)) and x.dtype.name in DTYPES and x.size < 10000 for x in inputs):
            yield case.name, case.model.SerializeToString(), inputs


def alter_attribute(attribute, draw):
    kinds = onnx.AttributeProto
    if attribute.type == kinds.INT:
        attribute.i = draw.choice(INTEGERS)
    elif attribute.type == kinds.FLOAT:
        attribute.f = draw.choice(NUMBERS)
    elif attribute.type == kinds.STRING:
        attribute.s = draw.choice(TEXTS).encode()
    elif attribute.type in (kinds.INTS, kinds.FLOATS):
        values, others = (attribute.ints, INTEGERS) if attribute.type == kinds.INTS else (attribute.floats, NUMBERS)
        change = draw.randrange(3)
        if change == 0 and values:
            values[draw.randrange(len(values))] = draw.choice(others)
        elif change == 1 and values:
            del values[-1]
        else:
            values.append(draw.choice(others))


def altered_input(x, draw):
    x = np.array(x)
    change = draw.randrange(8)
    if change == 0:
        return x.astype(draw.choice(DTYPES))
    if change == 1:
        return x.reshape(-1)
    if change == 2 or x.ndim == 0:
        return x[None]
    if change == 3:
        return x[: draw.randrange(x.shape[0] + 1)]
    if change == 4:
        return x[..., :0]
    if change == 5 and len(x):
        return x[0]
    if x.size:
        values = INTEGERS if x.dtype.kind in "iu" else NUMBERS
        value = draw.choice(values)
        if x.dtype.kind in "iu":
            value = min(max(value, np.iinfo(x.dtype).min), np.iinfo(x.dtype).max)
        x.flat[draw.randrange(x.size)] = value
    return x


def made(case, draw):
    _, data, inputs = case
    model, inputs = onnx.ModelProto.FromString(data), list(inputs)
    for port in model.graph.input:  # of any dtype and shape
        port.type.tensor_type.elem_type = 0
        port.type.tensor_type.ClearField("shape")
    for _ in range(draw.choice([1, 1, 2, 3])):
        node, change = draw.choice(model.graph.node), draw.randrange(10)
        if change < 4 and node.attribute:
            alter_attribute(draw.choice(node.attribute), draw)
        elif change == 4 and node.attribute:
            del node.attribute[draw.randrange(len(node.attribute))]
        elif change == 5 and node.input:
            node.input[draw.randrange(len(node.input))] = draw.choice(["", node.input[0]])
        elif change == 6:
            model.opset_import[0].version = draw.randrange(7, 29)
        elif inputs:
            place = draw.randrange(len(inputs))
            inputs[place] = altered_input(inputs[place], draw)
    return model, inputs


def tensor(x):
    x = np.asarray(x)
    return tenon.tensor(x.item(), dtype=getattr(tenon, x.dtype.name)) if x.ndim == 0 else tenon.from_numpy(np.ascontiguousarray(x))


def one(model, inputs):
    """How it ends, and the text of an error that does not name the node."""
    try:
        loaded = tenon.onnx.load(model.SerializeToString())
    except (ValueError, NotImplementedError) as error:
        return "refused", None if str(error).startswith("onnx.load: ") else repr(error)
    try:
        loaded(*map(tensor, inputs))
        return "computed", None
    except MemoryError:
        return "failed", None
    except (ValueError, TypeError, IndexError, NotImplementedError, RuntimeError) as error:
        return "failed", None if "(onnx: " in str(error) or str(error).startswith("onnx.Model: ") else repr(error)
    except Exception as error:  # noqa: BLE001
        return "failed", repr(error)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    args = parser.parse_args()
    every = list(cases())
    with open("/proc/self/statm") as statm:
        now = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + (1 << 30), resource.RLIM_INFINITY))
    ends, problems = collections.Counter(), []
    for number in range(args.count) if args.only is None else [args.only]:
        draw = random.Random(f"{args.seed} {number}")
        case = draw.choice(every)
        model, inputs = made(case, draw)
        print(f"seed {args.seed}, number {number}: {case[0]}", file=sys.stderr, flush=True)  # the last line, where a signal ends it
        if args.only is not None:
            print(model.graph.node, model.opset_import, inputs)
        end, problem = one(model, inputs)
        ends[end] += 1
        if problem:
            problems.append(f"{number}: {case[0]}: {problem}"[:300])
    print(json.dumps({**ends, "problems": problems[:50]}))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
