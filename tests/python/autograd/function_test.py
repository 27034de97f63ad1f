"""tenon.autograd.Function: what its results are, what its backward gets and may return."""

import gc
import weakref

import pytest

import tenon
from tenon.autograd import Function
from tenon.autograd.function import once_differentiable


def leaf(*values):
    return tenon.tensor(values, requires_grad=True)


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x


def test_a_function_is_a_node_of_the_graph():
    x = leaf(2.0)
    y = Cube.apply(x)
    assert y.tolist() == [8.0] and y.requires_grad
    node = y.grad_fn
    assert node.name() == "CubeBackward" and isinstance(node, tenon.autograd.graph.Node)
    assert node is y.grad_fn and node.next_functions[0][0].name() == "AccumulateGrad"
    assert node.saved_tensors[0] is x
    y.backward()
    assert x.grad.tolist() == [12.0]
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_backward_is_differentiable_itself():
    x = leaf(2.0)
    (first,) = tenon.autograd.grad(Cube.apply(x), x, create_graph=True)
    (second,) = tenon.autograd.grad(first, x, create_graph=True)
    (third,) = tenon.autograd.grad(second, x)
    assert [first.item(), second.item(), third.item()] == [12.0, 12.0, 6.0]


def test_nothing_is_recorded_without_need():
    assert not Cube.apply(tenon.ones(1)).requires_grad
    with tenon.no_grad():
        assert not Cube.apply(leaf(1.0)).requires_grad


def test_setup_context_apart_from_forward():
    class Scale(Function):
        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.factor = inputs
            assert output.tolist() == [6.0]
            assert ctx.needs_input_grad == (True, False)

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.factor, None

    x = leaf(2.0)
    y = Scale.apply(x, 3.0)
    assert y.grad_fn.factor == 3.0
    y.backward()
    assert x.grad.tolist() == [3.0]


def test_missing_gradients_are_zeros_or_none():
    seen = []

    class Split(Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a.tolist(), b if b is None else b.tolist()))
            return (a * 2 if b is None else a * 2 + b * 3), None

    x = leaf(1.0, 1.0)
    for materialize in (True, False):
        Split.apply(x, materialize)[0].sum().backward()
    assert seen == [([1.0, 1.0], [0.0, 0.0]), ([1.0, 1.0], None)]
    assert x.grad.tolist() == [4.0, 4.0]


def test_results_that_are_no_tensors_and_that_have_no_gradient():
    class Sort(Function):
        @staticmethod
        def forward(ctx, x):
            order = tenon.tensor([1, 0])
            mask = x > 1.5
            half = x * 0.5
            ctx.mark_non_differentiable(mask, half)
            return x * 2, "text", order, mask, half

        @staticmethod
        def backward(ctx, *grads):
            assert len(grads) == 5 and grads[1] is None
            assert [g.tolist() for g in grads[2:]] == [[0, 0], [False, False], [0.0, 0.0]]
            return grads[0] * 2

    x = leaf(1.0, 2.0)
    y, text, order, mask, half = Sort.apply(x)
    assert text == "text" and [t.requires_grad for t in (y, order, mask, half)] == [True, False, False, False]
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def returns(count):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            return tuple([grad] * count) if isinstance(count, int) else count

    return Wrong


@pytest.mark.parametrize(
    "result, error, match",
    [
        (1, RuntimeError, r"incorrect number of gradients \(expected 2, got 1\)"),
        (3, RuntimeError, r"incorrect number of gradients \(expected 2, got 3\)"),
        ((None, 5), TypeError, "expected Variable or None at position 2"),
        ((None, None), None, None),
        ((None, None, None), None, None),
    ],
)
def test_what_backward_returns_is_checked(result, error, match):
    x, y = leaf(1.0), leaf(2.0)
    z = returns(result).apply(x, y)
    if error:
        with pytest.raises(error, match=match):
            z.backward()
    else:
        z.backward()
        assert x.grad is None and y.grad is None


def test_a_gradient_for_what_is_no_tensor_is_refused():
    with pytest.raises(RuntimeError, match="gradient different from None at position 2"):
        returns(2).apply(leaf(1.0), 2.0).backward()


