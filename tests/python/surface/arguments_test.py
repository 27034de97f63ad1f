"""Wrong arguments of what is written in Python: the TypeError names the function or class, the argument, and what came."""

import inspect
import math
import re

import numpy as np
import pytest

import tenon
import tenon.nn.functional as F
from tenon import array_api, nn
from tenon.utils.checkpoint import checkpoint, checkpoint_sequential

#: By name: what constructors of modules take.
RIGHT = {
    "in_features": 2, "out_features": 3, "in_channels": 4, "out_channels": 4, "kernel_size": 2, "num_features": 4, "num_groups": 2,
    "num_channels": 4, "normalized_shape": 4, "num_embeddings": 5, "embedding_dim": 3, "embed_dim": 4, "num_heads": 2, "d_model": 4,
    "nhead": 2, "padding": 1, "value": 0.5, "threshold": 0.5, "output_size": 2, "upscale_factor": 2, "downscale_factor": 2, "groups": 1,
    "norm_type": 2.0, "dim": 1, "unflattened_size": (2, 2), "num_layers": 1, "encoder_layer": nn.TransformerEncoderLayer(4, 2, 8),
    "decoder_layer": nn.TransformerDecoderLayer(4, 2, 8), "input_size": 3, "hidden_size": 4, "mode": "LSTM", "num_chunks": 4, "bias": True,
    "in1_features": 2, "in2_features": 2, "size": 3, "n_classes": 5, "num_classes": 5, "cutoffs": [2],
}  # fmt: skip
#: Of two arguments, these classes want one.
ONE_OF_TWO = {"FractionalMaxPool2d": {"output_size": 2}, "FractionalMaxPool3d": {"output_size": 2}}


def integer_arguments():
    for name in sorted(dir(nn)):
        kind = getattr(nn, name)
        if not (inspect.isclass(kind) and issubclass(kind, nn.Module)):
            continue
        for parameter in inspect.signature(kind).parameters.values():
            if str(parameter.annotation).split(" ")[0] in ("int", "Ints"):
                yield pytest.param(kind, parameter.name, id=f"{name}.{parameter.name}")


@pytest.mark.parametrize("wrong", [2.5, "two", [2.5], tenon.ones(2)], ids=["float", "str", "list", "tensor"])
@pytest.mark.parametrize("kind, argument", integer_arguments())
def test_integers_of_modules_are_named(kind, argument, wrong):
    parameters = inspect.signature(kind).parameters.values()
    given = {p.name: RIGHT[p.name] for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD}
    given |= ONE_OF_TWO.get(kind.__name__, {})
    kind(**given)
    if wrong == "two" and "str" in str(inspect.signature(kind).parameters[argument].annotation):
        return  # a word is right there, if not this one
    with pytest.raises(TypeError) as caught:
        kind(**{**given, argument: wrong})
    shown = "Tensor" if isinstance(wrong, tenon.Tensor) else f"{wrong!r} ({type(wrong).__name__})"
    assert str(caught.value).startswith(f"{kind.__name__}: {argument} must be ") and str(caught.value).endswith(f"got {shown}")


@pytest.mark.parametrize("number", [np.int64(3), tenon.tensor(3)], ids=["NumPy", "tensor"])
def test_integers_of_other_libraries_are_integers(number):
    assert nn.Linear(number, 2).weight.shape == (2, 3) and nn.MaxPool1d(number)(tenon.ones(1, 6)).shape == (1, 2)
    conv = nn.Conv2d(1, 1, number, padding=(number, number))
    assert conv.weight.shape == (1, 1, 3, 3) and repr(conv) == "Conv2d(1, 1, kernel_size=(3, 3), stride=(1, 1), padding=(3, 3))"


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_integers_of_numpy_are_integers_in_functions(kind):
    x = np.arange(24.0).reshape(2, 3, 4)
    t, one, two, three = tenon.tensor(x), kind(1), kind(2), kind(3)
    np.testing.assert_allclose(tenon.linalg.norm(t, dim=one), np.linalg.norm(x, axis=1))
    np.testing.assert_array_equal(tenon.einsum(t, [kind(0), one, two], [two, kind(0)]), np.einsum("abc->ca", x))
    np.testing.assert_allclose(tenon.logspace(kind(0), two, three), [1, 10, 100])
    with pytest.warns(UserWarning, match="deprecated"):
        assert tenon.range(one, three).tolist() == [1, 2, 3]
    points = x.reshape(12, 2)
    for bins in (three, (three, three)):
        np.testing.assert_array_equal(tenon.histogramdd(tenon.tensor(points), bins)[0], np.histogramdd(points, bins=3)[0])
    assert tenon.nonzero_static(tenon.tensor([0, 5, 0, 6]), size=two).tolist() == [[1], [3]]
    assert tenon.Tensor(three).shape == tenon.FloatTensor(three).shape == (3,)
    assert F.fractional_max_pool2d(tenon.ones(1, 4, 4), two, output_size=two).shape == (1, 2, 2)
    # Three steps of probability 1/4 each: "1" comes from 1 alone with blanks around it, or repeated, in six alignments.
    steps = tenon.full((3, 1, 4), math.log(0.25))
    assert F.ctc_loss(steps, tenon.tensor([[1]]), [three], (one,), reduction="sum").item() == pytest.approx(-math.log(6 / 64))


