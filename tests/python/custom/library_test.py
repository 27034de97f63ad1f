"""tenon.library: declaring operators, registering kernels in Python, and what is refused."""

import gc
import threading

import numpy as np
import pytest

import tenon
from tenon.library import Library, custom_op, define, fallthrough_kernel, impl, register_fake, register_kernel


@pytest.fixture
def lib():
    with Library("libtest", "FRAGMENT") as library:
        yield library


def declare(lib, schema, fn=None, key="CPU", **kwargs):
    name = lib.define(schema)
    if fn is not None:
        lib.impl(name, fn, key, **kwargs)
    return getattr(tenon.ops.libtest, name.partition(".")[0])


def test_define_then_impl_then_call(lib):
    op = declare(lib, "scale(Tensor x, float by, *, int n=2) -> Tensor", lambda x, by, *, n: x * by * n)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = tenon.from_numpy(x)
    np.testing.assert_array_equal(op(t, 1.5).numpy(), x * 3.0)
    np.testing.assert_array_equal(op(t, by=1.5, n=4).numpy(), x * 6.0)
    np.testing.assert_array_equal(op.default(t.t(), 1.5).numpy(), x.T * 3.0)
    assert repr(op) == "<OpOverloadPacket(op='libtest.scale')>"
    assert repr(op.default) == "<OpOverload(op='libtest.scale', overload='default')>"
    assert str(op) == "libtest.scale" and str(op.default) == "libtest.scale.default"
    assert op.overloads() == ["default"] and op.default.name() == "libtest::scale"
    assert op.default._schema == "libtest::scale(Tensor x, float by, *, int n=2) -> Tensor"


def test_arguments_reach_the_kernel_as_the_schema_has_them(lib):
    seen = []

    def kernel(*args, **kwargs):
        seen.append((args, kwargs))

    op = declare(
        lib,
        "all(Tensor t, Tensor? u, Tensor[] l, Tensor?[] m, int i, float f, bool b, str s, Scalar c, ScalarType d, "
        "Device e, Layout g, MemoryFormat h, Generator? k, int[2] p, float[] q, bool[] r, int[]? o=None, *, "
        "int[] z=[1, 2]) -> ()",
        kernel,
    )
    x, g = tenon.ones(2), tenon.Generator()
    assert op(
        x, None, (x, x), [None, x], np.int32(3), 2, True, "s", 1 + 2j, float, "cpu", tenon.strided,
        tenon.contiguous_format, g, 5, (1, 2.5), [True, False],
    ) is None  # fmt: skip
    (args, kwargs), = seen
    assert args[0] is x and args[1] is None and args[2] == [x, x] and args[3][0] is None and args[3][1] is x
    assert args[4] == 3 and type(args[4]) is int and args[5] == 2.0 and type(args[5]) is float
    assert args[6:9] == (True, "s", 1 + 2j)
    assert args[9] is tenon.float64 and args[10] == tenon.device("cpu") and args[11] is tenon.strided
    g.manual_seed(123)
    assert args[12] is tenon.contiguous_format and args[13].initial_seed() == 123
    assert args[14:] == ([5, 5], [1.0, 2.5], [True, False], None) and kwargs == {"z": [1, 2]}
    kwargs["z"].append(3)  # a default is no place to leave things
    op(*args)
    assert seen[1][1] == {"z": [1, 2]}


