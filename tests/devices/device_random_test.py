"""S33: one stream of random numbers serves all devices: every random operator gives the same numbers everywhere, of any
strides, and leaves the generator at the same place."""

import pytest

import tenon
from tenon.conformance import check, table
from tenon.conformance.comparison import Call
from tenon.conformance.cells import forms_of
from tenon.conformance.families import row_of
from tenon.conformance.samples import Spec

KINDS = ("plain", "transposed", "negative", "sliced", "channels_last", "empty", "zero_dim")
# But for those that throw whatever they are given.
RANDOM = {op.full_name: (op, row_of(entry)) for entry in table.entries().values() if entry.main.family == "random"
          for op in forms_of(entry, row_of(entry)) if not row_of(entry).absent.keys() >= set(KINDS)}  # fmt: skip


@pytest.fixture(params=["openreg:0", "openreg:1", "lazyreg:0", "opencl:0"])
def place(request):
    request.getfixturevalue(request.param.partition(":")[0])
    return request.param


def state():
    return tenon.default_generator.get_state().tolist()


@pytest.mark.parametrize("name", RANDOM)
def test_s33_the_same_numbers_everywhere(name, place):
    op, row = RANDOM[name]
    tried = 0
    for dtype in ("float32", "bfloat16", "int64", "complex64"):
        for kind in KINDS:
            for s in check.samples_of(op, row, dtype, kind)[:2]:
                if op.form == "inplace" and not isinstance(s.args[0], Spec):
                    continue
                call = Call(op, row, s, "sliced" if op.form == "out" else None)
                if not call.fits:
                    continue
                here = state()
                found = call.compare(*call.on(place))
                assert found is None, f"{dtype} {kind} {s}: {found}"
                assert state() == here, "the generator is elsewhere than after the CPU's call"
                tried += not call.refused
    assert tried


def test_there_are_random_operators():
    assert {"rand", "randn", "randint", "randperm", "bernoulli", "multinomial", "normal_", "uniform_", "dropout"} <= set(RANDOM)


def test_s33_the_state_goes_round(place):
    module = tenon.devices.module_if_there(place.partition(":")[0])
    module.manual_seed(5)
    tenon.rand(3, device=place)
    kept = module.get_rng_state()
    first = tenon.randn(4, 5, device=place)
    module.set_rng_state(kept)
    assert tenon.randn(4, 5).equal(first.cpu())
    module.set_rng_state(kept)
    assert tenon.randn(5, 4, device=place).t().cpu().shape == (4, 5)
    generator = tenon.Generator().manual_seed(9)
    drawn = tenon.rand(6, generator=generator, device=place)
    assert drawn.cpu().equal(tenon.rand(6, generator=tenon.Generator().manual_seed(9)))
    tenon.manual_seed(5)
    dropped = tenon.nn.functional.dropout(tenon.ones(50, device=place), 0.5, training=True)
    tenon.manual_seed(5)
    assert dropped.cpu().equal(tenon.nn.functional.dropout(tenon.ones(50), 0.5, training=True))
