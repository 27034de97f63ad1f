"""What the tests of compile(pure=True) share: programs that change something between calls, beside the same lines eager."""

import functools

from beside_eager import difference, outcome, plain

import tenon


class Cases(dict):
    """Decorates programs, and has them by name: `program(c)` compiles by `c`, calls, changes something, calls again, and
    returns all that can be seen."""

    def __call__(self, program):
        self[program.__name__] = program
        return program


def x():
    return tenon.ones(2)


def warm(f, *args):
    return [f(x(), *args) for _ in range(5)]


def alike(program):
    expected = outcome(lambda: program(plain))
    found = difference(expected, outcome(lambda: program(functools.partial(tenon.compile, pure=True))))
    assert expected["raised"] is None and found is None, found
