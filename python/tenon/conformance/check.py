"""Runs one operator on the samples of its row, and compares: values, dtypes, strides, storage, meta, in-place, out=."""

import zlib

import numpy as np

import tenon
from . import data_dependent, table
from .dtypes import BY_NAME, PARTS, axis
from .library import TENON
from .samples import KINDS, LAYOUTS, Maker, Sample, Spec, geometry

#: What a refusal raises; never SystemError, never a crash.
ERRORS = (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError)


def maker(op, dtype, kind, row, second=None, turn=0):
    """The same samples in every run."""
    seed = zlib.crc32(f"{op.full_name} {dtype} {kind} {second} {turn}".encode())
    domain = row.domain
    extremes = not row.magnitude if row.extremes is None else row.extremes
    if kind == "grad" and row.grad_domain:
        domain = row.grad_domain
    return Maker(dtype, kind, np.random.default_rng(seed), domain, second, extremes, row.flushed)


def kinds_of(op, row, dtype, deep=False):
    """(kind, dtype of the other operands, turn) of every cell that is sampled."""
    for kind in KINDS:
        if kind != "promotion":
            for turn in range(4 if deep else 1):
                yield kind, None, turn
        elif op.several_operands:
            for other in axis():
                if other.name != dtype:
                    yield kind, other.name, 0


def samples_of(op, row, dtype, kind, second=None, turn=0):
    if row.why_absent(dtype, kind):
        return []
    return maker(op, dtype, kind, row, second, turn).samples(row.samples)


# Comparing


def tolerance(row, s, want, d, result=0):
    """How far each element of one of the results may be from the reference; without bounds where sums of products overflow on their way."""
    unit = 2.0 ** (1 - d.digits)
    ulps = row.precision(s)
    if not np.any(ulps):
        return np.zeros(np.shape(want))
    scale = np.abs(want)
    overflows = np.broadcast_to(np.logical_not(np.asarray(ulps) < d.largest), np.shape(want))
    ulps = np.where(overflows, 0, ulps)
    if row.magnitude:
        bound = row.wanted(s, absolute=True)
        bound = np.abs(np.asarray(bound[result] if isinstance(bound, tuple) else bound, np.complex128))
        scale = np.maximum(scale, np.where(np.isfinite(bound), bound, 0))
        if d.category == "complex":
            overflows = overflows | np.broadcast_to(bound > d.largest, overflows.shape)
    scale = np.where(np.isfinite(scale), scale, 0)
    return np.where(overflows, np.inf, ulps * (unit * scale + d.smallest) + row.reference_ulps * 2.0**-52 * scale)


def alike(got, want, d, allowed):
    """Which real numbers are the same, or near enough; NaN equals NaN."""
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    close = np.isfinite(got) & np.isfinite(want) & (np.abs(got - want) <= allowed)
    # Just below the largest number, rounding may end on either side.
    edge = np.isfinite(got) ^ np.isfinite(want)
    edge &= (np.abs(np.where(np.isfinite(got), got, want)) >= d.largest * (1 - 2.0 ** (2 - d.digits))) & (allowed > 0)
    return same | close | edge


def alike_complex(got, want, d, allowed, infinite):
    """The same of complex numbers: near enough in absolute value where finite, and otherwise as Row.infinite says."""
    finite = np.isfinite(got) & np.isfinite(want)
    near = np.where(finite, np.abs(got - want) <= allowed, False) | np.isinf(allowed)
    # If the other part is infinite or undefined, a part is as precise as a number by itself.
    own = np.where(allowed > 0, 8 * 2.0 ** (1 - d.digits), 0)
    parts = [
        alike(g, w, d, np.where(np.isfinite(w), np.maximum(own * np.abs(w), np.where(finite, 0, allowed)), 0))
        for g, w in ((got.real, want.real), (got.imag, want.imag))
    ]
    # The sign of an infinite part says nothing where the other part is undefined.
    for a, b in (("real", "imag"), ("imag", "real")):
        near |= np.isnan(getattr(got, a)) & np.isnan(getattr(want, a)) & np.isinf(getattr(got, b)) & np.isinf(getattr(want, b))
    if infinite != "parts":
        near |= ~np.isfinite(got) & ~np.isfinite(want)
    return near | np.where(finite, got == want, parts[0] & parts[1])