def test_lists_are_a_calls_own(lib):
    seen, kept = [], []

    def kernel(x, pair, numbers):
        seen.append((list(pair), list(numbers)))
        if len(seen) % 2:
            kept.append(numbers)
        pair.append(9)
        numbers.insert(0, 8)
        return x + 1

    op = declare(lib, "lists(Tensor x, int[2] pair, int[] numbers) -> Tensor", kernel)
    x, given = tenon.zeros(1), [1, 2]
    for _ in range(3):
        for numbers in (given, (1, 2), [1, 2]):
            op(x, 5, numbers)
    assert given == [1, 2] and seen == [([5, 5], [1, 2])] * 9 and kept == [[8, 1, 2]] * 5

    op = declare(lib, "same(Tensor x, int[2] pair, int[] numbers) -> Tensor", lambda x, p, n: tenon.tensor([*p, -1, *n]))
    for pair, numbers, wanted in [
        (5, [7], [5, 5, -1, 7]), (5, [7], [5, 5, -1, 7]), ([5, 5, 5], (7, 7), [5, 5, 5, -1, 7, 7]), (5, [7, 7], [5, 5, -1, 7, 7]),
        ((5, 5), [], [5, 5, -1]), (5, (), [5, 5, -1]), ([4, 5], [7, 8], [4, 5, -1, 7, 8]), ([5, 4], (8, 7), [5, 4, -1, 8, 7]),
    ]:  # fmt: skip
        assert op(x, pair, numbers).tolist() == wanted
    op(x, 5, [7])
    with pytest.raises(TypeError, match="argument 'numbers' must be"):
        op(x, 5, 7)


def test_boxed_calls_bring_the_same_arguments(lib):
    # The trace takes calls through the boxed path.
    seen = []

    def kernel(x, l, p, d, c, *, s):
        seen.append((l, p, d, c, s))
        return [x + 1, x + 2], 7, 1.5, "t", [3, 4], True

    op = declare(
        lib,
        "boxed(Tensor x, Tensor?[] l, int[2] p, ScalarType d, Scalar c, *, str? s=None) -> "
        "(Tensor[], int, float, str, int[], bool)",
        kernel,
    )
    x = tenon.zeros(2)
    direct = op(x, [None, x], 5, int, 2.5)
    with tenon.dispatch.trace() as lines:
        traced = op(x, [None, x], 5, int, 2.5)
    assert any("op=[libtest::boxed]" in line for line in lines)
    assert seen[0][1:] == seen[1][1:] == ([5, 5], tenon.int64, 2.5, None)
    assert seen[1][0][0] is None and seen[1][0][1] is x
    assert [t.tolist() for t in direct[0]] == [t.tolist() for t in traced[0]] == [[1.0, 1.0], [2.0, 2.0]]
    assert direct[1:] == traced[1:] == (7, 1.5, "t", [3, 4], True)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda op, x: op(), "misses argument 'x'"),
        (lambda op, x: op(2.0, 1), "argument 'x' must be Tensor, not float"),
        (lambda op, x: op(x, "a"), "argument 'n' must be int, not str"),
        (lambda op, x: op(x, 1, 2), "takes 2 positional arguments, got 3"),
        (lambda op, x: op(x, 1, x=x), "two values for argument 'x'"),
        (lambda op, x: op(x, 1, m=3), "unexpected keyword argument 'm'"),
        (lambda op, x: op(None, 1), "argument 'x' must be Tensor, not NoneType"),
    ],
)
def test_arguments_that_do_not_fit(lib, call, message):
    op = declare(lib, "picky(Tensor x, int n=1) -> Tensor", lambda x, n: x + n)
    with pytest.raises(TypeError, match=message) as e:
        call(op, tenon.ones(1))
    assert "libtest::picky" in str(e.value)


def test_an_integer_beyond_64_bits_is_refused(lib):
    op = declare(lib, "wide(Tensor x, int n) -> Tensor", lambda x, n: x + 1)
    with pytest.raises(ValueError, match="64 bits"):
        op(tenon.ones(1), 1 << 64)


def test_overloads(lib):
    lib.define("pick.Tensor(Tensor x) -> int")
    lib.define("pick.name(str x) -> int")
    lib.define("pick(int x) -> int")
    for overload, value in (("pick.Tensor", 1), ("pick.name", 2), ("pick", 3)):
        lib.impl(overload, lambda x, value=value: value)
    op = tenon.ops.libtest.pick
    assert [op(tenon.ones(1)), op("a"), op(5)] == [1, 2, 3]
    assert op.overloads() == ["default", "Tensor", "name"]
    assert op.name("b") == 2 and op.Tensor.overloadpacket is op
    with pytest.raises(TypeError, match="no overload takes") as e:
        op([])
    assert "pick.name(str x)" in str(e.value)


