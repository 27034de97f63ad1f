"""compile(pure=True): random sessions, in which all that the promise names may change between calls of a training step, give what eager
gives: arguments and where they begin, modules, parameters, optimizers, captured tensors, gradients, modes, the seed."""

import functools
import random

import pytest
from beside_eager import bits

import tenon
from tenon import nn

CALLS, SESSIONS, PARTS = 40, 64, 8
OPTIMIZERS = {
    "SGD": lambda p: tenon.optim.SGD(p, lr=0.01, momentum=0.9),
    "Adam": lambda p: tenon.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: tenon.optim.AdamW(p, lr=0.01),
}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.drop = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.3)
        self.parts, self.more = nn.ModuleList([nn.Linear(4, 4)]), [nn.Linear(4, 4)]
        self.scale, self.options = 1.0, {"scale": 2.0}

    def forward(self, x):
        y = self.norm(self.first(x)).relu() * self.scale * self.options["scale"]
        for part in self.parts:
            y = part(y)
        return self.drop(sum((part(x) for part in self.more), y))


def decay(s):
    with tenon.no_grad():
        s.weight.mul_(0.9)


def freeze(s):
    s.net.first.weight.requires_grad_(not s.net.first.weight.requires_grad)


def halve_rate(s):
    s.optimizer.param_groups[0]["lr"] *= 0.5


CHANGES = [
    lambda s: s.net.eval(), lambda s: s.net.train(), lambda s: setattr(s.net, "scale", s.draw.choice([1.0, 0.5])),
    lambda s: s.net.options.update(scale=s.draw.choice([1.0, 2.0])), lambda s: s.net.more.__setitem__(0, nn.Linear(4, 4)),
    lambda s: s.net.parts.append(nn.Linear(4, 4)), decay, freeze, halve_rate, halve_rate,
    lambda s: setattr(s.net.drop, "p", s.draw.choice([0.1, 0.3])), lambda s: setattr(s.net.norm, "momentum", s.draw.choice([0.1, 0.2])),
    lambda s: s.net.load_state_dict({k: v.clone() for k, v in s.net.state_dict().items()}),
    lambda s: s.optimizer.load_state_dict(s.optimizer.state_dict()),
    lambda s: s.optimizer.param_groups[0].update(weight_decay=s.draw.choice([0, 0.1])),
    lambda s: setattr(s.net.first.weight, "data", s.net.first.weight.data.clone()), lambda s: setattr(s.bias, "grad", None),
    lambda s: setattr(s.bias, "grad", tenon.ones(4)), lambda s: tenon.manual_seed(s.draw.randrange(9)),
    lambda s: s.net.first.register_forward_hook(lambda module, args, y: y * 0.5),
]  # fmt: skip


class Session:
    def __init__(self, seed):
        self.draw = random.Random(seed)
        tenon.manual_seed(seed)
        self.net, self.weight, self.bias = Net(), tenon.ones(4), tenon.zeros(4, requires_grad=True)
        self.optimizer = OPTIMIZERS[self.draw.choice([*OPTIMIZERS])]([*self.net.parameters(), self.bias])
        self.cleared = self.draw.choice(["before", "after"])

    def run(self, compile):
        net, optimizer, weight, bias, cleared = self.net, self.optimizer, self.weight, self.bias, self.cleared

        @compile
        def step(x, scale, squared):
            if cleared == "before":
                optimizer.zero_grad()
            y = net(x * weight) * scale + bias
            loss = (y.square() if squared else y).square().mean()
            loss.backward()
            optimizer.step()
            if cleared == "after":
                optimizer.zero_grad()
            return loss

        data, seen = tenon.randn(64, 4), []
        for _ in range(CALLS):
            if self.draw.random() < 0.4:
                self.draw.choice(CHANGES)(self)
            rows = self.draw.choice([8, 8, 8, 4])
            first = self.draw.randrange(8) * rows if self.draw.random() < 0.7 else self.draw.randrange(64 - rows)
            x = data[first : first + rows]
            seen.append(bits(step(x, self.draw.choice([1.0, 1.0, 1.0, 2.0]), self.draw.random() < 0.1)))
        tensors = [*net.parameters(), *net.buffers(), bias, weight]
        return step, [*seen, *map(bits, tensors), *(bits(t.grad) for t in tensors if t.grad is not None)]


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.filterwarnings("ignore:compile.pure=True")
def test_random_sessions(part):
    replayed = 0
    for seed in range(part * SESSIONS // PARTS, (part + 1) * SESSIONS // PARTS):
        _, expected = Session(seed).run(lambda step: step)
        compiled, found = Session(seed).run(functools.partial(tenon.compile, pure=True))
        different = [i for i, (a, b) in enumerate(zip(expected, found, strict=True)) if a != b]
        assert not different, f"seed {seed}: values {different[:5]} differ"
        replayed += compiled.explain().of("replays")[0]["runs"]
    assert replayed > 5 * SESSIONS // PARTS
