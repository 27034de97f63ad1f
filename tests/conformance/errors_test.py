"""What every operator refuses: arguments of wrong kinds, dimensions out of range, shapes and devices that do not fit."""

import pytest

import tenon
from tenon.conformance import check, table
from tenon.conformance.dtypes import axis
from tenon.conformance.families import row_of
from tenon.conformance.library import TENON
from tenon.conformance.samples import Sample, Spec
from conformance.values_test import ENTRIES, bound, problems_of, report

FORMS = {o.full_name: (e, o) for e in ENTRIES.values() for o in e.operators if o.form != "out"}


def sample_of(op, row, dtype):
    """Arguments that the operator takes, of a dtype; or None."""
    for kind in ("plain", "negative", "zero_dim"):
        for s in check.samples_of(op, row, dtype, kind):
            if not row.refuses(s) and not (op.form == "inplace" and not row.fills and check.unwritable(s)):
                return s
    return None


def good_sample(op, row):
    """Arguments that the operator takes, in float32 or else int64 or complex64."""
    for dtype in ("float32", "int64", "complex64"):
        if s := sample_of(op, row, dtype):
            return dtype, s
    return None, None


def replaced(s, i, value):
    return Sample(tuple(value if k == i else a for k, a in enumerate(s.args)), s.kwargs)


def wrong_calls(op, row, s):
    """(what is wrong, sample, exceptions): one argument of a good sample spoilt at a time."""
    positional = [a for a in op.arguments if not a.keyword_only]
    for i, (argument, value) in enumerate(zip(positional, s.args)):
        if isinstance(value, Spec):
            yield f"{argument.name} is a text", replaced(s, i, "text"), (TypeError, AttributeError)
            if not argument.optional:
                yield f"{argument.name} is None", replaced(s, i, None), (TypeError, AttributeError)
            if i and not argument.optional:
                yield f"{argument.name} is an object", replaced(s, i, object()), (TypeError,)
        elif argument.type in ("int", "float", "Scalar") and not argument.is_list and value is not None:
            # Modes have words, too.
            refused = (ValueError,) if argument.name == "compute_mode" else (TypeError,)
            yield f"{argument.name} is a text", replaced(s, i, "text"), refused
        elif argument.type == "int" and argument.is_list and i:
            yield f"{argument.name} is a list of texts", replaced(s, i, ["text"]), (TypeError,)
        if argument.name in ("dim", "dim0", "dim1", "dimension", "source", "start_dim") and isinstance(value, int):
            for far in (99, -99):
                yield f"{argument.name} is {far}", replaced(s, i, far), (IndexError,)
            yield f"{argument.name} is 2**70", replaced(s, i, 2**70), (ValueError,)
        if argument.name in ("dim", "dims") and isinstance(value, list) and value and isinstance(value[0], int):
            yield f"{argument.name} has 99", replaced(s, i, [99] * len(value)), (IndexError,)
            if s.specs() and s.specs()[0].dim:
                yield f"{argument.name} repeats", replaced(s, i, [0, 0]), (ValueError, RuntimeError)
    two = len(s.args) > 1 and isinstance(s.args[0], Spec) and isinstance(s.args[1], Spec)
    fits = op.form != "inplace" or row.refuses(s) or row.result == "bool" or check.fits(row.result_dtype(s), s.args[0].dtype)
    if two and fits and len(row.operands) > 1 and op.name != "equal":
        m, dtype = check.maker(op, s.args[0].dtype, "plain", row), s.args[0].dtype
        pair = m.tensor((2, 3), dtype), m.tensor((4,), dtype)
        yield "shapes do not broadcast", Sample((*pair, *s.args[2:]), s.kwargs), (RuntimeError,)
    yield "an unknown keyword", Sample(s.args, {**s.kwargs, "no_such_argument": 1}), (TypeError,)
    required = [a for a in positional if a.default is None]
    overloads = [o for o in table.operators().values() if o.name == op.name and o.form == op.form]
    if required and len(required) <= len(s.args) and len(overloads) == 1:
        yield "an argument is missing", Sample(s.args[: len(required) - 1], {}), (TypeError,)
    yield "too many arguments", Sample((*s.args, *[1] * 12), s.kwargs), (TypeError,)


#: A dtype of each category, whose arguments are spoilt; those of the others are checked by the same lines.
SPOILT = {"bool": "bool", "integral": "int64", "floating": "float32", "complex": "complex64"}


