"""tenon.cached_plan: what a plan depends on and what not, results, and what is refused."""

import threading

import numpy as np
import pytest

import tenon


@pytest.fixture
def affine():
    """x * scale + shift, with an activation by name; counts how often its graph was written down."""
    built = []

    @tenon.cached_plan
    def affine(g, x, scale, shift=None, *, activation="none", dims=()):
        built.append((activation, dims, shift is None))
        y = g.mul(x, scale)
        if shift is not None:
            y = g.add(y, shift)
        if dims:
            y = g.reduction(y, "ADD", axis=list(dims))
        return g.relu(y) if activation == "relu" else g.identity(y)

    affine.built = built
    return affine


def test_values_of_floats_plan_nothing_and_all_else_does(affine):
    x = tenon.tensor([[1.0, -2.0], [3.0, -4.0]])
    assert affine(x, 2.0).tolist() == [[2.0, -4.0], [6.0, -8.0]]
    assert affine(x, 0.5).tolist() == [[0.5, -1.0], [1.5, -2.0]]
    assert affine(x + 1, 1.0).tolist() == [[2.0, -1.0], [4.0, -3.0]]
    assert len(affine.built) == 1
    assert affine(x, 2.0, activation="relu").tolist() == [[2.0, 0.0], [6.0, 0.0]]
    assert affine(x, tenon.tensor([1.0, 10.0])).tolist() == [[1.0, -20.0], [3.0, -40.0]]
    assert affine(x, 1.0, shift=tenon.tensor([1.0, 0.0])).tolist() == [[2.0, -2.0], [4.0, -4.0]]
    assert affine(x, 1.0, 5.0).tolist() == [[6.0, 3.0], [8.0, 1.0]]
    assert affine(x, 1.0, dims=[1]).tolist() == [-1.0, -1.0]
    assert affine(x, 1.0, dims=[0]).tolist() == [4.0, -6.0]
    assert affine(x.T, 1.0).tolist() == x.T.tolist()
    assert affine(x.double(), 1.0).dtype == tenon.float64
    assert affine(x[:1], 1.0).shape == (1, 2)
    assert len(affine.built) == 10
    assert affine.cache_info() == (2, 10, 256, 10)


def test_lists_of_any_length_are_told_apart():
    @tenon.cached_plan
    def reshaped(g, x, before, shape):
        return g.reshape(x, dim=list(shape))

    x = tenon.arange(4.0)
    for shape in ((2, 2), (4, 1), [1] * 20 + [4], [1] * 20 + [2, 2], (tenon.tensor(4).item(),)):
        assert tuple(reshaped(x, [1] * 14, shape).shape) == tuple(shape)
    assert reshaped.cache_info().misses == 5


def test_strict_mode_uses_the_same_plans(affine):
    """Steps ask for it when they run."""
    x = tenon.ones(2)
    affine(x, 1.0)
    tenon.set_strict(True)
    try:
        affine(x, 1.0)
    finally:
        tenon.set_strict(False)
    assert affine.cache_info().misses == 1


def test_as_many_plans_are_kept_as_was_said():
    @tenon.cached_plan(maxsize=2)
    def double(g, x):
        return g.mul(x, 2.0)

    for n in (1, 2, 1, 3, 1, 2):  # 2 makes room for 3, as 1 was used since; then 3 for 2
        assert double(tenon.ones(n)).tolist() == [2.0] * n
    assert double.cache_info() == (2, 4, 2, 2)
    double.cache_clear()
    assert double.cache_info() == (0, 0, 2, 0)
    with pytest.raises(ValueError, match="maxsize is at least 1"):
        tenon.cached_plan(lambda g, x: x, maxsize=0)


def test_the_graph_and_its_sorted_uids():
    @tenon.cached_plan
    def mixed(g, x, flag, eps, w):
        return g.add(g.mul(x, w), eps), g.relu(x)

    x, w = tenon.tensor([1.0, -2.0]), tenon.tensor([3.0, 4.0])
    g = mixed.find(x, True, 0.5, w)
    # Argument i has UID i + 1; results are behind all arguments.
    assert g._get_variant_pack_uids_sorted() == [1, 3, 4, 5, 6]
    eps, y, r = tenon.tensor(0.5, dtype=tenon.float64), tenon.empty(2), tenon.empty(2)
    g._execute_with_ptrs([t.data_ptr() for t in (x, eps, w, y, r)], None)
    assert y.tolist() == [3.5, -7.5] and r.tolist() == [1.0, 0.0]
    assert [t.tolist() for t in mixed(x, True, 0.5, w)] == [y.tolist(), r.tolist()]
    assert mixed.find(x, True, 0.25, w).key() == g.key()
    assert mixed.cache_info().misses == 1