def compare(got, want, d, allowed, where="", row=None):
    """Raises AssertionError where arrays differ; NaN equals NaN, and zeros have signs where results are exact."""
    assert got.shape == np.shape(want), f"{where}shape {list(got.shape)}, expected {list(np.shape(want))}"
    want = d.store(want).reshape(np.shape(want))
    if got.size == 0:
        return
    if not d.floating:
        bad = got != want
    else:
        with np.errstate(all="ignore"):
            if d.category == "complex":
                bad = ~alike_complex(got, want, d, allowed, row.infinite if row else "parts")
            else:
                bad = ~alike(got, want, d, allowed)
                if row and row.infinite == "order":
                    bad &= np.isfinite(got) | np.isfinite(want)
                if row is None or row.signed_zeros:
                    exact = np.asarray(allowed) == 0
                    bad |= exact & (got == 0) & (want == 0) & (np.signbit(got) != np.signbit(want))
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(np.atleast_1d(bad))[0])
        g, w = np.atleast_1d(got)[at], np.atleast_1d(want)[at]
        raise AssertionError(f"{where}element {list(at)} is {g.item()!r}, expected {w.item()!r} ({int(bad.sum())} of {bad.size} differ)")


def check_result(row, s, got, library=TENON):
    """One result, or a tuple of them, against the reference."""
    want = row.wanted(s)
    names = row.result_dtype(s)
    if not isinstance(want, tuple):
        got, want, names = (got,), (want,), (names if isinstance(names, str) else names[0],)
    elif isinstance(names, str):
        names = (names,) * len(want)
    assert len(got) == len(want), f"{len(got)} results, expected {len(want)}"
    for i, (g, w, name) in enumerate(zip(got, want, names)):
        w = np.asarray(w)
        d = BY_NAME[name]
        where = f"result {i}: " if len(want) > 1 else ""
        if not isinstance(g, library.module.Tensor):
            compare(np.asarray(g, d.compute), w, d, tolerance(row, s, w, d, i), where, row)
            continue
        assert library.name_of(g.dtype) == name, f"{where}dtype {g.dtype}, expected {name}"
        compare(library.array(g), w, d, tolerance(row, s, w, d, i) if d.floating else 0, where, row)


