"""Random numbers in compiled functions come from the stream that eager's come from, whatever becomes of the results."""

import pytest
from beside_eager import alike, same

import tenon
import tenon.nn.functional as F


@pytest.mark.parametrize("draw", [
    lambda x: F.dropout(x, 0.5), lambda x: F.dropout(x, 0.3, training=False), tenon.rand_like, tenon.randn_like,
    lambda x: tenon.randn(3, 4), lambda x: tenon.rand(7, dtype=tenon.float64), lambda x: tenon.randperm(9),
    lambda x: tenon.randint(0, 10, (5,)), lambda x: x.clone().uniform_(-1, 1), lambda x: x.clone().normal_(1, 2),
    lambda x: x.abs().clamp(0, 1).bernoulli(), lambda x: x.clone().bernoulli_(0.3), lambda x: x.clone().exponential_(),
    lambda x: tenon.multinomial(x.abs() + 0.1, 3), lambda x: x.clone().random_(0, 9), lambda x: tenon.normal(x, 1.0),
    lambda x: F.dropout2d(x[None, None], 0.5), lambda x: F.gumbel_softmax(x) if hasattr(F, "gumbel_softmax") else x,
    lambda x: F.rrelu(x, training=True) if hasattr(F, "rrelu") else x,
])  # fmt: skip
def test_draws(draw):
    def f(x):
        a = draw(x + 1)
        b = draw(x)
        x.mul_(2)
        return a, b, draw(x) + 0

    same(f, tenon.linspace(-2, 2, 12).reshape(3, 4))


def test_a_result_that_nobody_reads_still_advances_the_stream():
    def f(x):
        F.dropout(x, 0.5)
        tenon.randn(100)
        lost = tenon.rand(5) * 2  # noqa: F841
        return tenon.rand(3)

    same(f, tenon.ones(10))


def test_calls_after_each_other_draw_other_numbers():
    def program(c):
        f = c(lambda x: F.dropout(x * 2, 0.5) + tenon.randn(4))
        return [f(tenon.ones(4)) for _ in range(5)], tenon.rand(2)

    seen = alike(program)["result"][1]
    assert len({call["bits"] for call in seen[1:]}) == 5


def test_seeding_and_states_in_the_middle():
    def f(x):
        a = tenon.rand(3)
        tenon.manual_seed(5)
        b = tenon.rand(3) * x
        state = tenon.get_rng_state()
        c = tenon.randn(3)
        tenon.set_rng_state(state)
        d = tenon.randn(3)
        return a, b, c, d, tenon.initial_seed(), state

    same(f, tenon.ones(3))


def test_a_generator_of_ones_own():
    def program(c):
        g = tenon.Generator().manual_seed(3)

        def f(x):
            a = tenon.rand(3, generator=g)
            x.normal_(generator=g)
            state = g.get_state()
            b = tenon.randperm(5, generator=g)
            g.set_state(state)
            return a, b, x, tenon.randperm(5, generator=g), tenon.rand(2)

        h = c(f)
        return h(tenon.ones(3)), h(tenon.ones(3)), g

    alike(program)


def test_dropout_in_a_backward_pass():
    def f(x):
        y = F.dropout(x.sin(), 0.5)
        y.sum().backward()
        return y, x.grad

    same(f, tenon.linspace(-1, 1, 40).requires_grad_())


def test_an_exception_after_a_draw_leaves_the_stream_as_eager():
    def f(x):
        tenon.rand(3)
        x.uniform_()
        raise ValueError

    same(f, tenon.ones(5))


def test_loops_that_sample():
    def f(logits):
        tokens = []
        for _ in range(6):
            token = tenon.multinomial(logits.softmax(-1), 1)
            tokens.append(token.item())
            logits = logits.roll(tokens[-1], -1) * 0.9
        return tokens, logits

    same(f, tenon.linspace(-1, 2, 7))