def test_builtin_operators_are_there():
    x = tenon.tensor([1.0, 2.0])
    assert tenon.ops.aten.add.Tensor(x, x, alpha=2).tolist() == [3.0, 6.0]
    assert tenon.ops.aten.mul(x, 3.0).tolist() == [3.0, 6.0]
    assert tenon.ops.aten.mul(x, tenon.tensor(3.0)).tolist() == [3.0, 6.0]
    values, indices = tenon.ops.aten.max.dim(x, 0)
    assert values.item() == 2.0 and indices.item() == 1
    assert tenon.ops.aten.zeros([2], dtype=tenon.int64).tolist() == [0, 0]
    out = tenon.empty(2)
    assert tenon.ops.aten.add.out(x, x, out=out) is out and out.tolist() == [2.0, 4.0]
    before = x._version
    assert tenon.ops.aten.add_.Tensor(x, x) is x and x._version == before + 1


def test_unknown_operators_suggest_near_names():
    with pytest.raises(AttributeError, match="did you mean 'softmax'"):
        tenon.ops.aten.sofmax
    with pytest.raises(AttributeError, match="no operator is declared in namespace"):
        tenon.ops.no_such_namespace.f
    assert not hasattr(tenon.ops, "__wrapped__")


def test_keys_and_precedence(lib):
    op = declare(lib, "who(Tensor x) -> str")
    with pytest.raises(NotImplementedError, match="libtest::who.*not implemented for device cpu"):
        op(tenon.ones(1))
    lib.impl("who", lambda x: "catch-all")
    assert op(tenon.ones(1)) == "catch-all"
    lib.impl("who", lambda x: "explicit", "CompositeExplicit")
    lib.impl("who", lambda x: "cpu", "CPU")
    lib.impl("who", lambda x: "meta", "Meta")
    assert op(tenon.ones(1)) == "cpu" and op(tenon.ones(1, device="meta")) == "meta"
    with pytest.raises(ValueError, match="no such key"):
        lib.impl("who", lambda x: "", "no such key")


def test_a_newer_kernel_overrides_until_its_library_goes(lib):
    op = declare(lib, "layer(Tensor x) -> int", lambda x: 1)
    x = tenon.ones(1)
    assert op(x) == 1
    with Library("libtest", "IMPL", "CPU") as newer:
        newer.impl("layer", lambda x: 2)
        assert op(x) == 2
        dump = tenon.dispatch.dump_registrations(op)
        assert dump.count("library_test.py") >= 3 and "overrides" in dump
    assert op(x) == 1
    third = Library("libtest", "IMPL")
    third.impl(op.default, lambda x: 3, "CPU")
    assert op(x) == 3
    del third
    gc.collect()
    assert op(x) == 1


def test_the_line_of_a_registration_is_kept(lib):
    import inspect

    name = lib.define("line(Tensor x) -> int")
    lib.impl(name, lambda x: 1, "CPU")
    line = inspect.currentframe().f_lineno - 1
    (kernel,) = tenon.dispatch.registrations("libtest::line")
    assert kernel.file == __file__ and kernel.line == line and kernel.key == "CPU" and kernel.active
    assert tenon.dispatch.defined_at("libtest::line") == (__file__, line - 1)


