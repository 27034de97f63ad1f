"""tenon.Tag: what declarations say of operators. The names and what built-in operators have are PyTorch's."""

import re

import pytest

import tenon
from tenon import Tag, ops
from tenon.library import Library, custom_op, define, opcheck


@pytest.fixture
def lib():
    with Library("tagtest", "FRAGMENT") as library:
        yield library


@pytest.mark.parametrize(
    "op, tags",
    [
        (ops.aten.relu.default, "core pointwise"),
        (ops.aten.relu_.default, "inplace pointwise"),
        (ops.aten.add.out, "out pointwise"),
        (ops.aten.sum.dim_IntList, "core reduction"),
        (ops.aten.nonzero.default, "core dynamic_output_shape"),
        (ops.aten.equal.default, "data_dependent_output"),
        (ops.aten.randn.default, "core nondeterministic_seeded"),
        (ops.aten.randn.generator, "nondeterministic_seeded"),
        (ops.aten.normal_.default, "inplace nondeterministic_seeded"),
        (ops.aten.resize_.default, "core inplace inplace_view"),
        (ops.aten.slice_scatter.default, "core view_copy"),
        (ops.aten.t.default, ""),
    ],
    ids=str,
)
def test_built_in_operators(op, tags):
    assert op.tags == [Tag[name] for name in tags.split()]


def test_the_list_is_made_once():
    assert ops.aten.relu.default.tags is ops.aten.relu.default.tags


@pytest.mark.parametrize("tags", [[Tag.pointwise, "pt2_compliant_tag"], ("pt2_compliant_tag", "pointwise"), {Tag.pointwise, Tag.pt2_compliant_tag}])
def test_of_users_by_each_way_of_declaring(lib, tags):
    shown = [Tag.pointwise, Tag.pt2_compliant_tag]
    lib.define("a(Tensor x) -> Tensor", tags=tags)
    define("tagtest::b", "(Tensor x) -> Tensor", lib=lib, tags=tags)

    @custom_op("tagtest::c", mutates_args=(), tags=tags)
    def c(x: tenon.Tensor) -> tenon.Tensor:
        return x.clone()

    assert ops.tagtest.a.default.tags == ops.tagtest.b.default.tags == c.tags == shown


def test_one_tag_needs_no_list_and_goes_with_its_declaration():
    with Library("tagtest", "FRAGMENT") as lib:
        lib.define("gone(Tensor x) -> Tensor", tags=Tag.core)
        op = ops.tagtest.gone.default
        assert op.tags == [Tag.core] and op.tags is op.tags
    with Library("tagtest", "FRAGMENT") as lib:
        lib.define("gone(Tensor x) -> Tensor")
        assert ops.tagtest.gone.default.tags == []


@pytest.mark.parametrize(
    "schema, tags, error, message",
    [
        ("x(Tensor x) -> Tensor", ["pointwize"], ValueError, "There is no tag 'pointwize'; did you mean 'pointwise'\\?"),
        ("x(Tensor x) -> Tensor", ["fast"], ValueError, "There is no tag 'fast'; there are core, cudagraph_unsafe, "),
        ("x(Tensor x) -> Tensor", [3], TypeError, "tags must be members of tenon.Tag or their names, got 3 .int. among them"),
        ("x(Tensor x) -> Tensor", 3, TypeError, "tags must be members of tenon.Tag or their names, got 3 .int."),
        ("x(Tensor x) -> Tensor", [Tag.inplace], ValueError, "tagtest::x: the tag 'inplace' is for an operator that writes its first argument, and"),
        ("x(Tensor x) -> Tensor", [Tag.out], ValueError, "has an out argument"),
        ("x(Tensor x) -> Tensor", [Tag.data_dependent_output], ValueError, "returns something else than tensors"),
        ("x(Tensor x) -> int", [Tag.pointwise], ValueError, "takes tensors, and returns or writes some"),
        ("x(int[] size) -> Tensor", ["reduction"], ValueError, "takes tensors, and returns or writes some"),
        ("x(Tensor(a) x) -> Tensor(a)", ["view_copy"], ValueError, "returns new tensors"),
        ("x(Tensor x) -> int", ["dynamic_output_shape"], ValueError, "returns a tensor"),
    ],
)
def test_a_wrong_tag_is_refused_where_it_is_declared(lib, schema, tags, error, message):
    with pytest.raises(error, match=message):
        lib.define(schema, tags=tags)
    assert "tagtest::x" not in tenon._C.dispatch.all_operators()


def an_operator(lib, name, tags, function):
    lib.define(f"{name}(Tensor x) -> Tensor", tags=tags)
    lib.impl(name, function, "CPU")
    return getattr(ops.tagtest, name).default


@pytest.mark.parametrize(
    "tags, function, message",
    [
        ("pointwise", lambda x: x * 2, None),
        ("pointwise", lambda x: x.cumsum(0), "depends on where elements are"),
        ("pointwise", lambda x: x.sum(), r"has the shape \(\), where its arguments broadcast to \(3, 4\)"),
        ((), lambda x: x + tenon.rand(3, 4), "two calls give different bits"),
        ("nondeterministic_bitwise", lambda x: x + tenon.rand(3, 4), None),
        ("nondeterministic_seeded", lambda x: x + tenon.rand(3, 4), None),
    ],
)
def test_opcheck_tests_what_can_be_observed(lib, tags, function, message):
    op = an_operator(lib, "seen", tags, function)
    outcome = opcheck(op, (tenon.arange(12.0).view(3, 4),), test_utils="test_tags", raise_exception=False)["test_tags"]
    assert outcome == "SUCCESS" if message is None else re.search(message, outcome)


def test_opcheck_of_an_operator_that_returns_another_tensor_than_it_writes(lib):
    lib.define("half_inplace_(Tensor(a!) x) -> Tensor", tags=Tag.inplace)
    lib.impl("half_inplace_", lambda x: x.zero_().clone(), "CPU")
    with pytest.raises(tenon.opcheck.OpCheckError, match="does not return its first argument"):
        opcheck(ops.tagtest.half_inplace_.default, (tenon.ones(3),), test_utils="test_tags")


def test_names_are_those_that_declarations_know(lib):
    for tag in Tag:  # the library refuses a name that it does not know
        try:
            lib.define(f"each_{tag.name}(Tensor x) -> Tensor", tags=tag.name)
            assert getattr(ops.tagtest, f"each_{tag.name}").default.tags == [tag]
        except ValueError as e:
            assert f"the tag '{tag.name}' is for an operator that" in str(e)