def test_results_go_to_out(affine):
    x, out = tenon.tensor([[1.0, 2.0]]), tenon.zeros(1, 2)
    assert affine(x, 2.0, out=out) is out and out.tolist() == [[2.0, 4.0]]

    @tenon.cached_plan
    def both(g, x):
        return g.add(x, 1.0), g.mul(x, 2.0)

    a, b = tenon.zeros(2), tenon.zeros(4)[::2]
    x = tenon.tensor([1.0, 2.0])
    results = both(x, out=(a, b))
    assert results[0] is a and results[1] is b and a.tolist() == [2.0, 3.0] and b.tolist() == [2.0, 4.0]
    assert [t.tolist() for t in both(x, out=(None, x))] == [[2.0, 3.0], [2.0, 4.0]] and x.tolist() == [2.0, 4.0]
    with pytest.raises(TypeError, match="a tuple of one tensor for each result"):
        both(x, out=a)
    with pytest.raises(TypeError, match="`out` is a tensor"):
        affine(x, 1.0, out=1)


def test_meta_tensors_get_shapes_without_a_plan(affine):
    y = affine(tenon.empty(3, 4, device="meta"), 2.0, dims=[1])
    assert y.is_meta and y.shape == (3,) and y.dtype == tenon.float32
    with pytest.raises(RuntimeError, match="build_plans"):
        affine.find(tenon.empty(3, 4, device="meta"), 2.0, dims=[1]).get_workspace_size()


def test_a_workspace_belongs_to_one_call():
    @tenon.cached_plan
    def chain(g, x, w):
        return g.matmul(g.matmul(x, w), w)

    x, w = tenon.randn(64, 64), tenon.randn(64, 64)
    wanted = (x @ w) @ w
    assert wanted.isfinite().all().item()  # it is computed, where it is recorded
    g = chain.find(x, w)
    assert g.get_workspace_size() > 0
    before = tenon.cpu.memory_stats()["allocated_bytes.all.current"]
    result = chain(x, w)
    kept = tenon.cpu.memory_stats()["allocated_bytes.all.current"] - before
    assert kept < g.get_workspace_size() + result.numel() * 4, "the workspace is given back"

    wrong = []

    def work(seed):
        generator = np.random.default_rng(seed)
        for _ in range(50):
            x = tenon.tensor(generator.standard_normal((64, 64)), dtype=tenon.float32)
            if not tenon.equal(chain(x, w), (x @ w) @ w):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and tenon.equal(chain(x, w), wanted)
    assert chain.cache_info().misses == 1


def test_what_cannot_be_part_of_a_plan_is_refused(affine):
    x = tenon.ones(2)
    with pytest.raises(TypeError, match="affine.*argument 'activation' is a object; a plan depends on tensors, numbers"):
        affine(x, 1.0, activation=object())
    with pytest.raises(TypeError, match="missing argument 'scale'"):
        affine(x)
    with pytest.raises(TypeError, match="unexpected argument 'speed'"):
        affine(x, 1.0, speed=2)
    with pytest.raises(TypeError, match="argument 'x' twice"):
        affine(x, 1.0, x=x)
    with pytest.raises(TypeError, match="at most 5 arguments"):
        affine(x, 1, 2, 3, 4, 5)
    with pytest.raises(TypeError, match="takes `out`"):
        tenon.cached_plan(lambda g, x, out: x)
    with pytest.raises(TypeError, match=r"takes \*rest"):
        tenon.cached_plan(lambda g, *rest: rest)


def test_what_a_graph_may_not_return():
    x = tenon.ones(2)
    with pytest.raises(ValueError, match="result 0 is an argument"):
        tenon.cached_plan(lambda g, x: x)(x)
    with pytest.raises(TypeError, match="has to return tensors of its graph, not int"):
        tenon.cached_plan(lambda g, x: 1)(x)
    with pytest.raises(ValueError, match="no results"):
        tenon.cached_plan(lambda g, x: [])(x)

    def twice(g, x):
        y = g.relu(x)
        return y, y

    with pytest.raises(ValueError, match="result 0 is returned twice"):
        tenon.cached_plan(twice)(x)

    def fails(g, x):
        raise LookupError("no such thing")

    plan = tenon.cached_plan(fails)
    with pytest.raises(LookupError, match="no such thing"):
        plan(x)
    assert plan.cache_info().currsize == 0


def test_history_is_not_lost_silently(affine):
    x = tenon.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="argument 0 requires grad, and a plan has no derivative"):
        affine(x, 1.0)
    with tenon.no_grad():
        assert not affine(x, 1.0).requires_grad


def test_it_looks_like_the_function(affine):
    import inspect

    assert affine.__name__ == "affine" and repr(affine).endswith("affine>")
    assert list(inspect.signature(affine).parameters) == ["x", "scale", "shift", "activation", "dims", "out"]
