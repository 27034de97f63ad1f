"""One batch of the fuzz, in its own process: makes calls from a seed, and says what went wrong."""

import contextlib
import io
import mmap
import os
import random
from collections import Counter

import numpy as np
import public
import wrong
from tenon.conformance import table
from values import FuzzError, Values

import tenon

#: What a caller may meet. ZeroDivisionError and the like are no errors of Tenon; SystemError is a bug of the binding.
CLEAR = (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError, MemoryError, AttributeError, BufferError)
#: The same of functions that are no operators: keys, files, and what Python's own protocols raise.
WRONG = (*CLEAR, LookupError, OSError, OverflowError, StopIteration, RecursionError, UnicodeError)
#: Results that are not determined by the arguments alone.
RANDOM = ("rand", "normal", "uniform", "bernoulli", "dropout", "gamma", "poisson", "binomial", "dirichlet", "cauchy", "geometric", "empty", "resize_", "as_strided")


def callables():
    """(name, callable, operator) of every way in which Python reaches an operator; the overload itself where no other."""
    found = []
    for op in table.operators().values():
        function = getattr(tenon, op.name, None) or getattr(tenon._C, op.name, None)
        if callable(function):
            found.append((f"tenon.{op.name}", function, op))
        method = getattr(tenon.Tensor, op.name, None)
        if callable(method) and op.form != "out" and op.arguments[0].is_tensor:
            found.append((f"Tensor.{op.name}", method, op))
        if op.name not in {o.name for _, _, o in found[-2:]}:
            overload = getattr(getattr(tenon.ops.aten, op.name), op.overload or "default")
            found.append((f"tenon.ops.aten.{op.full_name}", overload, op))
    return found