def test_a_gradient_of_another_shape_is_refused():
    class Grow(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return tenon.ones(3)

    with pytest.raises(RuntimeError, match=r"GrowBackward returned an invalid gradient at index 0 - got \[3\]"):
        Grow.apply(leaf(1.0, 2.0)).sum().backward()


def test_misuse_says_what_to_do():
    with pytest.raises(RuntimeError, match=r"Cube.apply\(...\)"):
        Cube()
    with pytest.raises(TypeError):
        Cube.apply(x=leaf(1.0))

    class Nothing(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    with pytest.raises(NotImplementedError, match="backward or vjp"):
        Nothing.apply(leaf(1.0)).backward()
    with pytest.raises(NotImplementedError, match="forward"):
        Function.apply(leaf(1.0))
    with pytest.raises(RuntimeError, match="Implementing both"):

        class Both(Function):
            @staticmethod
            def backward(ctx, g):
                return g

            @staticmethod
            def vjp(ctx, g):
                return g

    class Saves(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 3)
            return x * 1

    with pytest.raises(TypeError, match="save_for_backward.*argument 1 is of type int"):
        Saves.apply(leaf(1.0))


def test_errors_of_forward_and_backward_come_through():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x, where):
            ctx.where = where
            return x * (1 / (where != "forward"))

        @staticmethod
        def backward(ctx, grad):
            raise KeyError(ctx.where)

    with pytest.raises(ZeroDivisionError):
        Fails.apply(leaf(1.0), "forward")
    assert tenon.is_grad_enabled()
    with pytest.raises(KeyError, match="backward"):
        Fails.apply(leaf(1.0), "backward").backward()


class Double_(Function):
    """Writes its argument."""

    @staticmethod
    def forward(ctx, x, mark=True, give=True):
        x.mul_(2)
        if mark:
            ctx.mark_dirty(x)
        return x if give else x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None, None


def test_in_place_on_an_argument():
    x = leaf(1.0, 2.0)
    y = x * 3
    z = Double_.apply(y)
    assert z is y and y.grad_fn.name() == "Double_Backward"
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_in_place_on_a_view():
    x = leaf(1.0, 2.0)
    y = x * 3
    Double_.apply(y[:1])
    assert y.grad_fn.name() == "CopySlices"
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 3.0]


def test_in_place_that_is_refused():
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        Double_.apply(leaf(1.0))
    with pytest.raises(RuntimeError, match="marked as dirty during the forward method were not returned"):
        Double_.apply(leaf(1.0) * 1, True, False)

    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2), x + 1

        @staticmethod
        def backward(ctx, a, b):
            return a

    with pytest.raises(RuntimeError, match="cannot return more than one Tensor"):
        Two.apply((leaf(1.0, 2.0) * 1)[:1])


class Same(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 5


def test_an_argument_returned_as_it_is():
    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x and x.is_leaf and y.grad_fn.name() == "SameBackward"
    y.backward()
    assert x.grad.tolist() == [5.0]
    with pytest.raises(RuntimeError, match="an input was returned as-is"):
        Same.apply(x * 1).mul_(2)


def test_views_made_in_forward_may_not_be_written():
    class Head(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.n = len(x)
            return x[:1]

        @staticmethod
        def backward(ctx, grad):
            return tenon.cat([grad, tenon.zeros(ctx.n - 1)])

    x = leaf(1.0, 2.0)
    head = Head.apply(x * 1)
    head.sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]
    with pytest.raises(RuntimeError, match="Output 0 of HeadBackward is a view and is being modified inplace"):
        Head.apply(x * 1).mul_(2)
    base = x * 1
    head = Head.apply(base)
    base.mul_(2)
    with pytest.raises(RuntimeError, match="inside a custom Function"):
        head.grad_fn


def test_several_views_may_not_be_written():
    class Halves(Function):
        @staticmethod
        def forward(ctx, x):
            return x[:1], x[1:]

        @staticmethod
        def backward(ctx, a, b):
            return tenon.cat([a, b])

    a, b = Halves.apply(leaf(1.0, 2.0) * 1)
    with pytest.raises(RuntimeError, match="returns multiple views"):
        b.mul_(2)


def test_saved_results_and_what_changes_them():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    x = leaf(0.0)
    y = Exp.apply(x)
    (g,) = tenon.autograd.grad(y, x, create_graph=True)
    assert tenon.autograd.grad(g, x)[0].tolist() == [1.0]
    y = Exp.apply(x)
    y.add_(1)
    with pytest.raises(RuntimeError, match="ExpBackward.*tensor 0 of save_for_backward, which was changed in place"):
        y.backward()


def test_nothing_is_kept_once_the_results_are_gone():
    x = leaf(1.0)
    y = Cube.apply(x)
    node = y.grad_fn
    watch = weakref.ref(node)
    del y
    with pytest.raises(RuntimeError, match="only after forward has returned"):
        node.next_functions
    del node
    gc.collect()
    assert watch() is None


def test_once_differentiable():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            assert not tenon.is_grad_enabled()
            return grad * 2 * ctx.saved_tensors[0]

    x = leaf(3.0)
    Square.apply(x).backward()
    assert x.grad.tolist() == [6.0]
    one = leaf(1.0)
    (g,) = tenon.autograd.grad(Square.apply(x), x, one, create_graph=True)
    assert g.tolist() == [6.0]
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.backward()


def test_backward_inside_backward():
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            with tenon.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                (x * x).sum().backward()
            return grad * x.grad

    x = leaf(1.0, 2.0)
    Inner.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_vjp_is_another_name_for_backward():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, grad):
            return grad * 2

    x = leaf(1.0)
    Twice.apply(x).backward()
    assert x.grad.tolist() == [2.0]
