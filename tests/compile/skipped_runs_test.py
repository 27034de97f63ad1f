"""Runs that are not recorded, because runs before them that were given as much have joined no calls."""

import numpy as np

import tenon


def skipped(f):
    return sum(event["count"] for event in f.explain().of("skipped"))


def chain(x):
    return (x * 2.0 + 1.0).tanh() * x


def test_small_programs_run_as_they_are():
    f = tenon.compile(chain)
    x = tenon.randn(4, 4)
    wanted = np.tanh(x.numpy().astype(np.float64) * 2 + 1) * x.numpy()
    for _ in range(10):
        np.testing.assert_allclose(f(x).numpy(), wanted, rtol=1e-5)
    assert skipped(f) == 8
    assert "not recorded 8 times" in str(f.explain())


def test_runs_that_never_join_calls_are_recorded_less_and_less_often():
    f = tenon.compile(chain)
    x = tenon.randn(4)
    for _ in range(1000):
        f(x)
    assert skipped(f) == 1000 - 9


def test_a_larger_argument_is_recorded_at_once():
    f = tenon.compile(chain)
    small, large = tenon.randn(4), tenon.randn(1 << 17)
    for _ in range(5):
        f(small)
    assert f.explain().planned == 0 and skipped(f) == 3
    assert f(large).equal(chain(large)) and f.explain().planned == 1
    f(small)
    assert skipped(f) == 3, "what was known of small arguments is to be found again"
    for _ in range(5):
        assert f(large).equal(chain(large))
    assert f.explain().segments[0]["runs"] == 6


def test_what_is_not_given_as_an_argument_may_grow():
    captured = tenon.randn(4)
    f = tenon.compile(lambda: chain(captured))
    for _ in range(5):
        f()
    captured = tenon.randn(1 << 17)
    for _ in range(40):
        assert f().equal(chain(captured))
    assert f.explain().segments[0]["runs"] > 5


def test_containers_numbers_and_thresholds():
    of_list = tenon.compile(lambda xs: chain(xs[0]))
    at_once = tenon.compile(chain, threshold=0)
    sized = tenon.compile(lambda n: tenon.ones(n) * 2.0 + 1.0)
    for _ in range(5):
        of_list([tenon.randn(4)]), at_once(tenon.randn(4)), sized(3)
    assert skipped(of_list) == skipped(at_once) == 0 and skipped(sized) == 3
    sized(1 << 17)
    assert sized.explain().planned == 1


def test_a_scope_inside_is_part_of_the_run():
    def program(x):
        with tenon.recording(threshold=0):
            return chain(x)

    f = tenon.compile(program)
    x = tenon.randn(8)
    for _ in range(5):
        assert f(x).equal(chain(x))
