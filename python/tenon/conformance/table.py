"""The operators of the built package: schemas and flags, read from the dispatcher's introspection."""

import json
import pathlib
import re
from dataclasses import dataclass, field
from functools import cache

from tenon._C import dispatch


@cache
def index():
    """What the generator recorded about each built-in operator, by full name."""
    path = pathlib.Path(__file__).parents[1] / "_operators.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def out_rule(op):
    """Which dtypes `out=` may have: "Cast" (any that the result can be cast to), "Same" or "SameOrUInt8"."""
    return index().get("aten::" + op.full_name.removeprefix("aten::"), {}).get("out_dtype", "Cast")


@dataclass(frozen=True)
class Argument:
    name: str
    type: str  # without `?` and `[]`: Tensor, int, float, bool, str, Scalar, ScalarType, Device, ...
    optional: bool = False
    is_list: bool = False
    optional_elements: bool = False
    default: str | None = None
    keyword_only: bool = False
    written: bool = False
    aliased: bool = False

    @property
    def is_tensor(self):
        return self.type == "Tensor" and not self.is_list


@dataclass(frozen=True)
class Operator:
    full_name: str  # "add.Tensor"
    arguments: tuple
    returns: tuple  # types, without names and annotations
    where: str  # "arithmetic.yaml:9": the forms of one entry share it
    differentiable: bool  # has a derivative of its own, or is a composite
    composite: bool
    view: bool
    schema: str

    @property
    def name(self):
        return self.full_name.rpartition("::")[2].partition(".")[0]

    @property
    def namespace(self):
        return self.full_name.rpartition("::")[0] or "aten"

    @property
    def overload(self):
        return self.full_name.partition(".")[2]

    @property
    def family(self):
        return self.where.partition(".")[0]

    @property
    def form(self):
        if any(a.written and a.keyword_only for a in self.arguments):
            return "out"
        # An operator that writes another argument than the first returns new tensors, too.
        return "inplace" if any(a.written for a in self.arguments[:1]) else "functional"

    @property
    def tensors(self):
        return [a for a in self.arguments if a.type == "Tensor"]

    @property
    def several_operands(self):
        """Whether tensors of several dtypes can meet."""
        read = [a for a in self.tensors if not (a.written and a.keyword_only)]
        return len(read) > 1 or any(a.is_list for a in read)


@dataclass
class Entry:
    """The forms of one entry of the YAML files; the first is the one that rows name."""

    operators: list = field(default_factory=list)

    @property
    def main(self):
        order = ("functional", "inplace", "out")
        return min(self.operators, key=lambda o: order.index(o.form))

    def form(self, name):
        return next((o for o in self.operators if o.form == name), None)


_ARGUMENT = re.compile(
    r"(?P<type>\w+)(?P<alias>\([^)]*\))?(?P<element>\?)?(?P<list>\[\d*\])?(?P<optional>\?)?\s+(?P<name>\w+)"
    r"(?:=(?P<default>.*))?$"
)


def _split(text):
    """Splits at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [p for p in [*parts, text[start:].strip()] if p]


def parse(schema):
    """(full name, arguments, types of the returns) of a schema's text."""
    head, _, results = schema.partition(") -> ")
    name, _, rest = head.partition("(")
    arguments, keyword_only = [], False
    for part in _split(rest):
        if part == "*":
            keyword_only = True
            continue
        m = _ARGUMENT.match(part)
        assert m, f"{schema}: {part!r} is no argument"
        listed = m["list"] is not None
        arguments.append(
            Argument(
                m["name"],
                m["type"].replace("SymInt", "int"),
                optional=m["optional"] is not None or (m["element"] is not None and not listed),
                is_list=listed,
                optional_elements=listed and m["element"] is not None,
                default=m["default"],
                keyword_only=keyword_only,
                written="!" in (m["alias"] or ""),
                aliased=m["alias"] is not None,
            )
        )
    results = results[1:-1] if results.startswith("(") else results
    types = tuple(re.sub(r"\([^)]*\)", "", r).split()[0] for r in _split(results))
    return name.removeprefix("aten::"), tuple(arguments), types


def _read(full):
    dump = dispatch.dump(full).splitlines()
    schema = dump[1].removeprefix("schema: ")
    kernels = [line.partition(": ") for line in dump[3:]]
    keys = {key for key, _, text in kernels if "[fallthrough]" not in text}
    name, arguments, returns = parse(schema)
    composite = "CompositeImplicit" in keys
    return Operator(
        name,
        arguments,
        returns,
        dump[2].rpartition("/")[2],
        differentiable="Autograd" in keys or composite,
        composite=composite,
        view=any(a.aliased and not a.written for a in arguments),
        schema=schema,
    )


@cache
def operators():
    """All operators in the aten namespace, by full name."""
    return {o.full_name: o for o in map(_read, dispatch.operators()) if o.schema.startswith("aten::")}


def declared(names):
    """The entries of operators outside of Tenon; each is one of its own."""
    return {name: Entry([_read(name)]) for name in names}


@cache
def entries():
    """The entries, by the full name of their main form."""
    by_place = {}
    for o in operators().values():
        by_place.setdefault(o.where, Entry()).operators.append(o)
    return {e.main.full_name: e for e in by_place.values()}
