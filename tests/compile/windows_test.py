"""Windows of one tensor: batches are alike wherever they begin, and views of the same memory stay apart as they are."""

import pytest
from beside_eager import alike, plans_of, same

import tenon


def table(rows=40, columns=12):
    return tenon.arange(rows * columns).reshape(rows, columns) % 37 / 7 - 2


def test_batches_of_one_tensor_have_one_plan():
    x, labels = table(), tenon.arange(40) % 4
    f = tenon.compile(lambda a, b: ((a * 2 + 1).relu() @ a.t()).sum(1) * b, threshold=0)
    calls = [(x[i : i + 8], labels[i : i + 8]) for i in range(0, 40, 8)]
    assert plans_of(f, *calls) == [1, 0, 0, 0, 0]
    for a, b in calls:
        assert f(a, b).tolist() == f.__wrapped__(a, b).tolist()


def test_batches_of_odd_sizes_have_few():
    """Their first elements lie at four places within 16 bytes."""
    x = table(99, 5)
    f = tenon.compile(lambda a: a.exp() * 2, threshold=0)
    assert sum(plans_of(f, *[(x[i : i + 7],) for i in range(0, 98, 7)])) <= 4


@pytest.mark.parametrize("begin", range(0, 30, 5))
def test_a_window_and_its_neighbours(begin):
    """Before the first one that is used and behind it, overlapping, turned around and of another step."""

    def f(x):
        a = x[begin + 2 : begin + 6]
        b = a * 2
        before, behind = x[begin : begin + 4], x[begin + 4 : begin + 8]
        c = before + behind + b
        last = x[begin + 7].flip(0) * x[begin : begin + 8 : 2]
        return b, c, last, x.flip(0)[begin + 3] + a

    same(f, table())


def test_windows_are_written():
    def program(c):
        x = table()

        @c
        def f(begin):
            part = x[begin : begin + 4]
            total = part.sum(0)
            x[begin + 1 : begin + 5].mul_(0.5)
            part.add_(1)
            x[begin : begin + 2, ::2] = total[::2]
            return total, part * 1

        return [f(i) for i in (10, 0, 20, 35, 10)], x

    alike(program)


def test_a_plan_serves_windows_that_lie_as_the_first_did():
    x = table()

    def f(first, second):
        first.add_(1)
        second.mul_(2)
        return first + second

    def pairs(x):
        return [(x[0:4], x[2:6]), (x[10:14], x[12:16]), (x[12:16], x[10:14]), (x[20:24], x[30:34])]

    made = plans_of(tenon.compile(f, threshold=0), *pairs(x.clone()))
    assert made == [1, 0, 1, 1]  # another distance is another program
    alike(lambda c: [c(f)(*pair) for pair in pairs(table())])
    eager, compiled = table(), table()
    g = tenon.compile(f, threshold=0)
    for ours, theirs in zip(pairs(compiled), pairs(eager)):
        assert g(*ours).tolist() == f(*theirs).tolist()
    assert compiled.tolist() == eager.tolist()


def test_windows_of_other_dtypes_over_the_same_bytes():
    def f(x, begin):
        half = x[begin:].view(tenon.float16)[1:9]
        whole = x[begin - 1 : begin + 3]
        double = x[begin // 4 * 4 :].view(tenon.float64)[:2]
        return half * 2, whole + 1, double * 0 + 1, half.float() + 1

    for begin in (1, 5, 6, 8, 13):
        same(f, table().flatten()[:64].clone(), begin)


def test_a_call_that_runs_at_once_does_not_shift_what_follows():
    """It counts where its operand begins, and is no part of the path."""

    def f(x, begin, ask):
        if ask:
            x[begin + 3 :].nonzero()
        return x[begin : begin + 2] * 2 + x[begin + 1 : begin + 3]

    def program(c):
        g = c(f)
        return [g(table(), begin, ask) for begin, ask in [(0, False), (4, True), (8, False), (3, True), (2, True)]]

    alike(program)