def test_a_destroyed_library_takes_its_operators_along():
    library = Library("shortlived", "DEF")
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x + 1, "CPU")
    op = tenon.ops.shortlived.f
    assert op(tenon.ones(1)).item() == 2.0
    with pytest.raises(ValueError, match="FRAGMENT"):
        Library("shortlived", "DEF")
    library._destroy()
    library._destroy()
    with pytest.raises(NotImplementedError, match="shortlived::f"):
        op(tenon.ones(1))
    with pytest.raises(AttributeError):
        tenon.ops.shortlived.f
    with pytest.raises(RuntimeError, match="destroyed"):
        library.define("g() -> ()")
    with Library("shortlived", "DEF") as library:
        library.define("f(Tensor x, int n) -> Tensor")
        library.impl("f", lambda x, n: x + n, "CPU")
        # An object from before follows the schema that there is now.
        assert op(tenon.ones(1), 5).item() == 6.0 and tenon.ops.shortlived.f(tenon.ones(1), 5).item() == 6.0


def test_a_kernel_may_remove_itself(lib):
    inner = Library("libtest", "IMPL")
    op = declare(lib, "vanish(Tensor x) -> int", lambda x: 1)

    def kernel(x):
        inner._destroy()
        gc.collect()
        return 2

    inner.impl("vanish", kernel, "CPU")
    del kernel
    assert [op(tenon.ones(1)), op(tenon.ones(1))] == [2, 1]


def test_impl_before_define():
    with Library("latecomer", "IMPL") as kernels, Library("latecomer", "FRAGMENT") as declarations:
        kernels.impl("f", lambda x, n: x * n, "CPU")
        with pytest.raises(TypeError, match="takes no argument `m`"):
            declarations.define("f(Tensor x, int n, int m) -> Tensor")
        declarations.define("f(Tensor x, int n) -> Tensor")
        assert tenon.ops.latecomer.f(tenon.ones(1), 3).item() == 3.0


@pytest.mark.parametrize(
    "kernel, message",
    [
        (lambda x: x, "takes no argument `w`"),
        (lambda x, w, b, *, eps: x, "parameter `b` is no argument"),
        (lambda w, x, *, eps: x, r"parameter 0 is called `w`, but argument 0 is `x`"),
        (lambda x, w: x, "takes no keyword argument `eps`"),
        (lambda *, x, w, eps: x, "takes no argument `x`"),
    ],
)
def test_a_kernel_that_does_not_fit_is_refused_when_registered(lib, kernel, message):
    lib.define("norm(Tensor x, Tensor w, *, float eps=1e-5) -> Tensor")
    with pytest.raises(TypeError, match=message) as e:
        lib.impl("norm", kernel, "CPU")
    assert "libtest::norm" in str(e.value) and "library_test.py" in str(e.value)
    assert not tenon.dispatch.has_kernel("libtest::norm")


def test_kernels_of_every_make_are_accepted(lib):
    import functools

    class Callable:
        def __call__(self, x, w, eps):
            return x + 3

        def method(self, a, b, eps=None):
            return x + 4

    lib.define("makes(Tensor x, Tensor w, *, float eps=1e-5) -> Tensor")
    x = tenon.zeros(1)
    kernels = [
        lambda *args, **kw: x + 1,
        functools.partial(lambda k, x, w, *, eps: x + k, 2),
        Callable(),
        Callable().method,
        lambda a, b, *, eps, more=1: x + 5,
    ]
    for i, kernel in enumerate(kernels):
        with Library("libtest", "IMPL") as one:
            one.impl("makes", kernel, "CPU")
            assert tenon.ops.libtest.makes(x, x).item() == i + 1
    with pytest.raises(TypeError, match="callable"):
        lib.impl("makes", 3, "CPU")


class Oops(Exception):
    pass


def test_an_exception_passes_unchanged(lib):
    error = Oops("inside")

    def kernel(x):
        raise error

    op = declare(lib, "fail(Tensor x) -> Tensor", kernel)
    for traced in (False, True):
        with pytest.raises(Oops) as e:
            if traced:
                with tenon.dispatch.trace():
                    op(tenon.ones(1))
            else:
                op(tenon.ones(1))
        assert e.value is error
        assert any(f.name == "kernel" for f in e.traceback)


