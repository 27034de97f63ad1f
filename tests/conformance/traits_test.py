"""Traits of operators that change what runs: `writes_only`, `equals`. Each entry of the YAML files that has one is tested here, called at once
and recorded, where the trait decides what is computed."""

import pathlib
import re

import numpy as np
import pytest

import tenon
from tenon import ops

YAML = pathlib.Path(__file__).resolve().parents[2] / "tenon" / "ops" / "yaml"
DTYPES = [tenon.float32, tenon.float64, tenon.float16, tenon.int64, tenon.uint8, tenon.bool, tenon.complex64]


def entries_with(trait):
    found = set()
    for file in YAML.glob("*.yaml"):
        for entry in re.split(r"^- ", file.read_text(), flags=re.M):
            name = re.match(r"schema: ([\w.]+)\(", entry)
            if name and re.search(rf"^  traits: \{{.*\b{trait}:", entry, re.M):
                found.add(name[1])
    return found


def overload(name):
    base, _, form = name.partition(".")
    return getattr(getattr(ops.aten, base), form or "default")


def bits(t):
    return np.ascontiguousarray(t.detach().numpy()).tobytes()


#: What each operator takes behind the tensor that it writes.
WRITES_ONLY = {
    "copy_": lambda t: (tenon.arange(12).view(3, 4) % 5,),
    "fill_.Scalar": lambda t: (3,),
    "fill_.Tensor": lambda t: (tenon.tensor(3),),
    "zero_": lambda t: (),
    "_philox_bernoulli_.Tensor": lambda t: (tenon.full((3, 4), 0.5), 7, 11),
    "_philox_bernoulli_.float": lambda t: (0.5, 7, 11),
    "_philox_normal_": lambda t: (0.0, 1.0, 7, 11),
    "_philox_randint_": lambda t: (0, 100, 7, 11),
    "_philox_randperm_": lambda t: (7, 11),
    "_philox_uniform_": lambda t: (0.0, 1.0, 7, 11),
}


@pytest.mark.parametrize("name", sorted(entries_with("writes_only")))
@pytest.mark.parametrize("transposed", [False, True])
def test_what_was_there_before_changes_nothing(name, transposed):
    op, arguments = overload(name), WRITES_ONLY[name]

    def written(old, recorded):
        shape = (12,) if "randperm" in name else (4, 3) if transposed else (3, 4)
        t = tenon.full(shape, old, dtype=tenon.int64 if "randperm" in name else tenon.float32)
        t = t.t() if transposed and t.dim() == 2 else t
        if recorded:
            with tenon.recording(threshold=0):
                op(t, *arguments(t))
        else:
            op(t, *arguments(t))
        return bits(t)

    olds = (0, 1, -(1 << 40)) if "randperm" in name else (0.0, 1.0, float("nan"), float("inf"))
    assert len({written(old, recorded) for old in olds for recorded in (False, True)}) == 1


def sample(dtype):
    flat = np.array([0.0, 1.0, 2.0, 3.0, 250.0, 7.5, 0.25, 100.0, 9.0, 10.0, 11.0, 12.0])
    return tenon.tensor(flat).view(3, 4).to(dtype)


def cast(x, to):
    return x.numpy().astype(numpy_name(to))


def numpy_name(dtype):
    return str(dtype).removeprefix("tenon.")


#: {name: (what it is called with, what each element of the result is as NumPy has it)}
EQUALS = {
    "_to_copy": lambda x, to: ([x], {"dtype": to}, cast(x, to)),
    "clone": lambda x, to: ([x], {}, x.numpy()),
    "copy_": lambda x, to: ([tenon.zeros(3, 4, dtype=to), x], {}, cast(x, to)),
    "fill.Scalar": lambda x, to: ([x, 1], {}, np.ones_like(x.numpy())),
    "fill_.Scalar": lambda x, to: ([x.clone(), 1], {}, np.ones_like(x.numpy())),
    "full": lambda x, to: ([[3, 4], 1], {"dtype": to}, np.ones((3, 4), numpy_name(to))),
    "full_like": lambda x, to: ([x, 1], {"dtype": to}, np.ones((3, 4), numpy_name(to))),
    "new_full": lambda x, to: ([x, [3, 4], 1], {"dtype": to}, np.ones((3, 4), numpy_name(to))),
    "zero_": lambda x, to: ([x.clone()], {}, np.zeros_like(x.numpy())),
    "zeros": lambda x, to: ([[3, 4]], {"dtype": to}, np.zeros_like(cast(x, to))),
    "zeros_like": lambda x, to: ([x], {}, np.zeros_like(x.numpy())),
    "new_zeros": lambda x, to: ([x, [3, 4]], {}, np.zeros_like(x.numpy())),
    "ones": lambda x, to: ([[3, 4]], {"dtype": to}, np.ones_like(cast(x, to))),
    "ones_like": lambda x, to: ([x], {}, np.ones_like(x.numpy())),
    "new_ones": lambda x, to: ([x, [3, 4]], {}, np.ones_like(x.numpy())),
}


@pytest.mark.parametrize("name", sorted(entries_with("equals")))
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_element_equals_what_the_trait_says(name, dtype):
    op = overload(name)
    for to in DTYPES:
        if dtype.is_complex and not to.is_complex:
            continue  # which warns
        for x in (sample(dtype), sample(dtype).t().contiguous().t(), sample(dtype).flip(0)):
            if to is tenon.uint8 and dtype.is_floating_point:
                x = x.clamp(0, 200) if not dtype.is_complex else x
            for recorded in (False, True):
                args, kwargs, wanted = EQUALS[name](x, to)
                if recorded:
                    # A region of two calls, which computes what the trait says.
                    with tenon.recording(threshold=0):
                        got = op(*args, **kwargs)
                        got = got if got.dtype == tenon.bool else got * 1
                else:
                    got = op(*args, **kwargs)
                np.testing.assert_array_equal(got.numpy(), wanted)