@pytest.mark.parametrize("name", FORMS)
def test_wrong_arguments_are_refused(name, matrix):
    entry, op = FORMS[name]
    row = row_of(entry)
    if not bound(op, row, matrix):
        return
    problems = []
    for d in axis():
        s = sample_of(op, row, d.name)
        same = SPOILT[d.category]
        why = "Python reaches it by an attribute or another method" if row.call or row.direct else ""
        why = why or ("" if d.name == same else f"arguments are checked as for {same}")
        why = why or ("" if s else "no sample that is not refused")
        if why:
            matrix.note(name, d.name, "errors", "absent", why)
        else:
            problems += spoilt(op, row, s, d.name, matrix)
    report(problems)


def spoilt(op, row, s, dtype, matrix):
    """What is wrong with the refusals of a good sample whose arguments are spoilt one by one."""
    name, function, problems = op.full_name, TENON.function(op, row), []

    def call(bad):
        args, kwargs = TENON.arguments(bad)
        return function(*args, **kwargs)

    for what, bad, errors in wrong_calls(op, row, s):
        named = not any(isinstance(a, str) for a in bad.args[:1]) and bad.args[:1] != (None,) and bad.args
        # The binding's own message about an integer that fits no argument names none.
        refuse = check.refused if named and "2**70" not in what else check.raises
        wrong = problems_of(lambda: refuse(op, row, lambda: call(bad), bad, errors), f"{what} ({bad})")
        matrix.note(name, dtype, "errors", "failed" if wrong else "tested", wrong[0] if wrong else "")
        problems += wrong
    return problems


@pytest.mark.parametrize("name", [n for n, (e, o) in FORMS.items() if len([a for a in o.tensors if not a.is_list]) > 1])
def test_devices_are_not_mixed(name, matrix):
    """A tensor of the cpu beside one of meta."""
    entry, op = FORMS[name]
    row = row_of(entry)
    if not bound(op, row, matrix):
        return
    dtype, s = good_sample(op, row)
    if s is None:
        return
    tensors = [i for i, a in enumerate(s.args) if isinstance(a, Spec)]
    if len(tensors) < 2 or all(s.args[i].dim == 0 for i in tensors[1:]):
        return  # one tensor, or numbers as 0-dim tensors
    args, kwargs = TENON.arguments(s)
    last = tensors[-1]
    args = tuple(a.to("meta") if i == last else a for i, a in enumerate(args))
    if op.name in MIXING:
        return
    call = TENON.function(op, row)
    wrong = problems_of(lambda: check.raises(op, row, lambda: call(*args, **kwargs), s), f"mixed devices ({s})")
    matrix.note(name, dtype, "errors", "failed" if wrong else "tested", wrong[0] if wrong else "")
    report(wrong)


#: Operators of which the second tensor may be elsewhere, by design; or whose gradient is zero, whatever comes in.
MIXING = {"to", "type_as", "expand_as", "view_as", "reshape_as", "angle_backward", "sgn_backward", "_copy_from", "_copy_from_and_resize"}


@pytest.mark.parametrize("name", [n for n, (e, o) in FORMS.items() if o.form == "inplace"])
def test_leaves_and_read_only_memory_are_not_written(name, matrix):
    entry, op = FORMS[name]
    row = row_of(entry)
    if not bound(op, row, matrix):
        return
    dtype, s = good_sample(op, row)
    if s is None:
        return
    problems = []
    function = row.rebinds or TENON.function(op, row)
    args, kwargs = TENON.arguments(s)
    if args[0].is_floating_point():
        leaf = args[0].detach().clone().requires_grad_()
        writes = lambda: function(leaf, *args[1:], **kwargs)  # noqa: E731
        problems += problems_of(lambda: check.raises(op, row, writes, s, (RuntimeError,)), "a leaf that requires grad")
    data = s.args[0].stored()
    data.flags.writeable = False
    fixed = tenon.from_numpy(data)
    if s.args[0].dtype != "bfloat16" and not row.rebinds:
        frozen = fixed.as_strided(list(s.args[0].shape), list(s.args[0].strides), s.args[0].offset)
        writes = lambda: function(frozen, *args[1:], **kwargs)  # noqa: E731
        problems += problems_of(lambda: check.raises(op, row, writes, s, (RuntimeError, ValueError)), "read-only memory")
    matrix.note(name, dtype, "errors", "failed" if problems else "tested", problems[0] if problems else "")
    report(problems)
