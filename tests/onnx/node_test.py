"""The node tests of the package onnx: every operator of the standard, with inputs and outputs that its authors wrote down.

What does not pass is listed here by reason.
"""

import re
import warnings

import numpy as np
import pytest
import tenon

onnx = pytest.importorskip("onnx")
from onnx.backend.test.loader import load_model_tests  # noqa: E402

# Reasons, and what a model that is refused for it lacks: names as `tenon onnx` prints them.
MISSING = {
    "a type that Tenon does not have": r".* is of (u?int[24]|float8\w+|float4e2m1), which Tenon does not have",
    "strings": r"(.* is of string, .*|String\w+|RegexFullMatch|TfIdfVectorizer|ai\.onnx\.ml:LabelEncoder|ai\.onnx\.ml:\w+) ?.*",
    "images in files": r"ImageDecoder .*",
    "a preview of operators to come": r"ai\.onnx\.preview(\.training)?:\w+ .*",
    "determinants come with linear algebra": r"Det .*",
}
# Tests by name that are refused, or compute something else, and why.
DIFFERENT = {
    **dict.fromkeys([f"test_bernoulli{kind}{end}" for kind in ("", "_double", "_seed") for end in ("", "_expanded")], "a stream of Tenon's own"),
    **dict.fromkeys([f"test_training_dropout{kind}" for kind in ("", "_default", "_mask", "_default_mask")], "a stream of Tenon's own"),
    # The last element of the result is the last one of the input, as the text says and ONNX Runtime has it.
    **dict.fromkeys([f"test_resize_downsample_scales_{kind}_align_corners" for kind in ("linear", "cubic")], "the aligned corners"),
}  # fmt: skip
# Half types round between operators that the reference computes in one go: two units in the last place.
LAST_PLACE = {"float16": 2.0**-9, "bfloat16": 2.0**-6}


@pytest.fixture(scope="module")
def cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package computes infinities on purpose
        return load_model_tests(kind="node")


def tensor_of(value):
    if value is None:
        return None
    if isinstance(value, list):
        return [tensor_of(one) for one in value]
    array = onnx.numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
    if array.dtype.name == "bfloat16":
        return tenon.tensor(array.astype(np.float32)).to(tenon.bfloat16)
    return tenon.tensor(array)


def check(got, wanted, case):
    if isinstance(wanted, list):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted):
            check(one, other, case)
        return
    if wanted is None:
        assert got is None
        return
    wanted = onnx.numpy_helper.to_array(wanted) if isinstance(wanted, onnx.TensorProto) else np.asarray(wanted)
    kind = wanted.dtype.name
    assert str(got.dtype).rpartition(".")[2] == kind
    assert tuple(got.shape) == wanted.shape
    if kind == "bfloat16":
        got, wanted = got.float(), wanted.astype(np.float32)
    # What cancels to 0 is rounded otherwise by the reference.
    atol = 1e-6 if "dft" in case.name else case.atol
    np.testing.assert_allclose(got.detach().numpy(), wanted, rtol=max(case.rtol, LAST_PLACE.get(kind, 0)), atol=atol)


def reason_of(message):
    """Why a model is refused, if that is known: the first reason that fits one of the lines."""
    lines = message.split("\n  ")[1:]
    for reason, pattern in MISSING.items():
        if any(re.fullmatch(pattern, line) for line in lines):
            return reason
    return None


def run(case):
    model = tenon.onnx.load(case.model.SerializeToString())
    for inputs, outputs in case.data_sets:
        got = model(*map(tensor_of, inputs))
        got = got if len(model.outputs) > 1 else (got,)
        assert len(got) == len(outputs)
        for one, wanted in zip(got, outputs):
            check(one, wanted, case)


def failure_of(case):
    """What is wrong with a case that is not listed; None if nothing is."""
    try:
        run(case)
    except NotImplementedError as e:
        return None if reason_of(str(e)) or case.name in DIFFERENT else str(e)
    except (AssertionError, ValueError, TypeError, IndexError, RuntimeError) as e:
        return None if case.name in DIFFERENT else " ".join(f"{type(e).__name__}: {e}".split())[:300]
    return None


def test_nodes_compute_what_the_standard_says(cases):
    failures = {case.name: failure for case in cases if (failure := failure_of(case))}
    assert not failures, "\n".join(f"{name}: {failure}" for name, failure in failures.items())


def test_so_many_nodes_pass(cases):
    refused = sum(bool(tenon.onnx.contents(case.model.SerializeToString()).missing) for case in cases)
    assert len(cases) - refused - len(DIFFERENT) >= 1450
