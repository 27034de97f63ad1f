"""The reference of these tests: the same lines, eager. Everything that a program can see is compared."""

import copy
import functools
import warnings

import tenon

#: How programs are compiled: as users do, so that every operator is recorded, however small, and so that calls are replayed.
WAYS = {"default": {}, "everything": {"threshold": 0}, "pure": {"pure": True}}


#: Those that promise nothing of what a program reads besides its arguments.
RECORDED = {way: options for way, options in WAYS.items() if "pure" not in options}


def plain(fn=None, **_):
    """Stands for tenon.compile, with its ways to be called, and compiles nothing."""
    return fn if fn is not None else (lambda f: f)


def bits(t):
    """The bytes of the elements in order."""
    t = t.detach().resolve_conj().contiguous().clone()
    if t.dtype == tenon.bfloat16:
        t = t.view(tenon.int16)
    return t.numpy().tobytes()


class Description:
    """What a program can see of values, as plain data in which equal means the same.

    Storages have numbers in the order in which they are first seen, so aliases and addresses that changed show."""

    def __init__(self):
        self.tensors, self.storages = [], []

    def storage(self, t):
        held = t.untyped_storage()
        for number, known in enumerate(self.storages):
            if known.data_ptr() == held.data_ptr() and held.nbytes():
                return number
        self.storages.append(held)  # which keeps its address from serving another
        return len(self.storages) - 1

    def tensor(self, t):
        for number, known in enumerate(self.tensors):
            if known is t:
                return f"tensor {number} again"
        self.tensors.append(t)
        try:
            version = t._version
        except RuntimeError as e:  # an inference tensor
            version = str(e)
        return {
            "dtype": str(t.dtype), "shape": tuple(t.shape), "strides": t.stride(), "offset": t.storage_offset(),
            "version": version, "storage": self.storage(t), "bytes": t.untyped_storage().nbytes(),
            "requires_grad": t.requires_grad, "is_leaf": t.is_leaf, "grad_fn": t.grad_fn and t.grad_fn.name(),
            "base": t._base is not None, "bits": bits(t),
            "grad": None if not t.is_leaf or t.grad is None else self.of(t.grad),
        }  # fmt: skip

    def of(self, value):
        if isinstance(value, tenon.Tensor):
            return self.tensor(value)
        if isinstance(value, float):
            return value.hex()
        if isinstance(value, dict):
            return {key: self.of(v) for key, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [type(value).__name__, *map(self.of, value)]
        if isinstance(value, tenon.nn.Module):
            return [type(value).__name__, *((name, self.of(t)) for name, t in
                                            [*value.named_parameters(), *value.named_buffers()])]  # fmt: skip
        if isinstance(value, tenon.optim.Optimizer):
            return self.of(value.state_dict())
        if isinstance(value, tenon.Generator):
            return bits(value.get_state())
        if isinstance(value, BaseException):
            return [type(value).__name__, str(value)]
        return value


def modes():
    """What a program may switch for its thread or process, and has to leave alike."""
    return {
        "grad": tenon.is_grad_enabled(), "inference": tenon.is_inference_mode_enabled(), "strict": tenon.is_strict(),
        "threads": tenon.get_num_threads(), "dtype": str(tenon.get_default_dtype()),
    }  # fmt: skip


def outcome(run, kept=()):
    """What `run()` returns or raises, what it makes of the tensors that are `kept`, of random numbers and of modes."""
    before = modes()
    tenon.manual_seed(0)
    description = Description()
    description.of(list(kept))  # their storages come first
    description.tensors.clear()
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"compile\(pure=True\)")  # that it does not replay
            result, raised = run(), None
    except Exception as e:
        result, raised = None, e
    seen = {
        "raised": description.of(raised), "result": description.of(result), "arguments": description.of(list(kept)),
        "random": bits(tenon.get_rng_state()), "modes": modes(),
    }  # fmt: skip
    if before != seen["modes"]:
        tenon.set_strict(before["strict"])
        tenon.set_num_threads(before["threads"])
        tenon.set_default_dtype(getattr(tenon, before["dtype"].removeprefix("tenon.")))
    return seen


def difference(theirs, ours, path=""):
    """Where two descriptions differ first; None where they are the same."""
    if type(theirs) is not type(ours):
        return f"{path}: {theirs!r} became {ours!r}"
    if isinstance(theirs, dict) and theirs.keys() == ours.keys():
        pairs = [(f"{path}.{key}", theirs[key], ours[key]) for key in theirs]
    elif isinstance(theirs, (list, tuple)) and len(theirs) == len(ours):
        pairs = [(f"{path}[{i}]", a, b) for i, (a, b) in enumerate(zip(theirs, ours))]
    else:
        return None if theirs == ours else f"{path}: {theirs!r} became {ours!r}"
    return next((found for name, a, b in pairs if (found := difference(a, b, name))), None)


def check(eager, compiled, way, more_in_errors):
    compiled = dict(compiled)
    raised = compiled["raised"]
    if more_in_errors and raised and eager["raised"] and raised[0] == eager["raised"][0]:
        # Which of the operators of a composite it names, and where that was recorded.
        if raised[1].partition(": ")[2].startswith(eager["raised"][1].partition(": ")[2]):
            compiled["raised"] = eager["raised"]
    found = difference(eager, compiled)
    assert found is None, f"compiled ({way}), {found}"


def alike(program, more_in_errors=False, ways=WAYS):
    """Runs `program(compile)`, which makes all that it needs, with and without compiling; returns what eager did.

    more_in_errors: the error may name an operator that eager's was made of, and say where it was recorded."""
    eager = outcome(lambda: program(plain))
    for way, options in ways.items():
        check(eager, outcome(lambda: program(functools.partial(compile_with, options))), way, more_in_errors)
    return eager


def compile_with(options, fn=None, **more):
    return tenon.compile(fn, **{**options, **more})


def calls_of(options):
    """How often `same` calls a function that is compiled with those options: pure ones are replayed from the third call on."""
    return 4 if "pure" in options else 2


#: How often `same` calls a function in all, eager and compiled.
CALLS = 1 + sum(map(calls_of, WAYS.values()))


def same(f, *args, more_in_errors=False, **options):
    """Runs `f(*args)` with and without compiling, each on copies of the arguments, and compares result, arguments and
    error; returns what eager did. A second call of the compiled function takes the path that the first one left."""
    given = copy.deepcopy(args)
    eager = outcome(lambda: f(*given), given)
    for way, more in WAYS.items():
        compiled = tenon.compile(f, **{**more, **options})
        for call in range(1, calls_of(more) + 1):
            given = copy.deepcopy(args)
            check(eager, outcome(lambda: compiled(*given), given), f"{way}, call {call}", more_in_errors)
    return eager


def counted(name="planned"):
    """A count of the process: "planned", "recorded", "now", ..."""
    return tenon._C._record_stats()[name]


def plans_of(f, *calls):
    """How many plans each call of `f` made; a call is the tuple of its arguments."""
    made = []
    for arguments in calls:
        before = counted()
        f(*arguments)
        made.append(counted() - before)
    return made
