"""Scopes that do not end in their order, or not where they began: a clear error, and nothing stays open."""

import threading

import pytest

import tenon


def scope():
    return tenon.recording(threshold=0)


def is_recording():
    before = tenon._C._record_stats()["recorded"]
    tenon.compile(lambda: None)()  # the scope, if there is one, stays
    tenon.ones(3).neg()
    return tenon._C._record_stats()["recorded"] > before


def test_a_scope_that_was_not_entered():
    with pytest.raises(RuntimeError, match="not entered, or it has ended"):
        scope().__exit__()
    ended = scope()
    with ended:
        pass
    with pytest.raises(RuntimeError, match="not entered, or it has ended"):
        ended.__exit__()
    assert not is_recording()


def test_scopes_that_end_out_of_order():
    outer, inner = scope(), scope()
    outer.__enter__()
    inner.__enter__()
    y = tenon.arange(3.0) * 2
    with pytest.raises(RuntimeError, match="ended before one that began inside of it"):
        outer.__exit__()
    assert y.tolist() == [0, 2, 4] and not is_recording()
    with pytest.raises(RuntimeError, match="not open on this thread"):
        inner.__exit__()


def test_a_scope_that_ends_on_another_thread():
    s = scope()
    s.__enter__()
    y = tenon.arange(3.0) * 2
    errors = []

    def end():
        try:
            s.__exit__()
        except RuntimeError as e:
            errors.append(str(e))

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    assert len(errors) == 1 and "another thread began this scope" in errors[0]
    assert is_recording()
    s.__exit__()
    assert y.tolist() == [0, 2, 4] and not is_recording()


def test_a_generator_that_keeps_a_scope_open():
    def steps():
        with scope():
            yield tenon.arange(3.0) * 2

    def f():
        kept.append(steps())
        return next(kept[0])

    kept = []
    with pytest.raises(RuntimeError, match="ended before one that began inside of it"):
        tenon.compile(f, threshold=0)()
    assert not is_recording()
    with pytest.raises(RuntimeError, match="not open on this thread"):
        next(kept[0], None)


def test_one_object_may_be_entered_twice():
    s = scope()
    with s:
        with s:
            y = tenon.ones(2) * 2
        assert is_recording()
    assert y.tolist() == [2, 2] and not is_recording()