@pytest.mark.parametrize(
    "returns, result, error, message",
    [
        ("Tensor", lambda x: 1.0, TypeError, "return 0 must be Tensor, not float"),
        ("Tensor", lambda x: None, TypeError, "return 0 must be Tensor, not NoneType"),
        ("(Tensor, Tensor)", lambda x: x + 1, TypeError, "must return 2 values as a tuple, not a Tensor"),
        ("(Tensor, Tensor)", lambda x: (x + 1,), TypeError, "returned 1 values, the schema has 2"),
        ("(Tensor, int)", lambda x: (x + 1, 1.5), TypeError, "return 1 must be int, not float"),
        ("(Tensor, Tensor)", lambda x: [x + 1, None], TypeError, "return 1 must be Tensor, not NoneType"),
        ("Tensor[]", lambda x: x + 1, TypeError, r"return 0 must be Tensor\[\], not Tensor"),
        ("int", lambda x: True, TypeError, "return 0 must be int, not bool"),
        ("()", lambda x: x + 1, TypeError, "returned a Tensor, but the schema returns nothing"),
        ("Tensor", lambda x: tenon.ones(1, device="meta"), RuntimeError, "return 0 is on meta, expected a tensor on cpu"),
        ("Tensor", lambda x: x, RuntimeError, "return 0 is argument `x` or a view of it"),
        ("Tensor", lambda x: x[:1], RuntimeError, "return 0 is argument `x` or a view of it"),
        ("Tensor[]", lambda x: [x + 1, x.t()], RuntimeError, "return 0 is argument `x` or a view of it"),
    ],
)
def test_results_that_do_not_fit(lib, returns, result, error, message):
    op = declare(lib, f"bad(Tensor x) -> {returns}", lambda x: result(x))
    for call in (lambda: op(tenon.ones(2, 2)), lambda: traced(op)):
        with pytest.raises(error, match=message) as e:
            call()
        assert "libtest::bad: the kernel for CPU" in str(e.value) and "library_test.py" in str(e.value)


def traced(op):
    with tenon.dispatch.trace():
        return op(tenon.ones(2, 2))


def test_two_results_over_one_memory_are_refused(lib):
    def kernel(x):
        y = x + 1
        return y, y.view(-1)

    op = declare(lib, "twice(Tensor x) -> (Tensor, Tensor)", kernel)
    with pytest.raises(RuntimeError, match="returns 0 and 1 share their memory"):
        op(tenon.ones(2))