class Runner:
    def __init__(self, seed, only_operator, progress, wrong_arguments=False):
        self.seed = seed
        if wrong_arguments:
            self.calls = [c for c in public.callables() if not only_operator or only_operator in c.name]
            self.call = self.call_wrongly
        else:
            self.calls = [c for c in callables() if not only_operator or only_operator in c[2].full_name]
        self.problems, self.counts, self.verbose = [], Counter(), False
        self.page = self.open(progress) if progress else None

    @staticmethod
    def open(name):
        with open(name, "r+b") as file:
            file.truncate(4096)
            return mmap.mmap(file.fileno(), 4096)

    def say(self, text):
        """Leaves what is under way where the parent finds it after a crash."""
        if self.page is not None:
            data = text.encode(errors="replace")[:4000] + b"\0"
            self.page[: len(data)] = data
        if self.verbose:
            print(text)

    def call(self, i):
        rng = random.Random(f"{self.seed}:{i}")
        tenon.manual_seed(i)
        values = Values(rng)
        # Special forms that are no operator's name, now and then.
        if rng.random() < 0.06 and "TENON_FUZZ_CRASH" not in os.environ:
            return self.item(i, values)
        name, function, op = rng.choice(self.calls)
        self.say(f"call {i} {name}: making arguments")
        args, kwargs = self.arguments(op, values, rng)
        if os.environ.get("TENON_FUZZ_CRASH") == str(i):
            os.abort()  # what the test of the fuzz itself asks for
        self.run(i, name, function, op, args, kwargs)

    def call_wrongly(self, i):
        """A public function with arguments that are no good: an error whose text says what of, and where."""
        rng = random.Random(f"{self.seed}:{i}")
        tenon.manual_seed(i)
        called = rng.choice(self.calls)
        self.say(f"call {i} {called.name}: making arguments")
        args, kwargs = wrong.arguments(called, rng)
        text = f"{called.name}({', '.join([*map(describe, args), *(f'{k}={describe(v)}' for k, v in kwargs.items())])})"
        self.say(f"call {i} {text}")
        given = [*args, *kwargs.values()]
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                self.guarded(i, text, lambda: result_of(called, args, kwargs), WRONG, lambda e: is_named(e, called, given))
        finally:
            restore()

    def arguments(self, op, values, rng):
        args, kwargs, like, positional = [], {}, None, True
        for argument in op.arguments:
            roll = rng.random()
            if argument.default is not None and not argument.written and roll < 0.5:
                positional = False  # left out, and all after it are named
                continue
            value = values.anything() if rng.random() < 0.06 else values.of(argument, like)
            if like is None and isinstance(value, tenon.Tensor):
                like = value
            if argument.keyword_only or not positional:
                kwargs["input" if argument.name == "self" else argument.name] = value
            else:
                args.append(value)
        roll = rng.random()
        if roll < 0.02:
            args.append(values.anything())
        elif roll < 0.04 and args:
            args.pop()
        elif roll < 0.05:
            kwargs[rng.choice(("dim", "out", "nonsense", "dtype", ""))] = values.anything()
        return args, kwargs

    def item(self, i, values):
        """Indexing, assignment, tensor(data), conversions: the binding's own paths."""
        rng, x = values.rng, values.tensor()
        index = [self.subscript(values, x) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
        key = index[0] if len(index) == 1 else tuple(index)
        forms = {
            "getitem": lambda: x[key],
            "setitem": lambda: x.__setitem__(key, rng.choice((values.number, values.anything, values.tensor))()),
            "tensor": lambda: tenon.tensor(values.anything()),
            "as_tensor": lambda: tenon.as_tensor(values.anything()),
            "tolist": x.tolist,
            "numpy": x.numpy,
            "iterate": lambda: list(x),
            "repr": lambda: repr(x),
            "dlpack": lambda: tenon.from_dlpack(x),
            "backward": lambda: (x * 1).backward(values.matching(x)),
            "float": lambda: float(x),
            "int": lambda: int(x),
            "bool": lambda: bool(x),
            "contains": lambda: values.anything() in x,
            "to": lambda: x.to(values.anything()),
            "grad": lambda: setattr(x, "grad", values.anything()),
        }
        name = rng.choice(sorted(forms))
        self.say(f"call {i} {name} of {describe(x)} at {describe(key)}")
        # int(inf) is refused as Python's own float refuses it.
        clear = (*CLEAR, OverflowError) if name == "int" else CLEAR
        self.guarded(i, f"{name} of {describe(x)} at {describe(key)}", forms[name], clear)

    def subscript(self, values, x):
        rng = values.rng
        return rng.choice(
            (
                lambda: values.integer(),
                lambda: slice(rng.choice((None, 0, 1, -1, 2**63)), rng.choice((None, 2, -1)), rng.choice((None, 1, 2, -1, 0))),
                lambda: None,
                lambda: Ellipsis,
                lambda: values.index_tensor(x),
                lambda: [rng.randint(-2, 2) for _ in range(2)],
                lambda: rng.random() < 0.5,
                values.anything,
            )
        )()

    # One call

    def guarded(self, i, text, call, clear=CLEAR, is_named=None):
        try:
            result = call()
        except FuzzError:
            self.counts["errors of objects handed through"] += 1
        except clear as e:
            if not str(e):
                self.problem(i, f"{text}: {type(e).__name__} without a text")
            elif is_named and not is_named(str(e)):
                self.problem(i, f"{text}: {type(e).__name__} that names no function and no argument: {str(e)[:300]}")
            self.counts[type(e).__name__] += 1
        except RecursionError:
            raise
        except BaseException as e:
            self.problem(i, f"{text}: {type(e).__name__}: {e}")
        else:
            self.counts["results"] += 1
            for t in tensors_of(result):
                if wrong := outside(t):
                    self.problem(i, f"{text}: {wrong}")
            return True, result
        return False, None

    def run(self, i, name, function, op, args, kwargs):
        text = f"{name}({', '.join([*map(describe, args), *(f'{k}={describe(v)}' for k, v in kwargs.items())])})"
        self.say(f"call {i} {text}")
        # PyTorch's schemas of _copy_from and its kin do not say that they write `dst`.
        writes = [a for a in op.arguments if a.written] or "_copy_from" in op.full_name
        before = [(t, snapshot(t)) for t in tensors_of([*args, *kwargs.values()])]
        # What the same call on contiguous copies gives, where the call is a function of the values alone.
        stable = not writes and not op.view and not any(word in op.full_name for word in RANDOM)
        stable = stable and not kwargs.keys() & {"out", "generator"}
        tenon.manual_seed(i)  # for what draws where it is asked to, as attention with dropout
        done, result = self.guarded(i, text, lambda: function(*args, **kwargs))
        if not done or not writes:
            for t, old in before:
                if not unchanged(t, old) and "out" not in kwargs and not strange(args, kwargs):
                    self.problem(i, f"{text}: an argument was changed by a call that {'writes nothing' if done else 'failed'}")
        if done and stable and before and not strange(args, kwargs):
            plain = [t for t, _ in before]
            copied = self.copies(args, kwargs, plain)
            tenon.manual_seed(i)
            again, second = self.guarded(i, text + " on contiguous copies", lambda: function(*copied[0], **copied[1]))
            if not again:
                self.problem(i, f"{text}: fails on contiguous copies")
            elif not alike(result, second):
                self.problem(i, f"{text}: {short(result)}, on contiguous copies {short(second)}")

    @staticmethod
    def copies(args, kwargs, originals):
        made = {id(t): t.detach().clone(memory_format=tenon.contiguous_format) for t in originals}

        def each(v):
            if isinstance(v, tenon.Tensor):
                return made[id(v)]
            return [each(e) for e in v] if type(v) in (list, tuple) else v

        return [each(a) for a in args], {k: each(v) for k, v in kwargs.items()}

    def problem(self, i, text):
        self.problems.append(f"call {i}: {text}")


def result_of(called, args, kwargs):
    """What a public function returns. That two values differ is a result of tenon.testing, which says so by AssertionError."""
    try:
        return called.function(*args, **kwargs)
    except AssertionError:
        if not called.name.startswith("tenon.testing.assert_"):
            raise


def is_named(text, called, given):
    # What the test of the fuzz itself asks for: texts without the words that they contain.
    return public.is_named("" if "TENON_FUZZ_NAMELESS" in os.environ else text, called, given)


def restore():
    """Undoes what a call may have set for the process."""
    tenon.set_default_dtype(tenon.float32)
    tenon.set_grad_enabled(True)
    tenon.set_strict(False)
    tenon.autograd.set_detect_anomaly(False)
    tenon.set_num_threads(2)


def describe(value, depth=0):
    if isinstance(value, tenon.Tensor):
        flags = (" meta" if value.is_meta else "") + (" requires grad" if value.requires_grad else "")
        return f"{str(value.dtype)[6:]}{list(value.shape)}/{list(value.stride())}{flags}"
    if type(value) in (list, tuple):
        return "[" + ", ".join(describe(v, depth + 1) if depth < 5 else "..." for v in value) + "]"
    try:
        return repr(value)[:80]
    except Exception:
        return f"<{type(value).__name__}>"


def short(value):
    try:
        return repr(value)[:200].replace("\n", " ")
    except Exception as e:
        return f"<no repr: {e}>"


def strange(args, kwargs):
    """Whether reading an argument again need not give the same."""
    return any(type(v).__module__ == "values" or hasattr(v, "__next__") for v in [*args, *kwargs.values()])


def tensors_of(value, depth=0):
    if isinstance(value, tenon.Tensor):
        return [value]
    if depth < 5 and (type(value) in (list, tuple) or isinstance(getattr(value, "_fields", None), tuple)):
        return [t for v in value for t in tensors_of(v, depth + 1)]
    return []


def snapshot(t):
    if t.is_meta or t.numel() == 0 or t.numel() > 10**6:
        return None
    t = t.detach()
    return (t.float() if t.dtype is tenon.bfloat16 else t).numpy().copy()


def unchanged(t, old):
    now = None if old is None else snapshot(t)
    return old is None or (now.shape == old.shape and now.tobytes() == old.tobytes())


def outside(t):
    """What is wrong with a result's geometry."""
    if t.numel() == 0 or t.is_meta:
        return ""
    low = high = t.storage_offset()
    for size, stride in zip(t.shape, t.stride()):
        low += min(0, (size - 1) * stride)
        high += max(0, (size - 1) * stride)
    if low < 0 or (high + 1) * t.element_size() > t.untyped_storage().nbytes():
        return f"lies outside of its storage: {describe(t)} at {t.storage_offset()}"
    return ""


def alike(a, b):
    if isinstance(a, tenon.Tensor):
        if not isinstance(b, tenon.Tensor) or a.dtype != b.dtype or a.shape != b.shape or a.is_meta != b.is_meta:
            return False
        if a.is_meta or a.numel() == 0 or a.numel() > 10**5:
            return True
        x, y = snapshot(a), snapshot(b)
        return bool(np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(alike, a, b))
    return a == b or (a != a and b != b)
