"""tenon.library.custom_op and infer_schema: an operator from an annotated function."""

from collections.abc import Sequence
from typing import List, Optional, Tuple, Union

import numpy as np
import pytest

import tenon
from tenon.library import custom_op, infer_schema


def test_a_function_becomes_an_operator():
    @custom_op("libcustom::axpy", mutates_args=())
    def axpy(a: float, x: tenon.Tensor, y: tenon.Tensor) -> tenon.Tensor:
        return a * x + y

    x, y = np.float32([1, 2]), np.float32([3, 4])
    got = axpy(2.0, tenon.from_numpy(x), tenon.from_numpy(y))
    np.testing.assert_array_equal(got.numpy(), 2 * x + y)
    assert axpy is tenon.ops.libcustom.axpy.default
    assert axpy._schema == "libcustom::axpy(float a, Tensor x, Tensor y) -> Tensor"
    assert axpy(2.0, tenon.ones(1, device="meta"), tenon.ones(1, device="meta")).is_meta


def test_a_second_one_takes_the_place_of_the_first():
    for n in (1, 2):

        @custom_op("libcustom::again", mutates_args=())
        def again(x: tenon.Tensor, n: int = n) -> tenon.Tensor:
            return x + n

        assert tenon.ops.libcustom.again(tenon.zeros(1)).item() == n


def test_device_types():
    @custom_op("libcustom::on_cpu", mutates_args=(), device_types="cpu")
    def on_cpu(x: tenon.Tensor) -> tenon.Tensor:
        return x + 1

    with pytest.raises(NotImplementedError, match="device meta"):
        on_cpu(tenon.ones(1, device="meta"))

    @on_cpu.register_fake
    def _(x):
        return tenon.empty_like(x)

    assert on_cpu(tenon.ones(3, device="meta")).shape == (3,)

    @on_cpu.register_kernel("meta")
    def _(x):
        return tenon.empty(7, device="meta")

    assert on_cpu(tenon.ones(3, device="meta")).shape == (7,)


def test_written_arguments():
    @custom_op("libcustom::fill", mutates_args=("out",))
    def fill(x: tenon.Tensor, out: tenon.Tensor) -> None:
        out.copy_(x)

    assert fill._schema == "libcustom::fill(Tensor x, Tensor(a1!) out) -> ()"
    out = tenon.zeros(2)
    version = out._version
    assert fill(tenon.ones(2), out) is None and out.tolist() == [1.0, 1.0] and out._version == version + 1
    leaf = tenon.zeros(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        fill(tenon.ones(2), leaf)
    with pytest.raises(RuntimeError, match="writes argument `out`"):
        fill.register_autograd(lambda ctx: None)
    with pytest.raises(ValueError, match="mutates_args says"):
        custom_op("libcustom::f", lambda x: None, mutates_args=(), schema="(Tensor(a!) x) -> ()")


def test_a_given_schema():
    @custom_op("libcustom::given", mutates_args=(), schema="(Tensor x, int[2] n, *, bool flag=False) -> (Tensor, int)")
    def given(x, n, flag):
        return x + n[0], n[1] + flag

    y, n = given(tenon.zeros(1), 4, flag=True)
    assert y.item() == 4.0 and n == 5
    with pytest.raises(TypeError, match="takes no keyword argument `flag`"):
        custom_op("libcustom::g", lambda x: x, mutates_args=(), schema="(Tensor x, *, bool flag) -> Tensor")


def everything(
    t: tenon.Tensor,
    u: Optional[tenon.Tensor],
    v: "tenon.Tensor | None",
    l: Sequence[tenon.Tensor],
    m: List[Optional[tenon.Tensor]],
    i: int,
    f: float,
    b: bool,
    s: str,
    n: Union[int, float, bool],
    d: tenon.dtype,
    e: tenon.device,
    p: list[int],
    q: Optional[Sequence[float]] = None,
    r: float = 1e-5,
    w: str = 'a"b',
    *,
    g: Optional[tenon.dtype] = None,
    k: bool = True,
) -> Tuple[tenon.Tensor, tenon.Tensor, int]: ...


def test_schemas_from_annotations():
    assert infer_schema(everything, mutates_args=("u",)) == (
        "(Tensor t, Tensor(a1!)? u, Tensor? v, Tensor[] l, Tensor?[] m, SymInt i, float f, bool b, str s, Scalar n, "
        "ScalarType d, Device e, SymInt[] p, float[]? q=None, float r=1e-05, str w=\"a\\\"b\", *, ScalarType? g=None, "
        "bool k=True) -> (Tensor, Tensor, SymInt)"
    )
    assert infer_schema(lambda_with(tenon.Tensor), mutates_args="unknown", op_name="f") == "f(Tensor(a0!) x) -> ()"
    tenon._C._parse_schema("f" + infer_schema(everything))


def lambda_with(annotation):
    def f(x): ...

    f.__annotations__ = {"x": annotation, "return": None}
    return f


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda a: a.pop("x"), "parameter `x` has no annotation"),
        (lambda a: a.update(x=dict), "parameter `x` is annotated .*dict"),
        (lambda a: a.pop("return"), "the return has no annotation"),
        (lambda a: a.update({"return": set}), "the return is annotated .*set"),
    ],
)
def test_annotations_that_no_schema_can_say(change, message):
    def f(x: tenon.Tensor) -> tenon.Tensor: ...

    change(f.__annotations__)
    with pytest.raises(ValueError, match=message) as e:
        infer_schema(f)
    assert "custom_op_test.py" in str(e.value)


def test_other_functions_without_a_schema():
    def rest(*x: tenon.Tensor) -> None: ...

    def default(x: tenon.Tensor, y: float = object()) -> None: ...

    def number(x: int) -> None: ...

    with pytest.raises(ValueError, match="any number of arguments"):
        infer_schema(rest)
    with pytest.raises(ValueError, match="parameter `y`: .* cannot be a default"):
        infer_schema(default)
    with pytest.raises(ValueError, match="`x` is in mutates_args, but it is no Tensor"):
        infer_schema(number, mutates_args=("x",))
    with pytest.raises(ValueError, match="names z, which is no parameter"):
        infer_schema(number, mutates_args=("z",))
