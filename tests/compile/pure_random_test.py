"""compile(pure=True): random programs, each replayed several times on other elements, give what the same lines give eager."""

import random

import pytest
from beside_eager import bits

import tenon
import tenon.nn.functional as F

COUNT, PARTS, CALLS = 400, 8, 5
SIDES = [(3, 4), (1, 6), (33, 20), (32, 32), (64, 130), (0, 3), (300, 70)]
DTYPES = [tenon.float32] * 4 + [tenon.float64, tenon.bfloat16, tenon.int64, tenon.bool]
STEPS = [
    "{x}.exp()", "{x}.tanh()", "{x}.relu()", "{x}.neg()", "{x}.sqrt()", "{x}.square()", "F.silu({x})", "F.gelu({x})", "{x}.isnan()",
    "{x} + {y}", "{x} * {y}", "{x} - {y}", "{x} / {y}", "{x}.maximum({y})", "{x} > {y}", "tenon.where({x} > {y}, {x}, {y})",
    "{x} * {number}", "{number} - {x}", "{x}.sum({d})", "{x}.sum({d}, keepdim=True)", "{x}.amax({d})", "{x}.mean()",
    "{x}.softmax({d})", "{x}.log_softmax({d})", "{x}.cumsum({d})", "{x}.argmax({d})", "{x}.sort({d})[0]", "{x}.sort({d})[1]",
    "{x} @ {y}", "{x} @ {y}.t()", "F.linear({x}, {y})", "tenon.addmm({x}, {x}, {y}.t())", "F.silu({x} @ {y}.t() + {z})",
    "tenon.cat([{x}, {y}])", "tenon.stack([{x}, {y}, {z}])", "{x}.t()", "{x}[1:]", "{x}[..., ::2]", "{x}.flatten()", "{x}.clone()",
    "{x}.to({dtype})", "{x}.gather(0, {x}.argmax(0, keepdim=True))", "{x}.index_select(0, {x}.argmax(0).flatten())",
    "{x}.add_({y})", "{x}.mul_({number})", "{x}[0].copy_({y}[-1])", "{x}.clamp_(-0.5, 0.5)", "{x}.fill_({number})",
    "tenon.rand_like({x})", "F.dropout({x}, 0.3)",
]  # fmt: skip


def values(draw, sides):
    shape = draw.choice([sides] * 5 + [sides[1:], (sides[0], 1), ()])
    count = 1
    for side in shape:
        count *= side
    x = ((tenon.arange(count) * draw.randrange(1, 1000)) % 37 - draw.randrange(37)) / draw.choice([1, 7, 3.7])
    return x.reshape(shape).to(draw.choice(DTYPES))


def program(seed):
    """A function of three tensors that returns all that it makes, and calls with other elements in the same places."""
    draw = random.Random(seed)
    sides = draw.choice(SIDES)
    arguments = [values(draw, sides) for _ in range(3)]
    scope = {"tenon": tenon, "F": F, **{f"v{i}": t.clone() for i, t in enumerate(arguments)}}
    lines, known = ["def program(v0, v1, v2):"], 3
    for _ in range(60):
        x, y, z = (f"v{draw.randrange(known)}" for _ in range(3))
        step = draw.choice(STEPS).format(
            x=x, y=y, z=z, number=draw.choice([2, 0.5, -1]), d=draw.choice([0, -1]), dtype=draw.choice(DTYPES)
        )
        try:
            exec(f"v{known} = {step}", scope)
        except (RuntimeError, ValueError, TypeError, IndexError):
            continue
        lines.append(f"    v{known} = {step}")
        known += 1
        if known > 16:
            break
    returned = [f"v{i}" for i in range(known) if i < 3 or draw.randrange(3)]
    exec("\n".join([*lines, f"    return [{', '.join(returned)}]"]), scope)
    return scope["program"], [[t if t.dtype == tenon.bool else t + call for t in arguments] for call in range(CALLS)]


def seen(tensors):
    """All that can be seen of each tensor, but for the signs of NaN; storages by the number of the first tensor over it."""
    storages = [t.untyped_storage().data_ptr() for t in tensors]
    return [
        (t.dtype, t.shape, t.stride(), t.storage_offset(), t._version, storages.index(at))
        + (bits(tenon.where(t.isnan(), 0, t)), bits(t.isnan()))
        for t, at in zip(tensors, storages)
    ]


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.filterwarnings("ignore:compile.pure=True")
def test_random_programs_are_replayed(part):
    replayed = 0
    for seed in range(part * COUNT // PARTS, (part + 1) * COUNT // PARTS):
        run, calls = program(seed)
        results = []
        for f in (run, tenon.compile(run, pure=True)):
            tenon.manual_seed(seed)
            returned = [f(*[t.clone() for t in arguments]) for arguments in calls]
            results.append([seen(tensors) for tensors in returned])  # now: a later call must not write what an earlier one returned
        for call, (eager, got) in enumerate(zip(*results)):
            different = [i for i, (a, b) in enumerate(zip(eager, got)) if a != b]
            assert not different, f"seed {seed}, call {call}: results {different} differ"
        replayed += f.explain().of("replays")[0]["runs"]
    assert replayed > COUNT // PARTS * 2