def test_floats_of_numpy_are_numbers():
    np.testing.assert_allclose(tenon.logspace(np.float32(0.5), np.float64(1), 2), 10 ** np.array([0.5, 1]), rtol=1e-6)
    with pytest.warns(UserWarning, match="deprecated"):
        assert tenon.range(np.float32(0.5), 2).tolist() == [0.5, 1.5]
    assert nn.LSTM(2, 2, 2, dropout=np.float32(0.5)).dropout == 0.5


def test_cutoffs_may_be_an_array():
    assert nn.AdaptiveLogSoftmaxWithLoss(4, 10, np.array([2, 5])).cutoffs == [2, 5, 10]


def test_a_subclass_is_named_as_itself():
    class Mine(nn.Linear):
        def __init__(self):
            super().__init__(2, 1.5)

    with pytest.raises(TypeError, match=r"^Mine: out_features must be an int, got 1.5 \(float\)$"):
        Mine()


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: nn.Linear(2, 3).get_submodule(3), r"^get_submodule: target must be a str, got 3 \(int\)$"),
        (lambda: nn.Linear(2, 3).apply(3), r"^apply: fn must be callable, got 3 \(int\)$"),
        (lambda: nn.init.eye_(3), r"^eye_: tensor must be a Tensor, got 3 \(int\)$"),
        (lambda: F.interpolate("image", 2), r"^interpolate: input must be a Tensor, got 'image' \(str\)$"),
        (lambda: F.softsign(None), r"^softsign: input must be a Tensor, got None \(NoneType\)$"),
        (lambda: tenon.optim.SGD([3], lr=0.1), r"^SGD: params must be Tensors or groups of them, got 3 \(int\)$"),
        (lambda: tenon.optim.SGD(3, lr=0.1), r"^SGD: params must be parameters or groups of them, got 3 \(int\)$"),
        (lambda: tenon.optim.Adam([tenon.ones(1)], betas=("a", "b")), r"^Adam: betas must be a tuple of numbers, got \('a', 'b'\) \(tuple\)$"),
        (lambda: nn.ModuleList([nn.ReLU()])["a"], r"^ModuleList: index must be an int or a slice, got 'a' \(str\)$"),
        (lambda: tenon.broadcast_shapes(2, 0.5), r"^broadcast_shapes: a shape must be .*, got 0.5 \(float\)$"),
        (lambda: tenon.einsum(tenon.ones(2), 3), r"^einsum: an operand's dimensions must be .*, got 3 \(int\)$"),
        (lambda: tenon.manual_seed(tenon.ones(2)), r"^manual_seed\(\): argument 'seed' must be an int, not tenon.Tensor$"),
        (lambda: nn.Linear(1, 1).zero_grad("no"), r"^zero_grad\(\): argument 'set_to_none' must be a bool, not str$"),
        (lambda: tenon.ones(2).to("\ud800"), "^to: a str with lone surrogates names no device$"),
        (lambda: tenon.einsum("\ud800", tenon.ones(2)), "^einsum: a str with lone surrogates, which has no UTF-8$"),
        (lambda: tenon.device("cpu", "1"), r"^device\(\): argument 'index' must be int, not str$"),
        (lambda: tenon.result_type(0.5, 2**70), f"^result_type: an integer beyond 64 bits: {2**70}$"),
        (lambda: tenon.ge(tenon.ones(2), 2**63), f"^ge: an integer beyond 64 bits: {2**63}$"),
        (lambda: tenon.ones(2).diag(-(2**70)), f"^diag: an integer beyond 64 bits: {-(2**70)}$"),
        (lambda: tenon.ones(10**400), r"^ones: an integer beyond 64 bits: 10000000000000000000\.\.\. \(401 digits\)$"),
        (lambda: tenon.ones(-(16**5000)), r"^ones: an integer beyond 64 bits: -0x10000000000000000\.\.\. \(5001 hexadecimal digits\)$"),
        (lambda: tenon.tensor(2**64), f"^tensor: an integer beyond 64 bits: {2**64}$"),
        (lambda: tenon.Tensor(2**64), f"^Tensor: an integer beyond 64 bits: {2**64}$"),
        (lambda: 2**64 in tenon.ones(1), f"^__contains__: an integer beyond 64 bits: {2**64}$"),
        (lambda: tenon.ones(1).__setitem__(0, 2**64), f"^__setitem__: an integer beyond 64 bits: {2**64}$"),
        (lambda: tenon.manual_seed(2**64), f"^manual_seed: seed must be between -2\\^63 and 2\\^64 - 1, got {2**64}$"),
        (lambda: tenon.manual_seed(np.array([object()])), r"^manual_seed\(\): argument 'seed' must be an int, not numpy.ndarray$"),
        (lambda: tenon.ones(1).__array__(["text", 1]), r"^__array__\(\): argument 'dtype' must be a dtype of NumPy .*, not list: "),
        (lambda: tenon.Size(np.array(2.0)), "^Size: iteration over a 0-d array$"),
        (lambda: tenon.frombuffer(object(), dtype=tenon.uint8), r"^frombuffer\(\): argument 'buffer' must be .*, not object$"),
        (lambda: tenon.ops.tenon.layernorm(tenon.ones(2), [2**64]), f"^layernorm: an integer beyond 64 bits: {2**64}$"),
        (lambda: nn.BatchNorm1d(2)("x"), r"^BatchNorm1d: input must be a Tensor, got 'x' \(str\)$"),
        (lambda: F.interpolate(tenon.ones(1, 1, 2), "x"), r"^interpolate: size must be an int or a sequence of ints or None, got 'x' \(str\)$"),
        (lambda: F.softmax(None), r"^softmax: input must be a Tensor, got None \(NoneType\)$"),
        (lambda: F.log_softmax(3), r"^log_softmax: input must be a Tensor, got 3 \(int\)$"),
        (lambda: F.leaky_relu_(1j), r"^leaky_relu_: input must be a Tensor, got 1j \(complex\)$"),
        (lambda: F.leaky_relu(1j, inplace=True), r"^leaky_relu_: input must be a Tensor, got 1j \(complex\)$"),
        (lambda: F.mse_loss(tenon.ones(2), tenon.ones(2), None, None, "mean", 3), r"^mse_loss: weight must be a Tensor or None, got 3 \(int\)$"),
        (lambda: F.l1_loss(tenon.ones(2), tenon.ones(2), weight=3), r"^l1_loss: weight must be a Tensor or None, got 3 \(int\)$"),
        (lambda: F.huber_loss(tenon.ones(2), tenon.ones(2), weight=3), r"^huber_loss: weight must be a Tensor or None, got 3 \(int\)$"),
        (lambda: tenon.cartesian_prod(2), r"^cartesian_prod: tensors must be Tensors, but element 0 is 2 \(int\)$"),
        (lambda: tenon.block_diag(tenon.ones(1), "x"), r"^block_diag: tensors must be Tensors, but element 1 is 'x' \(str\)$"),
        (lambda: tenon.cartesian_prod(), "^cartesian_prod: expected at least one tensor$"),
        (lambda: nn.GroupNorm(0, 2), "^GroupNorm: num_groups must be at least 1, got 0$"),
        (lambda: nn.LPPool2d(0, 2)(tenon.ones(1, 2, 2)), "^lp_pool2d: norm_type must not be 0$"),
        (lambda: nn.ModuleDict({"b": 2}), r"^ModuleDict: module 'b' must be a Module or None, got 2 \(int\)$"),
        (lambda: nn.Linear(1, 1).register_parameter("b", 2), r"^Linear: parameter 'b' must be a Parameter or None, got 2 \(int\)$"),
        (lambda: tenon.ops.load_library(None), r"^load_library: path must be a path, got None \(NoneType\)$"),
        (lambda: tenon.load_device(None), r"^load_device: path must be a path, got None \(NoneType\)$"),
        (lambda: tenon.graph.pygraph().tensor(dim=[1]).set_uid(math.inf), "^set_uid: uid is an int, not inf$"),
        (lambda: tenon.load_device(3), r"^load_device: path must be a path, got 3 \(int\)$"),
        (lambda: tenon.library.impl(3, "cpu"), r"^impl: qualname must be an operator or its name, got 3 \(int\)$"),
        (lambda: tenon.library.register_fake(3), r"^register_fake: op must be an operator or its name, got 3 \(int\)$"),
        (lambda: tenon.dispatch.dump_table(""), r"^dump_table\(\): argument 'op' must be an operator's name, not an empty str$"),
        (lambda: tenon.amp.autocast(np.zeros(1, "i4,f8")[0]), r"^autocast: the type of a device, such as 'cpu', must be a str, got "),
        (lambda: tenon.get_autocast_dtype(3), r"^get_autocast_dtype: device_type must be a str, got 3 \(int\)$"),
        (lambda: checkpoint(3), r"^checkpoint: function must be callable, got 3 \(int\)$"),
        (lambda: checkpoint(abs, context_fn=3), r"^checkpoint: context_fn must be callable, got 3 \(int\)$"),
        (lambda: checkpoint_sequential(0.5, 1, 1), r"^checkpoint_sequential: functions must be a Sequential or .*, got 0.5 \(float\)$"),
        (lambda: checkpoint_sequential([3], 1, 1), r"^checkpoint_sequential: functions must be callable, and one is 3 \(int\)$"),
        (lambda: tenon.set_float32_matmul_precision(np.zeros(2, "i4,f8")), "^set_float32_matmul_precision: expected one of highest, high"),
    ],
)
def test_other_arguments_are_named(call, text):
    with pytest.raises((TypeError, ValueError), match=text):
        call()


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: tenon.linalg.inv("x"), r"linalg.inv(): argument 'A' must be Tensor, not str; the signature is linalg.inv(A: Tensor) -> Tensor"),
        (lambda: tenon.linalg.inv(A=tenon.eye(2), B=1), "linalg.inv() got an unexpected keyword argument 'B'"),
        (lambda: tenon.linalg.solve(tenon.eye(3), tenon.ones(4, 2)), "linalg.solve: "),
        (lambda: tenon.linalg.cond(tenon.ones(3)), "linalg.cond: expected a tensor of at least 2 dimensions"),
        (lambda: tenon.linalg.cond(tenon.eye(3), p=[2]), "linalg.cond: expected `p` of "),
        (lambda: tenon.linalg.pinv(tenon.ones(3)), "linalg.pinv: `self` must have at least 2 dimensions"),
        (lambda: tenon.linalg.vector_norm(tenon.ones(2), "x"), "linalg.vector_norm(): argument 'ord' must be Number, not str; the signature is linalg.vector_norm("),
        (lambda: tenon.linalg.matrix_rank(tenon.eye(2), 1.0, rtol=0.5), "linalg.matrix_rank: expected tol alone, or atol and rtol, got both"),
        (lambda: tenon.linalg.pinv(tenon.eye(2), 1.0, atol=0.5), "linalg.pinv: expected rcond alone, or atol and rtol, got both"),
        (lambda: tenon.linalg.norm(tenon.eye(2), "zz"), "linalg.norm: expected `ord` of "),
        (lambda: tenon.linalg.norm(tenon.ones(2, 2, 2), None, (0, 1, 2)), "linalg.norm: expected `dim` of 1 or 2 dimensions, got (0, 1, 2); "),
        (lambda: tenon.fft.fft(tenon.ones(4), 0), "fft.fft: expected at least 1 element in the transform of dimension 0 of `self`, got 0 from `n`"),
        (lambda: tenon.fft.fftn(tenon.ones(0)), "fft.fftn: dimension 0 of `self` [0] has 0 elements, too few for a transform of at least 1; give its length as `s`"),
        (lambda: tenon.special.zeta(tenon.ones(2), "x"), "special.zeta(): no signature takes (Tensor, str); there are:\n  special.zeta(input: Tensor, "),
        (lambda: tenon.unique("x"), "unique: argument 'input' must be Tensor, not str"),
        (lambda: tenon.inverse(tenon.ones(2, 3)), "inverse: `A` must be "),
    ],
)
def test_functions_are_named_as_programs_write_them(call, text):
    with pytest.raises((TypeError, ValueError, RuntimeError)) as error:
        call()
    assert str(error.value).startswith(text) and not re.search(r"\b(_|linalg_|fft_|special_)[a-z]", str(error.value)), error.value


