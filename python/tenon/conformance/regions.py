"""Programs of several operators, which only plans of graphs make: with several outputs, and with many operands.

They are made of operators that devices seldom have kernels of their own for, as those are called by themselves.
"""

from functools import partial

import tenon

from .device_bench import NotOffered

#: How many operands the programs have, outputs among them: what tables of a fixed size hold, and one more; 64 at most.
OPERANDS = (8, 9, 10, 16, 17, 32, 33, 63, 64)
SHAPE = (5, 7)
#: What outputs have before.
BEFORE = -77.0


def built(b, compose):
    """The plan of a graph whose outputs `compose(g)` returns, as one program where the device takes it."""
    if not b.properties.pointwise:
        raise NotOffered("its table has no pointwise")
    g = tenon.pygraph(handle=tenon.create_handle(b.device), io_data_type=tenon.float32)
    outputs = compose(g)
    for i, y in enumerate(outputs):
        y.set_uid(1000 + i).set_output(True)
    g.validate()
    g.build_operation_graph()
    g.create_execution_plan("fused")
    g.check_support()
    g.build_plans()
    return g, len(outputs)


def run(b, plan, inputs):
    """The outputs, on the host."""
    g, count = plan
    there = [x.to(b.device) for x in inputs]
    outs = [tenon.full(SHAPE, BEFORE, device=b.device) for _ in range(count)]
    room = tenon.empty([max(g.get_workspace_size(), 64)], dtype=tenon.uint8, device=b.device)
    g.execute({**dict(enumerate(there, 1)), **{1000 + i: y for i, y in enumerate(outs)}}, room)
    b.module.synchronize(b.device)
    return [y.cpu() for y in outs]


def numbers(seed, shape=SHAPE):
    """Small whole numbers, whose sums are exact."""
    generator = tenon.Generator().manual_seed(seed)
    return tenon.randint(-9, 10, shape, generator=generator).to(tenon.float32)


def check_outputs(got, want, what):
    for i, (g, w) in enumerate(zip(got, want)):
        if not g.equal(w):
            untouched = bool((g == BEFORE).all())
            said = "is not written" if untouched else f"is {g.reshape(-1)[:4].tolist()}..., expected {w.reshape(-1)[:4].tolist()}..."
            raise AssertionError(f"pointwise: of {what}, output {i} {said}")


def two_outputs(b):
    """Two outputs; one is an input of the other."""

    def compose(g):
        x, y = g.tensor(dim=list(SHAPE), uid=1), g.tensor(dim=list(SHAPE), uid=2)
        product = g.mul(x, y)
        return product, g.sub(g.relu(product), 3.0)

    x, y = numbers(1), numbers(2)
    check_outputs(run(b, built(b, compose), [x, y]), [x * y, (x * y).clamp(min=0) - 3], "a program with two outputs, x * y and relu(x * y) - 3")


def operands(b, count):
    """Input 0 less k + 1 times each input k after it."""
    inputs = count - 1

    def compose(g):
        xs = [g.tensor(dim=list(SHAPE), uid=k + 1) for k in range(inputs)]
        total = xs[0]
        for k in range(1, inputs):
            total = g.sub(total, g.mul(xs[k], float(k + 1)))
        return (total,)

    plan, xs = built(b, compose), [numbers(k) for k in range(inputs)]
    weights = [1.0, *(-float(k + 1) for k in range(1, inputs))]
    got, want = run(b, plan, xs), sum(x * w for x, w in zip(xs, weights))
    if got[0].equal(want):
        return
    none = [tenon.zeros(SHAPE) for _ in xs]
    what = f"a program of {count} operands"
    check_outputs([run(b, plan, none)[0]], [none[0]], f"{what} that are 0")
    for k in range(inputs):
        alone = run(b, plan, [*none[:k], tenon.ones(SHAPE), *none[k + 1 :]])[0].reshape(-1)[0].item()
        assert alone == weights[k], f"pointwise: of {what}, input {k} of {inputs} counts {alone}, expected {weights[k]}"
    check_outputs(got, [want], what)


CHECKS = (two_outputs, *[partial(operands, count=n) for n in OPERANDS])
