"""Recorded calls whose results no one reads: an error of eager's still comes, whether it follows from shapes, dtypes or values.

Only operators with the trait `value_errors` run when their results are dead; the others must not be able to fail once their results'
headers are known.
"""

import numpy as np
import pytest

import tenon
from tenon.conformance.families import row_of
from tenon.conformance.library import TENON
from tenon.conformance.samples import Spec
from conformance.errors_test import FORMS, sample_of

#: Values of every tensor of that kind, one at a time: no positions, no weights, no probabilities.
SPOILT = {"i": (10**6, -(10**6)), "u": (255,), "f": (-1.5, float("nan"), float("inf")), "c": (float("nan"),)}


def spoilt(s):
    """Samples with one tensor's values replaced."""
    for wrong in s.specs():
        for value in SPOILT.get(wrong.flat.dtype.kind, ()) if wrong.flat.size else ():
            flat = np.full_like(wrong.flat, value) if wrong.dtype != "bool" else wrong.flat
            yield value, lambda spec, wrong=wrong, flat=flat: Spec(flat, *vars_of(spec)) if spec is wrong else spec


def vars_of(spec):
    return spec.dtype, spec.shape, spec.strides, spec.offset, spec.requires_grad


def outcome(run):
    try:
        with tenon.no_grad(), np.errstate(all="ignore"):
            run()
    except Exception as e:
        return type(e)


@pytest.mark.parametrize("name", FORMS)
def test_an_error_comes_though_no_one_reads_the_result(name):
    entry, op = FORMS[name]
    row = row_of(entry)
    function = row and TENON.function(op, row)
    if not function:
        return
    missed = []
    for dtype in ("float32", "int64", "complex64", "bool"):
        s = sample_of(op, row, dtype)
        for value, replace in spoilt(s) if s else ():
            bad = type(s)(*s.map(replace))

            def call():
                args, kwargs = TENON.arguments(bad)
                function(*args, **kwargs)

            def recorded():
                with tenon.recording(threshold=0):
                    call()

            wanted, got = outcome(call), outcome(recorded)
            if wanted is not got:
                missed.append(f"{dtype}, {value} in {bad}: eager {wanted}, recorded {got}")
    assert not missed