def test_modules_list_what_they_are_for():
    for module in (tenon.linalg, tenon.fft, tenon.special, F, tenon.autograd, tenon.optim.lr_scheduler):
        assert not {"annotations", "TYPE_CHECKING"} & {*dir(module)}, module


@pytest.mark.parametrize("load, name", [(tenon.load_device, "load_device"), (tenon.ops.load_library, "load_library")])
def test_an_empty_path_names_no_library(load, name):
    with pytest.raises(tenon.FileError, match=f"^{name}: path must name a shared library, got ''$"):
        load("")


@pytest.mark.parametrize("function", [tenon.cartesian_prod, tenon.block_diag])
def test_tensors_of_too_many_dimensions_are_named(function):
    with pytest.raises(RuntimeError, match=f"^{function.__name__}: tensors must have at most . dimensions, but element 1 has 3$"):
        function(tenon.ones(1), tenon.ones(2, 2, 2))


def test_the_diagonal_of_no_blocks_is_empty():
    assert tenon.block_diag().shape == tenon.block_diag([]).shape == (1, 0)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: tenon.zeros((True,)), "zeros[(][)]: argument 'size' must be Sequence.int., but element 0 is bool; "),
        (lambda: tenon.ones((2, True)), "ones[(][)]: argument 'size' must be Sequence.int., but element 1 is bool; "),
        (lambda: tenon.ones(2, True), "ones[(][)]: argument 'size' must be Sequence.int., but element 1 is bool; "),
        (lambda: tenon.ones(2).view(2, 0.5), "argument 'size' must be Sequence.int., but element 1 is float"),
    ],
)
def test_the_element_of_a_size_is_named(call, text):
    with pytest.raises(TypeError, match=text):
        call()