def check_view(row, s, got, args):
    """The result has the storage of its argument, and the place of NumPy's own view."""
    spec = s.specs()[0]
    want = row.reference(spec.array(), *[a.array() if isinstance(a, Spec) else a for a in s.args[1:]], **s.kwargs)
    if not isinstance(want, tuple):
        got, want = (got,), (want,)
    for g, w in zip(got, want):
        if w.size == 0 or not np.shares_memory(w, spec.flat):
            continue  # NumPy copies where no view is possible
        assert g.untyped_storage().data_ptr() == args[0].untyped_storage().data_ptr(), "the result is not a view"
        step = w.itemsize  # half of a complex element's, where parts are seen
        strides = [t // step for n, t in zip(w.shape, w.strides) if n > 1]
        mine = [t for n, t in zip(g.shape, g.stride()) if n > 1]
        assert mine == strides, f"strides {mine}, expected {strides}"
        offset = (w.__array_interface__["data"][0] - spec.flat.__array_interface__["data"][0]) // step
        assert g.storage_offset() == offset, f"offset {g.storage_offset()}, expected {offset}"


def unchanged(s, args_before):
    for spec, tensor in zip(s.specs(), args_before):
        flat = tensor.as_strided([len(spec.flat)], [1], 0)
        same = np.array_equal(TENON.array(flat), spec.flat, equal_nan=spec.flat.dtype.kind in "fc")
        assert same, "an argument was changed"


def tensors_of(values):
    found = []
    for v in values:
        if isinstance(v, (list, tuple)):
            found += tensors_of(v)
        elif isinstance(v, tenon.Tensor):
            found.append(v)
    return found


def refused_on_meta(call):
    """What follows from values is refused with a clear error."""
    try:
        call()
    except (NotImplementedError, RuntimeError) as e:
        assert "meta" in str(e), f"the error does not speak of meta: {type(e).__name__}: {e}"
        return
    raise AssertionError("meta has an answer: data_dependent.py says that it cannot have one")


def note_meta(op, function, s, got, matrix, dtype):
    """The meta device says the same shapes, dtypes and strides, and computes nothing; or refuses what follows from values."""
    args, kwargs = TENON.arguments(s, "meta")
    if why := data_dependent.why(op, s):
        refused_on_meta(lambda: function(*args, **kwargs))
        matrix.note(op.full_name, dtype, "meta", "absent", why)
        return
    try:
        said = function(*args, **kwargs)
    except Exception as e:
        raise AssertionError(f"on meta: {type(e).__name__}: {e}") from e
    if not isinstance(got, (tuple, list)):
        got, said = [got], [said]
    assert len(got) == len(said), f"meta gives {len(said)} results, expected {len(got)}"
    for g, m in zip(got, said):
        if not isinstance(g, tenon.Tensor):
            assert m == g, f"meta says {m}, expected {g}"
            continue
        assert m.is_meta, "the result is not on meta"
        said_so = f"meta says {m.dtype}{list(m.shape)}, expected {g.dtype}{list(g.shape)}"
        assert m.dtype == g.dtype and m.shape == g.shape, said_so
        strides = [t for n, t in zip(g.shape, g.stride()) if n > 1]
        said_strides = [t for n, t in zip(m.shape, m.stride()) if n > 1]
        assert g.numel() == 0 or said_strides == strides, f"meta says strides {said_strides}, expected {strides}"
    matrix.note(op.full_name, dtype, "meta", "tested")


def one(op, row, s, matrix, dtype, kind):
    """One sample of a functional form, or of an in-place form that is the entry's main one."""
    function = TENON.function(op, row)
    args, kwargs = TENON.arguments(s)
    if row.refuses(s):
        return note_refused(op, row, lambda: function(*args, **kwargs), s, matrix, dtype, kind)
    if row.rebinds:
        rebind(row, s, args)
        matrix.note(op.full_name, dtype, kind, "tested")
        matrix.note(op.full_name, dtype, "meta", "tested")
        return
    if row.writes:
        return writes(op, row, s, matrix, dtype, kind)
    if op.form == "inplace" and row.reference:
        return in_place(op, row, s, matrix, dtype, kind)
    if op.form == "inplace" and not row.fills and unwritable(s):
        return note_refused(op, row, lambda: function(*args, **kwargs), s, matrix, dtype, kind)
    got = function(*args, **kwargs)
    if op.form == "inplace":
        assert got is args[0], "an in-place operator returns its argument"
        untouched(s.specs()[0], args[0])
    else:
        unchanged(s, tensors_of([*args, *kwargs.values()]))
    if row.reference:
        check_result(row, s, got)
    elif row.properties:
        assert TENON.name_of(got.dtype) == row.result_dtype(s), f"dtype {got.dtype}, expected {row.result_dtype(s)}"
        row.properties(got, *s.args, **s.kwargs)
    if row.view:
        check_view(row, s, got, args)
    matrix.note(op.full_name, dtype, kind, "tested")
    note_meta(op, function, s, got, matrix, dtype)


def rebind(row, s, args):
    """A tensor that is no view takes over a storage, and the geometry of its elements."""
    spec = s.args[1]
    own = args[0].clone()
    got = row.rebinds(own, args[1])
    assert got is own, "an in-place operator returns its argument"
    assert got.untyped_storage().data_ptr() == args[1].untyped_storage().data_ptr(), "the storage is another one"
    want = row.wanted(s)
    strides, offset = (spec.strides, spec.offset) if want.shape == spec.shape else ((1,), 0)
    said = tuple(got.stride()), got.storage_offset()
    assert said == (tuple(strides), offset), f"strides and offset {said}, expected {(tuple(strides), offset)}"
    compare(TENON.array(got), want, BY_NAME[spec.dtype], 0)
    unchanged(s, args)
    on_meta, _ = TENON.arguments(s, "meta")
    m = row.rebinds(on_meta[0].clone(), on_meta[1])
    assert m.is_meta and (m.shape, m.stride()) == (got.shape, got.stride()), f"meta says {list(m.shape)}, {list(m.stride())}"


def unwritable(s):
    """Why the first tensor cannot be written: several elements share a place."""
    spec = s.specs()[0]
    if spec.dim and 0 not in spec.shape:
        marks = np.zeros(len(spec.flat), np.int64)
        step = marks.itemsize
        at = np.lib.stride_tricks.as_strided(
            np.arange(len(marks))[spec.offset :], spec.shape, [t * step for t in spec.strides]
        )
        np.add.at(marks, at.reshape(-1), 1)
        if marks.max() > 1:
            return "elements overlap"
    return ""


def untouched(spec, tensor):
    """Elements of the storage that are not the tensor's keep their values."""
    mine = np.zeros(len(spec.flat), bool)
    places = np.lib.stride_tricks.as_strided(
        np.arange(len(spec.flat))[spec.offset :], spec.shape, [t * 8 for t in spec.strides]
    )
    mine[places.reshape(-1)] = True
    now = TENON.array(tensor.detach().as_strided([len(spec.flat)], [1], 0)) if spec.strides is not None else None
    if now is not None and tensor.untyped_storage().nbytes() >= len(spec.flat) * tensor.element_size():
        same = np.array_equal(now[~mine], spec.flat[~mine], equal_nan=spec.flat.dtype.kind in "fc")
        assert same, "elements outside the tensor were changed"


def raises(op, row, call, s, errors=ERRORS):
    """The error that the call raises, one of `errors`; its text may speak of something else than the operator."""
    try:
        call()
    except errors as e:
        return e
    except Exception as e:
        raise AssertionError(f"raised {type(e).__name__}: {e}; expected one of {[t.__name__ for t in errors]}") from e
    raise AssertionError("was not refused")


def refused(op, row, call, s, errors=ERRORS):
    """The call raises a clear error that names the operator."""
    e, name = raises(op, row, call, s, errors), op.name.strip("_")
    text = str(e).replace(".", "_", 1)  # fft_fft is fft.fft in Python
    named = name in text or (row.inner and row.inner in text)
    assert named, f"the error does not name {name}: {type(e).__name__}: {e}"


def note_refused(op, row, call, s, matrix, dtype, kind):
    refused(op, row, call, s)
    matrix.note(op.full_name, dtype, kind, "refused")


# In-place and out= forms of an entry, with the samples of its functional form


def fits(result, own):
    """Whether a result's dtype may be written into another: not from a higher category into a lower."""
    order = ("bool", "integral", "floating", "complex")
    into = BY_NAME[own].category
    return order.index(BY_NAME[result].category) <= order.index(into)


def in_place(op, row, s, matrix, dtype, kind):
    function = TENON.function(op, row)
    args, kwargs = TENON.arguments(s)
    spec = s.args[0]
    if not isinstance(spec, Spec):
        return
    want = None if row.refuses(s) else row.wanted(s)
    comparison = row.result == "bool"
    ok = want is not None and (op.name == "resize_" or np.shape(want) == spec.shape and (row.fills or not unwritable(s)))
    ok = ok and (comparison or fits(row.result_dtype(s), spec.dtype)) and not (row.real and spec.dtype in PARTS)
    if not ok:
        return note_refused(op, row, lambda: function(*args, **kwargs), s, matrix, dtype, kind)
    got = function(*args, **kwargs)
    assert got is args[0], "an in-place operator returns its argument"
    assert TENON.name_of(got.dtype) == spec.dtype
    result = BY_NAME[row.result_dtype(s)]
    d = BY_NAME[spec.dtype]
    allowed = tolerance(row, s, want, d if d.floating else result) if result.floating else 0
    compare(TENON.array(got), result.store(want).reshape(np.shape(want)), d, allowed, row=row)
    if op.name != "resize_":
        untouched(spec, got)
    matrix.note(op.full_name, dtype, kind, "tested")
    note_meta(op, function, s, got, matrix, dtype)


def writes(op, row, s, matrix, dtype, kind):
    """An operator that returns nothing and writes some of its arguments."""
    function = TENON.function(op, row)
    args, kwargs = TENON.arguments(s)
    written = [i for i in row.writes if i < len(s.args) and isinstance(s.args[i], Spec)]
    specs = [s.args[i] for i in written]
    if any(unwritable(Sample((spec,))) or not fits(row.result_dtype(s), spec.dtype) for spec in specs):
        return note_refused(op, row, lambda: function(*args, **kwargs), s, matrix, dtype, kind)
    assert function(*args, **kwargs) is None, "the operator returns something"
    result = BY_NAME[row.result_dtype(s)]
    for i, spec, want in zip(written, specs, row.wanted(s)):
        d = BY_NAME[spec.dtype]
        coarser = d if d.digits < result.digits else result
        compare(TENON.array(args[i]), want, d, tolerance(row, s, want, coarser), f"argument {i}: ", row)
        untouched(spec, args[i])
    read = [k for k in range(len(s.args)) if k not in written]
    unchanged(Sample(tuple(s.args[k] for k in read)), tensors_of([args[k] for k in read]))
    matrix.note(op.full_name, dtype, kind, "tested")
    on_meta, kwargs = TENON.arguments(s, "meta")
    assert function(*on_meta, **kwargs) is None
    assert all(t.is_meta and t.shape == args[i].shape for i, t in enumerate(on_meta) if isinstance(t, tenon.Tensor))
    matrix.note(op.full_name, dtype, "meta", "tested")


def shape_in_out(function, row, s):
    """The shape of a result: the reference's, or that of the functional form where there is none."""
    if row.reference:
        return np.shape(row.wanted(s))
    args, kwargs = TENON.arguments(s)
    return tuple(function(*args, **kwargs).shape)


def check_in_out(row, s, out, d, allowed):
    """The values that an out= form has written."""
    if row.reference:
        compare(TENON.array(out), np.asarray(row.wanted(s)), d, allowed, row=row)
    else:
        row.properties(out, *s.args, **s.kwargs)


def out_form(op, row, s, matrix, dtype, kind, layout):
    """Writes into a tensor of the given layout."""
    function = TENON.function(op, row)
    args, kwargs = TENON.arguments(s)
    if row.refuses(s):
        out = TENON.tensor(s.specs()[0]) if s.specs() else tenon.empty([0], dtype=TENON.dtype(row.result_dtype(s)))
        return note_refused(op, row, lambda: function(*args, **kwargs, out=out), s, matrix, dtype, kind)
    if isinstance(row.result_dtype(s), tuple):
        meta_writes(op, function, s, out_tuple(function, row, s, layout), matrix, dtype)
        matrix.note(op.full_name, dtype, kind, "tested")
        return
    shape = shape_in_out(function, row, s)
    name = row.result_dtype(s)
    strides, offset, count = geometry(layout, shape)
    d = BY_NAME[name]
    spec = Spec(d.store(np.ones(count)), name, shape, strides, offset)
    out = TENON.tensor(spec)
    if unwritable(Sample((spec,))):
        return note_refused(op, row, lambda: function(*args, **kwargs, out=out), s, matrix, dtype, kind)
    got = function(*args, **kwargs, out=out)
    assert got is out, "an out= form returns its out"
    assert list(out.stride()) == list(strides) or out.numel() < 2, "out= changed strides of a tensor of the right shape"
    meta_writes(op, function, s, (out,), matrix, dtype)
    check_in_out(row, s, out, d, tolerance(row, s, np.asarray(row.wanted(s)), d) if d.floating and row.reference else 0)
    untouched(spec, out)
    unchanged(s, tensors_of([*args, *kwargs.values()]))
    matrix.note(op.full_name, dtype, kind, "tested")


def out_tuple(function, row, s, layout):
    """Several results, each into a tensor of the given layout, or of no elements where elements of that would overlap."""
    args, kwargs = TENON.arguments(s)
    names, wants = row.result_dtype(s), [np.asarray(w) for w in row.wanted(s)]
    specs, outs = [], []
    for name, want in zip(names, wants):
        strides, offset, count = geometry(layout, want.shape)
        spec = Spec(BY_NAME[name].store(np.ones(count)), name, want.shape, strides, offset)
        fits = not unwritable(Sample((spec,)))
        specs.append(spec if fits else None)
        outs.append(TENON.tensor(spec) if fits else tenon.empty([0], dtype=TENON.dtype(name)))
    got = function(*args, **kwargs, out=tuple(outs))
    for i, (name, want, spec, out, result) in enumerate(zip(names, wants, specs, outs, got)):
        assert result is out, "an out= form returns its out"
        d = BY_NAME[name]
        compare(TENON.array(out), want, d, tolerance(row, s, want, d, i) if d.floating else 0, row=row)
        if spec:
            untouched(spec, out)
    unchanged(s, tensors_of([*args, *kwargs.values()]))
    return got


def meta_writes(op, function, s, outs, matrix, dtype):
    """On meta an out= form checks the same, and leaves shapes, strides and dtypes of the right shape as they are."""
    args, kwargs = TENON.arguments(s, "meta")
    on_meta = [tenon.empty_strided(list(o.shape), list(o.stride()), dtype=o.dtype, device="meta") for o in outs]
    given = on_meta[0] if len(on_meta) == 1 else tuple(on_meta)
    why = data_dependent.why(op, s)
    if why:
        refused_on_meta(lambda: function(*args, **kwargs, out=given))
        matrix.note(op.full_name, dtype, "meta", "absent", why)
        return
    try:
        function(*args, **kwargs, out=given)
    except Exception as e:
        raise AssertionError(f"on meta: {type(e).__name__}: {e}") from e
    for out, m in zip(outs, on_meta):
        same = m.is_meta and (m.dtype, m.shape, m.stride()) == (out.dtype, out.shape, out.stride())
        said = f"meta says {m.dtype}{list(m.shape)} strides {list(m.stride())}"
        assert same or out.numel() < 2 and m.shape == out.shape, f"{said}, expected {out.dtype}{list(out.shape)} strides {list(out.stride())}"
    matrix.note(op.full_name, dtype, "meta", "tested")


def is_complex(spec):
    return BY_NAME[spec.dtype].category == "complex"


def out_elsewhere(op, row, s, matrix, dtype):
    """out= of no elements takes the result's shape; of a wider dtype takes its values, or is refused where PyTorch refuses it;
    of a lower category is refused.

    A factory computes in the dtype of out, and refuses to be asked for another; so do reductions and scans that take a dtype. A real result of complex operands goes to any
    real dtype.
    """
    function = TENON.function(op, row)
    if isinstance(row.result_dtype(s), tuple):
        out_tuple_of_lower(op, row, s)
        matrix.note(op.full_name, dtype, "errors", "tested")
        return  # out_tuple has outputs of no elements
    shape = shape_in_out(function, row, s)
    name = row.result_dtype(s)
    args, kwargs = TENON.arguments(s)
    out = tenon.empty([0], dtype=TENON.dtype(name))
    assert function(*args, **kwargs, out=out) is out and tuple(out.shape) == shape, "out= was not resized"
    d = BY_NAME[name]
    allowed = tolerance(row, s, np.asarray(row.wanted(s)), d) if d.floating and row.reference else 0
    check_in_out(row, s, out, d, allowed)
    factory = "dtype" in kwargs and not s.specs()
    if s.specs() and table.out_rule(op) == "Cast" and any(a.name == "dtype" for a in op.arguments):
        out_gives_dtype(op, row, s, function, shape)
        matrix.note(op.full_name, dtype, "errors", "tested")
        return
    if d.category in ("floating", "integral", "complex"):
        wider = BY_NAME["complex128" if d.category == "complex" else "float64"]
        wide = tenon.empty(list(shape), dtype=wider.tenon)
        if factory:
            function(*args, **{k: v for k, v in kwargs.items() if k != "dtype"}, out=wide)
            check_in_out(row, s, wide, wider, allowed)
            if wider is not d:
                refused(op, row, lambda: function(*args, **kwargs, out=wide), s)
        elif wider is not d and table.out_rule(op) != "Cast" and not (row.real and any(is_complex(x) for x in s.specs())):
            refused(op, row, lambda: function(*args, **kwargs, out=wide), s)
        else:
            function(*args, **kwargs, out=wide)
            if row.reference:
                compare(TENON.array(wide), d.store(np.asarray(row.wanted(s))).reshape(shape), wider, allowed, row=row)
            else:
                check_in_out(row, s, wide, wider, allowed)
    if d.floating:
        for lower in ("int64", "float64") if d.category == "complex" else ("int64",):
            low = tenon.empty(list(shape), dtype=TENON.dtype(lower))
            refused(op, row, lambda: function(*args, **kwargs, out=low), s)
    matrix.note(op.full_name, dtype, "errors", "tested")


def out_gives_dtype(op, row, s, function, shape):
    """What a call computes in the dtype of out is what it computes with that dtype=, and another one next to out is refused."""
    args, kwargs = TENON.arguments(s)
    for name in ("float64", "int64", "complex128"):
        out = tenon.empty(list(shape), dtype=TENON.dtype(name))
        try:
            want = function(*args, **{**kwargs, "dtype": out.dtype})
        except ERRORS:
            want = None
        if want is None or {want.dtype, kwargs.get("dtype", out.dtype)} != {out.dtype}:
            refused(op, row, lambda: function(*args, **kwargs, out=out), s)
            continue
        function(*args, **kwargs, out=out)
        assert np.array_equal(TENON.array(out), TENON.array(want), equal_nan=True), f"out= of {name} differs from dtype={name}"


def out_tuple_of_lower(op, row, s):
    """Several results where one is of a category that cannot hold it."""
    function = TENON.function(op, row)
    args, kwargs = TENON.arguments(s)
    names = row.result_dtype(s)
    outs = tuple(tenon.empty([0], dtype=tenon.bool if n != "bool" else tenon.float32) for n in names)
    if any(n != "bool" for n in names):
        refused(op, row, lambda: function(*args, **kwargs, out=outs), s)


OUT_LAYOUTS = ("contiguous", *LAYOUTS)
