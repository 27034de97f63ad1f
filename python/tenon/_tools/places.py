"""Where names come from: operators by their schema, their binding or a pattern, and what is written in Python.

Used by the `tenon` command. Nothing here prints.
"""

import difflib
import fnmatch
import inspect
import json
import os
import re

from .. import _C, dispatch


class UnknownName(LookupError):
    """There is nothing of that name; the message says what there is."""


def index():
    """What the generator recorded about each built-in operator, by full name."""
    try:
        with open(os.path.join(os.path.dirname(_C.__file__), "_operators.json"), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def place(file, line):
    """"file:line", or nothing."""
    return f"{file}:{line}" if file else ""


def did_you_mean(word, *choices):
    """The end of a message: what is spelled almost like `word` among the first choices that have such."""
    for names in choices:
        if near := difflib.get_close_matches(word, names, n=3, cutoff=0.75):
            return f"; did you mean {' or '.join(map(repr, near))}?"
    return ""


def is_pattern(name):
    """Whether a name has one of *, ? and [."""
    return any(c in name for c in "*?[")


def operators_like(pattern, among=None):
    """The operators whose full name, or the part after the namespace, matches a pattern."""
    among = dispatch.operators() if among is None else among
    return [o for o in among if fnmatch.fnmatchcase(o, pattern) or fnmatch.fnmatchcase(o.partition("::")[2], pattern)]


def operators_named(name):
    """The full name of an operator, or those of all its overloads if no overload was given. Raises UnknownName."""
    full = name if "::" in name else "aten::" + name
    operators = dispatch.operators()
    exact = full.removesuffix(".default")
    if exact in operators and "." in full.partition("::")[2]:
        return [exact]
    found = [o for o in operators if o == full or o.startswith(full + ".")]
    if not found:
        ns, _, short = full.partition("::")
        bare = {o.partition(".")[0] for o in operators}
        # Names are alike where the parts after the namespace are.
        near = [o for o in {*operators, *bare} if difflib.get_close_matches(short, [o.partition("::")[2]], cutoff=0.75)]
        raise UnknownName(f"operator '{full}' does not exist{did_you_mean(full, [o for o in near if o.startswith(ns)], near)}")
    return found


def operator(name, recorded):
    """All that is known of one operator; `recorded` is index()."""
    registrations = [r._asdict() for r in dispatch.registrations(name)]
    cells = {c.key: c for c in dispatch.computed_table(name)}
    kernels = {}
    for device, key in dispatch.backends():
        cell = cells[key]
        kernels[device] = {"source": cell.source, "file": cell.file, "line": cell.line}
    declared = dispatch.defined_at(name)
    entry = recorded.get(name, {})
    derivative = {"kind": entry.get("derivative"), "node": entry.get("node"), "formulas": entry.get("formulas", {})}
    if not entry:
        own = [r for r in registrations if r["key"].startswith("Autograd") and r["active"]]
        if own:
            derivative["kind"] = "registered at " + place(own[0]["file"], own[0]["line"])
        elif any(r["key"] == "CompositeImplicit" for r in registrations):
            derivative["kind"] = "through what it calls"
        else:
            derivative["kind"] = "none registered"
    return {
        "name": name,
        "schema": dispatch.schema(name),
        "declared": {"file": declared[0], "line": declared[1]} if declared else None,
        "doc": entry.get("doc", ""),
        "body": entry.get("body", {}),
        "kernels": kernels,
        "derivative": derivative,
        "bindings": {"C++": entry.get("cpp", []), "Python": entry.get("python", []) + [_ops_name(name)]},
        "registrations": registrations,
    }


def _ops_name(name):
    ns, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    return f"tenon.ops.{ns}.{base}.{overload or 'default'}"


def find(name):
    """What `name` is: a list of facts, of operators (as operator() has them) and of names of the package (with "kind").

    `name` is an operator's (add, aten::add.Tensor), one of Python's with or without the package (torch.softmax, Tensor.softmax,
    nn.Linear), or a pattern of either. Raises UnknownName.
    """
    recorded = index()
    path = re.sub(r"^(torch|tenon)\.", "", name)
    if is_pattern(name):
        owner, _, last = path.rpartition(".")
        if path == name and (found := operators_like(name)):
            return [operator(o, recorded) for o in found]
        return [fact for member in _members(owner, last, name) for fact in _python_name(member, recorded)]
    if "::" not in name:
        if path == name:
            try:
                return [operator(o, recorded) for o in operators_named(name)]
            except UnknownName:
                if not _is_python_name(name):
                    raise
        return _python_name(path, recorded)
    return [operator(o, recorded) for o in operators_named(name)]


def _attribute(path):
    """The object at a path within the package; PyTorch's customary F is understood. Raises UnknownName."""
    import tenon

    found, walked = tenon, "tenon"
    for part in re.sub(r"^F\.", "nn.functional.", path).split("."):
        try:
            found, walked = getattr(found, part), f"{walked}.{part}"
        except AttributeError as e:
            # What PyTorch has, the error says itself.
            text = str(e) if "of PyTorch" in str(e) else f"'{walked}' has no '{part}'{did_you_mean(part, dir(found))}"
            raise UnknownName(text) from None
    return found, walked


def _is_python_name(path):
    """Whether the name is to be looked for in the package: it begins with one of its names."""
    import tenon

    first = path.partition(".")[0]
    return first == "F" or ("." in path and hasattr(tenon, first)) or hasattr(tenon, path)


def _members(owner, pattern, name):
    """The paths of what matches a pattern inside a module or class."""
    names = dir(_attribute(owner)[0]) if owner else dir(__import__("tenon"))
    found = [n for n in fnmatch.filter(names, pattern) if not n.startswith("_") or pattern.startswith("_")]
    if not found:
        raise UnknownName(f"nothing matches '{name}'")
    return [f"{owner}.{n}" if owner else n for n in found]


def _without_annotations(signature):
    """Which are texts, and would be shown in quotation marks."""
    empty = inspect.Parameter.empty
    parameters = [p.replace(annotation=empty) for p in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=empty)


def _python_name(path, recorded):
    """Facts of one name of the package: of the operators that it is bound to, or of what Python has there."""
    value, walked = _attribute(path)
    bound = [o for o, entry in recorded.items() if any(b.partition("(")[0] == walked for b in entry.get("python", []))]
    if bound:
        return [operator(o, recorded) for o in bound]
    value = inspect.unwrap(value) if callable(value) else value
    fact = {"name": walked, "kind": _kind(value), "signature": None, "summary": "", "methods": {}}
    fact["file"], fact["line"] = _source(value)
    if callable(value):
        try:
            fact["signature"] = str(_without_annotations(inspect.signature(value)))
        except (TypeError, ValueError):
            pass
    if not isinstance(value, (int, float, str, _C.dtype)):
        fact["summary"] = (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")
    if inspect.isclass(value):
        own = {n: f for n, f in vars(value).items() if inspect.isfunction(f) and (n == "__init__" or not n.startswith("_"))}
        fact["methods"] = {n: dict(zip(("file", "line"), _source(f))) for n, f in own.items()}
    return [fact]


def _kind(value):
    if inspect.isclass(value):
        return "class"
    if inspect.ismodule(value):
        return "module"
    return "function" if callable(value) else type(value).__name__


def _source(value):
    """(file, line) of what is written in Python; (None, None) of what the extension module has."""
    try:
        file = inspect.getsourcefile(value)
        line = 1 if inspect.ismodule(value) else inspect.getsourcelines(value)[1]
    except (TypeError, OSError):
        return None, None
    file = os.path.realpath(file)
    inside = os.path.relpath(file)
    return (file if inside.startswith("..") else inside), line