META = tenon.ones((), device="meta")


@pytest.mark.parametrize(
    "call, function, argument",
    [
        (lambda x: tenon.clamp(x, 0, META), "clamp", "max"),
        (lambda x: x.clamp(min=META, max=1.0), "clamp", "min"),
        (lambda x: tenon.full((2,), META), "full", "fill_value"),
        (lambda x: tenon.add(x, x, alpha=META), "add", "alpha"),
        (lambda x: F.elu(x, META), "elu", "alpha"),
        (lambda x: tenon.arange(META), "arange", "end"),
        (lambda x: tenon.dropout(x, META, True), "dropout", "p"),
        (lambda x: x.sum(META.long()), "sum", "dim"),
    ],
)
def test_a_number_that_has_no_data_is_named(call, function, argument):
    with pytest.raises(TypeError, match=rf"^{function}\(\)(.|\n)*argument '{argument}' must be .*, not Tensor on meta, which has no data"):
        call(tenon.ones(2))
    sizes = r"^zeros\(\): argument 'size' must be Sequence\[int\], but element 1 is Tensor on meta, which has no data"
    with pytest.raises(TypeError, match=sizes):
        tenon.zeros((1, META.long()))


def test_a_number_with_history_is_named():
    with pytest.raises(TypeError, match=r"argument 'alpha' must be .*, not Tensor that requires grad; pass its item\(\)"):
        tenon.add(tenon.ones(2), tenon.ones(2), alpha=tenon.tensor(2.0, requires_grad=True))