def test_annotated_aliases(lib):
    def write(x, n):
        x.add_(n)
        return x

    add_ = declare(lib, "add_(Tensor(a!) x, int n) -> Tensor(a!)", write)
    view = declare(lib, "half(Tensor(a) x) -> Tensor(a)", lambda x: x[: x.shape[0] // 2])
    wrong = declare(lib, "wrong_(Tensor(a!) x) -> Tensor(a!)", lambda x: x + 1)
    quiet = declare(lib, "quiet(Tensor(a!) x) -> ()", lambda x: None)
    listed = declare(lib, "listed(Tensor(a!)[] x) -> ()", lambda x: None)
    x = tenon.zeros(4)
    version = x._version
    assert add_(x, 2) is x and x.tolist() == [2.0] * 4
    assert x._version == version + 1  # one write, however many operators it passed through
    quiet(x)
    assert x._version == version + 2
    listed([x])
    assert x._version == version + 3
    h = view(x)
    assert h.data_ptr() == x.data_ptr() and h.shape == (2,)
    with pytest.raises(RuntimeError, match="must be argument `x` itself"):
        wrong(x)


def test_writing_read_only_memory_is_refused(lib):
    array = np.zeros(3, dtype=np.float32)
    array.flags.writeable = False
    op = declare(lib, "touch(Tensor(a!) x) -> ()", lambda x: None)
    with pytest.raises(RuntimeError, match="may only be read"):
        op(tenon.from_numpy(array))


def test_keysets_and_redispatch(lib):
    seen = []

    def above(keys, x):
        seen.append(keys)
        return op.default.redispatch(keys.below("AutogradCPU"), x)

    op = declare(lib, "down(Tensor x) -> Tensor", lambda x: x.detach() * 2)
    lib.impl("down", above, "Autograd", with_keyset=True)
    x = tenon.ones(2, requires_grad=True)
    assert op(x).tolist() == [2.0, 2.0]
    assert repr(seen[0]) == "DispatchKeySet(CPU, AutogradCPU)" and seen[0].names() == ["CPU", "AutogradCPU"]
    assert op(x.detach()).tolist() == [2.0, 2.0] and len(seen) == 1
    with pytest.raises(TypeError, match="DispatchKeySet"):
        op.default.redispatch(x)


def test_a_fallthrough_steps_aside(lib):
    op = declare(lib, "aside(Tensor x) -> int", lambda x: 1)
    lib.impl("aside", lambda x: 2, "AutogradCPU")
    x = tenon.ones(1, requires_grad=True)
    assert op(x) == 2
    lib.impl("aside", fallthrough_kernel, "AutogradCPU")
    assert op(x) == 1 and tenon.dispatch.is_fallthrough(op, "AutogradCPU")


def test_functions_by_qualified_name():
    define("libfn::double", "(Tensor x) -> Tensor")

    @impl("libfn::double", "cpu")
    def double(x):
        return x * 2

    @register_fake("libfn::double")
    def fake(x):
        return tenon.empty_like(x)

    assert double(tenon.ones(1)).item() == 2.0  # the decorator gives the function back
    assert tenon.ops.libfn.double(tenon.ones(1)).item() == 2.0
    assert tenon.ops.libfn.double(tenon.ones(2, 3, device="meta")).shape == (2, 3)
    register_kernel("libfn::double", ["cpu", "meta"], lambda x: x * 3)
    assert tenon.ops.libfn.double(tenon.ones(1)).item() == 3.0
    with pytest.raises(ValueError, match="namespace::name"):
        define("double", "(Tensor x) -> Tensor")

    with Library("libfn", "FRAGMENT") as lib:

        @define(lib, "triple(Tensor x) -> Tensor")
        def triple(x):
            return x * 3

        @impl(lib, "triple", "Meta")
        def triple_meta(x):
            return tenon.empty_like(x)

        assert tenon.ops.libfn.triple(tenon.ones(1)).item() == 3.0
        assert tenon.ops.libfn.triple(tenon.ones(4, device="meta")).is_meta


def test_a_fake_must_be_on_meta(lib):
    op = declare(lib, "real(Tensor x) -> Tensor", lambda x: x + 1)
    lib.impl("real", lambda x: tenon.zeros(2), "Meta")
    with pytest.raises(RuntimeError, match="the kernel for Meta .* return 0 is on cpu, expected a tensor on meta"):
        op(tenon.ones(2, device="meta"))


def test_bad_schemas_and_kinds(lib):
    with pytest.raises(ValueError, match="column"):
        lib.define("f(Tensor ) -> Tensor")
    with pytest.raises(ValueError, match="declared twice"):
        lib.define("g() -> ()")
        lib.define("g() -> ()")
    with pytest.raises(ValueError, match="kind is 'DEFINE'"):
        Library("libtest", "DEFINE")
    with pytest.raises(ValueError, match="IMPL"):
        Library("libtest", "IMPL").define("h() -> ()")
    with pytest.raises(ValueError, match="namespace"):
        lib.impl("other::f", lambda: None)


def test_calls_from_several_threads_while_kernels_come_and_go(lib):
    op = declare(lib, "race(Tensor x) -> Tensor", lambda x: x + 1)
    stop, wrong = threading.Event(), []

    def call():
        x = tenon.zeros(1)
        while not stop.is_set():
            if op(x).item() not in (1.0, 2.0):
                wrong.append(1)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for t in threads:
        t.start()
    for _ in range(200):
        with Library("libtest", "IMPL") as other:
            other.impl("race", lambda x: x + 2, "CPU")
    stop.set()
    for t in threads:
        t.join()
    assert not wrong


def test_a_kernel_is_freed_with_its_library(lib):
    import weakref

    class Kernel:
        def __call__(self, x):
            return x + 1

    kernel = Kernel()
    gone = weakref.ref(kernel)
    other = Library("libtest", "IMPL")
    op = declare(lib, "freed(Tensor x) -> Tensor")
    other.impl("freed", kernel, "CPU")
    op(tenon.ones(1))
    del kernel
    assert gone() is not None
    other._destroy()
    gc.collect()
    assert gone() is None


def test_calls_leave_no_references_behind(lib):
    import sys

    def kernel(x, xs, n, *, sizes):
        if n < 0:
            raise Oops()
        return (x + n, [y + 1 for y in xs]) if n else x

    op = declare(lib, "leak(Tensor x, Tensor[] xs, int n, *, int[] sizes=[1, 2]) -> (Tensor, Tensor[])", kernel)
    tenon.library.register_autograd("libtest::leak", lambda ctx, g, gs: (g, None, None), lib=lib)
    x, y = tenon.ones(2), tenon.ones(2, requires_grad=True)
    xs, sizes, n = [x, y], (3, 4), 12345678

    def counts():
        gc.collect()
        return [sys.getrefcount(o) for o in (x, y, xs, sizes, n, kernel)]

    def everything():
        for first in (x, y):
            op(first, xs, n, sizes=sizes)
            for wrong in ((first, xs, -1), (first, xs, 0), (first, xs), (first, [1], n)):
                with pytest.raises((Oops, TypeError)):
                    op(*wrong)
        op(y, xs, n)[0].sum().backward()

    everything()
    before = counts()
    for _ in range(50):
        everything()
    assert counts() == before


@pytest.mark.parametrize("key", ["Autogard", "FOO", "Cpu", "AutogradCpu", "cpu", "Dense"])
def test_misspelt_keys_are_refused(key):
    with Library("keys_test", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        with pytest.raises(ValueError, match="key"):
            lib.impl("f", lambda x: x * 1, key)


@pytest.mark.parametrize("key", ["CPU", "CUDA", "Meta", "AutogradCPU", "CompositeExplicitAutograd", "Autograd"])
def test_known_keys_are_taken(key):
    with Library("keys_test", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x * 1, key)


def test_a_custom_operator_that_fails_leaves_nothing():
    with pytest.raises(NotImplementedError, match="str\\[\\]"):

        @custom_op("keys_test::texts", mutates_args=())
        def texts(x: tenon.Tensor, s: list[str]) -> tenon.Tensor:
            return x * 1

    with pytest.raises(NotImplementedError, match="'keys_test::texts' does not exist"):
        tenon.dispatch.schema("keys_test::texts")


@pytest.mark.parametrize(
    "type, word, value",
    [("Layout", word, word) for word in ["strided", "sparse_coo", "sparse_csr", "blocked"]]
    + [("MemoryFormat", f, f) for f in ["contiguous_format", "preserve_format", "channels_last", "channels_last_3d"]]
    + [("ScalarType", word, dtype) for word, dtype in [("long", "int64"), ("float8_e5m2", "float8_e5m2"), ("bool", "bool")]],
)
def test_every_word_is_a_default(lib, type, word, value):
    seen = []
    op = declare(lib, f"word_{word}(Tensor x, *, {type} d={word}) -> Tensor", lambda x, *, d: seen.append(d) or x.clone())
    op(tenon.ones(1))
    assert seen == [getattr(tenon, value)] and seen[0] is getattr(tenon, value)
