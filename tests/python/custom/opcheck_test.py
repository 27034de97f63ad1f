"""library.opcheck: an operator that is right passes, and each fault is found by its test."""

import pytest

import tenon
import tenon.opcheck
from tenon.library import custom_op, opcheck

T = tenon.Tensor


@pytest.fixture
def scaled():
    @custom_op("opcheck::scaled", mutates_args=())
    def scaled(x: T, by: float) -> T:
        return x * by

    scaled.register_fake(lambda x, by: tenon.empty_like(x))
    scaled.register_autograd(lambda ctx, g: (g * ctx.by, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]))
    yield scaled


def sample():
    return tenon.randn(2, 3, requires_grad=True)


def test_an_operator_that_is_right(scaled):
    x = sample()
    found = opcheck(scaled, (x, 2.0))
    assert set(found) == {"test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic", "test_tags"}
    assert set(found.values()) == {"SUCCESS"} and x.grad is None
    assert opcheck(tenon.ops.opcheck.scaled, (x,), {"by": 2.0}, test_utils="test_schema") == {"test_schema": "SUCCESS"}
    for args in ((tenon.ones(2), tenon.ones(2)), (tenon.ones(0), tenon.ones(1))):
        opcheck(tenon.ops.aten.add.Tensor, args)
    opcheck(tenon.ops.aten.add_.Tensor, (tenon.ones(2), tenon.ones(2)))
    opcheck(tenon.ops.aten.view, (tenon.ones(2, 2), [4]))


def faulty(function, **options):
    return custom_op("opcheck::faulty", function, mutates_args=(), **options)


def writes(x: T) -> T:
    x.add_(1)
    return x * 2


def returns_its_argument(x: T) -> T:
    return x.view(-1)


def doubles(x: T) -> T:
    return x * 2


def test_writes_and_aliases_that_the_schema_hides_are_found():
    with pytest.raises(tenon.opcheck.OpCheckError, match=r"opcheck: opcheck::faulty fails test_schema: it writes argument `x`, and its schema does not say so"):
        opcheck(faulty(writes), (tenon.ones(2),))
    found = opcheck(faulty(returns_its_argument), (tenon.ones(2),), test_utils=["test_schema"], raise_exception=False)
    assert "return 0 is argument `x` or a view of it, which the schema does not say; return a clone()" in found["test_schema"]


def test_a_missing_derivative_is_found():
    found = opcheck(faulty(doubles), (sample(),), test_utils="test_autograd_registration", raise_exception=False)
    assert "derivative for opcheck::faulty is not implemented; register one" in found["test_autograd_registration"]
    op = faulty(doubles)
    op.register_not_differentiable()
    opcheck(op, (sample(),), test_utils="test_autograd_registration")


def test_meta_kernels_that_say_something_else_are_found():
    op = faulty(doubles)
    ask = {"test_utils": "test_faketensor", "raise_exception": False}
    for fake, text in (
        (lambda x: x.new_empty(3), r"has the shape tenon.Size([2, 3]), and tenon.Size([3]) on meta"),
        (lambda x: x.new_empty(2, 3, dtype=tenon.int32), "has the dtype tenon.float32, and tenon.int32 on meta"),
        (lambda x: x.new_empty(3, 2).t(), "has the stride (3, 1), and (1, 2) on meta"),
        (lambda x: tenon.empty(2, 3), "it does not run on meta tensors: opcheck::faulty: the kernel for Meta"),
    ):
        op.register_fake(fake)
        assert text in opcheck(op, (tenon.ones(2, 3),), **ask)["test_faketensor"]


def test_values_that_differ_in_a_recorded_program_are_found(scaled):
    calls = []

    def counts(x: T) -> T:
        calls.append(1)
        return x * len(calls)

    found = opcheck(faulty(counts), (tenon.ones(2),), test_utils="test_aot_dispatch_dynamic", raise_exception=False)
    assert found["test_aot_dispatch_dynamic"].startswith("in a recorded program it gives something else: Tensor-likes are not close!")


def test_what_is_no_operator_is_refused():
    with pytest.raises(TypeError, match="opcheck: expected an operator or its name, 'namespace::name', got <function"):
        opcheck(doubles, (tenon.ones(1),))
    with pytest.raises(ValueError, match="opcheck: there is no test 'test_all'; there are test_schema, "):
        opcheck(tenon.ops.aten.abs, (tenon.ones(1),), test_utils="test_all")


def test_an_operator_is_taken_by_its_name(scaled):
    assert set(opcheck("opcheck::scaled", (sample(), 2.0)).values()) == {"SUCCESS"}
    assert set(opcheck("aten::add.Tensor", (tenon.ones(2), tenon.ones(2)), test_utils="test_schema")) == {"test_schema"}
    assert opcheck("tenon::rmsnorm", (tenon.ones(2, 4), [4], None, 1e-6), test_utils="test_faketensor") == {"test_faketensor": "SUCCESS"}
    for name, message in (
        ("scaled", "opcheck: 'scaled' is not an operator's name, expected 'namespace::name'"),
        ("opcheck::scale", "opcheck: .*no operator 'scale'; did you mean 'scaled'.*module that registers it is imported"),
        ("aten::add.Tenso", "opcheck: aten::add has no overload 'Tenso'; it has .*Tensor"),
    ):
        with pytest.raises(LookupError, match=message):
            opcheck(name, (tenon.ones(1),))