def test_the_name_of_an_operator_is_a_text():
    for wrong, shown in ((3, r"3 \(int\)"), (np.array(2.0), r"array\(2.\) \(ndarray\)"), (None, r"None \(NoneType\)")):
        with pytest.raises(TypeError, match=f"qualname must be a str, 'namespace::name', got {shown}"):
            tenon.library.define(wrong, "(Tensor x) -> Tensor")


@pytest.mark.parametrize("celu", [F.celu, tenon.celu, tenon.celu_, lambda x, a: nn.CELU(a)(x)])
def test_celu_refuses_what_it_divides_by(celu):
    for zero in (0, 0.0, -0.0):
        with pytest.raises(ValueError, match="^celu_?: `alpha` must not be 0$"):
            celu(tenon.ones(2), zero)
    x = np.linspace(-2, 2, 5)
    np.testing.assert_allclose(celu(tenon.tensor(x), -2.0), np.where(x > 0, x, -2 * np.expm1(x / -2)), rtol=1e-12)


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda x: tenon.greater(x, tenon.ones(3)), "greater"),
        (lambda x: x.greater_equal_(tenon.ones(3)), "greater_equal_"),
        (lambda x: array_api.less(x, tenon.ones(3)), "less"),
        (lambda x: tenon.subtract(x > 0, x > 0), "subtract"),
        (lambda x: tenon.absolute(x, out=x.int()), "absolute"),
        (lambda x: x.swapaxes(5, 6), "swapaxes"),
        (lambda x: tenon.concat([]), "concat"),
        (lambda x: x.clip(), "clip"),
        (lambda x: tenon.gt(x, tenon.ones(3)), "gt"),
    ],
)
def test_an_error_names_the_alias_that_was_called(call, name):
    with pytest.raises((ValueError, TypeError, IndexError), match=f"^{name}: "):
        call(tenon.ones(2))


def test_a_power_that_overflows_names_the_scheduler_step():
    scheduler = tenon.optim.lr_scheduler.StepLR(tenon.optim.SGD([tenon.ones(1)], lr=0.1), 2)
    with pytest.raises(OverflowError, match="^step: Numerical result out of range$"):
        scheduler.step(-(2**70))


def test_no_functions_to_checkpoint_leave_the_input():
    x = tenon.ones(2)
    assert checkpoint_sequential([], 1, x) is x


def test_an_error_of_a_function_that_was_given_is_its_own():
    def mine(module):
        raise TypeError("mine")

    with pytest.raises(TypeError, match="^mine$"):
        nn.Linear(1, 1).apply(mine)


def test_a_call_that_succeeds_is_not_compared_with_annotations():
    """An annotation says what is meant, and may say less than what works."""
    assert nn.Linear(2, 3).get_submodule("").in_features == 2
    assert tenon.broadcast_shapes([2, 1], (3,)) == (2, 3)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x, y: tenon.autograd.grad(x.sum(), [x, y]), r"^grad: input 1, float64 \[3\], has no part in the outputs\. One of the diff"),
        (lambda x, y: tenon.autograd.grad(x.sum(), [x, tenon.ones(4)]), r"does not require grad: input 1, float32 \[4\]$"),
        (lambda x, y: tenon.autograd.grad([x.sum(), x * 2], x), r"^grad: grad can be .*; output 1 has shape \[2, 3\]: pass .*`grad_outputs`"),
        (lambda x, y: (x * 2).backward(), r"^backward: grad can be .*; output 0 has shape \[2, 3\]: pass its gradient as `gradient`$"),
        (lambda x, y: tenon.autograd.backward([x.sum(), tenon.ones(1)]), r"^backward: element 1 of tensors does not require grad"),
        (lambda x, y: (x * 2).backward(tenon.ones(3)), r"^backward: Mismatch in shape: .* \[3\] .* \[2, 3\]: `gradient` 0$"),
    ],
)
def test_gradients_say_which_tensor(call, text):
    with pytest.raises(RuntimeError, match=text):
        call(tenon.ones(2, 3, requires_grad=True), tenon.ones(3, dtype=tenon.float64, requires_grad=True))


@pytest.mark.parametrize(
    "equation, shapes, text",
    [
        ("ij,jk->ik", [(2, 3), (4, 2)], "dimension 'j' of 'ij,jk->ik' has size 3 in operand 0 and 4 in operand 1"),
        ("i,j,i->j", [(2,), (3,), (4,)], "dimension 'i' of 'i,j,i->j' has size 2 in operand 0 and 4 in operand 2"),
        ("...a,...b", [(2, 3), (4, 5)], r"dimension \.\.\. of '\.\.\.a,\.\.\.b' has size 2 in operand 0 and 4 in operand 1"),
        ("ii->i", [(2, 3)], "dimension 'i', which is repeated in an operand, needs one size, got 2 and 3"),
        ("ij->iZ", [(2, 3)], "the result of 'ij->iZ' names 'Z', a dimension that no operand has"),
        ("ij->ii", [(2, 3)], "the result of 'ij->ii' names dimension 'i' twice"),
    ],
)
def test_einsum_says_which_letter(equation, shapes, text):
    with pytest.raises(ValueError, match=f"^einsum: {text}$"):
        tenon.einsum(equation, *map(tenon.ones, shapes))


def test_cuda_says_what_to_do():
    with pytest.raises(AttributeError, match=r'Write x\.to\("cuda"\), where a plug-in offers a device of that name'):
        tenon.ones(1).cuda()
    assert not hasattr(tenon.ones(1), "cuda")


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda x: x.index_reduce_(0, tenon.tensor([0.5]), x, "mean"), "index_reduce_: index must be"),
        (lambda x: tenon.logspace(0, 1, -1), "logspace: number of steps must be non-negative, got -1"),
        (lambda x: tenon.transpose_copy(x, 0, 7), "transpose_copy: dimension out of range"),
        (lambda x: tenon.view_copy(x, [7]), r"view_copy: shape \[7\] is invalid"),
        (lambda x: tenon.t_copy(tenon.ones(2, 2, 2)), "t_copy: expects a tensor with <= 2"),
        (lambda x: tenon.linalg.vecdot(x, tenon.ones(4)), r"linalg.vecdot: shapes \[2, 3\] and \[4\] do not broadcast"),
        (lambda x: tenon.linalg.vecdot(x, x, dim=5), "linalg.vecdot: dimension out of range"),
        (lambda x: tenon.linalg.cond(x.long()), "linalg.cond: expected `A` of float32"),
        (lambda x: x.squeeze_(9), "squeeze_: dimension out of range"),
        (lambda x: x.polygamma_("a"), r"polygamma_\(?\)?: argument 'n' must be int"),
        (lambda x: (x + 1j).greater_(x), "greater_: `gt` is not implemented for complex"),
        (lambda x: (x + 1j).fix_(), "fix_: `trunc` is not implemented for complex"),
        (lambda x: tenon.nn.BatchNorm2d(-1), r"BatchNorm2d: sizes \[-1\] contain the negative size"),
        (lambda x: tenon.frobenius_norm(x.long(), 0), "frobenius_norm: expected"),
        (lambda x: tenon.hann_window(3, x), "hann_window: periodic must be a bool, got Tensor"),
        (lambda x: tenon.set_grad_enabled(None), r"set_grad_enabled\(\): argument 'mode' must be a bool, not NoneType"),
        (lambda x: tenon.set_strict(None), r"set_strict\(\): argument 'mode' must be a bool, not NoneType"),
        (lambda x: tenon.autograd.set_detect_anomaly(None), r"set_detect_anomaly\(\): argument 'mode' must be a bool, not NoneType"),
        (lambda x: tenon.distributions.Categorical(x[0]).sample((-1,)), r"Categorical.sample: sizes cannot be negative, got \[-1\]"),
        (lambda x: tenon.nn.functional.grid_sample(x[None, None], x[None], align_corners=True), "grid_sample: expected `input` and `grid`"),
    ],
)
def test_a_message_names_what_was_called(call, text):
    """Not the operators that it is made of."""
    with pytest.raises((RuntimeError, ValueError, TypeError, IndexError, NotImplementedError), match=f"^{text}"):
        call(tenon.ones(2, 3))


def test_a_function_that_is_given_names_itself():
    def f(x):
        return tenon.mm(x, x)

    for call in (lambda: tenon.autograd.gradcheck(f, tenon.ones(2, 3, dtype=tenon.float64, requires_grad=True)),
                 lambda: tenon.autograd.gradcheck(tenon.mm, (tenon.ones(2, 3, requires_grad=True), tenon.ones(2, 3))),
                 lambda: tenon.utils.checkpoint.checkpoint(f, tenon.ones(2, 3), use_reentrant=False)):  # fmt: skip
        with pytest.raises(RuntimeError, match="^mm: "):
            call()


def test_tensors_of_other_libraries_are_called_by_their_names():
    def no_index(self):
        raise TypeError("only integer tensors of a single element can be converted to an index")

    theirs = type("Tensor", (), {"__module__": "torch", "__index__": no_index})()
    with pytest.raises(TypeError, match=r"argument 'input' must be Tensor, not torch\.Tensor"):
        tenon.relu(theirs)
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+"):
        tenon.ones(2) + theirs
    with pytest.raises(TypeError, match=r"no signature takes \(torch\.Tensor\)"):
        tenon.ones(2).sum(theirs)
