"""The `tenon` command: lists operators, shows where they come from, traces calls, checks and measures operators.

Exit codes: 0 for success; 1 if something does not exist or a traced program failed; 2 for wrong usage.
"""

import argparse
import contextlib
import difflib
import json
import os
import re
import sys
from collections import Counter

from .imports import import_first
from .loaded import vendor_libraries
from .places import UnknownName, find, is_pattern, operators_like, operators_named, place


class CommandError(Exception):
    """An error whose message is printed, with exit code 1."""


@contextlib.contextmanager
def _reporting(*kinds):
    """Errors of these kinds in its body are printed, without a traceback."""
    try:
        yield
    except kinds as e:
        raise CommandError(str(e)) from None


def _hint(word, names, most):
    """The names that were probably meant, for the end of a message."""
    near = difflib.get_close_matches(word, names, n=most)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


class _Parser(argparse.ArgumentParser):
    """Suggests the command or option that was probably meant."""

    #: Whether options may be between arguments, whose last may be missing.
    intermixed = False

    def parse_known_args(self, args=None, namespace=None):
        if not self.intermixed:
            return super().parse_known_args(args, namespace)
        self.intermixed = False  # what follows calls this function
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self.intermixed = True

    def print_help(self, file=None):
        # argparse's own ignores that no one reads any more.
        (file or sys.stdout).write(self.format_help())

    def error(self, message):
        wrong = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if wrong:
            word, choices = wrong.group(1), re.findall(r"[\w-]+", wrong.group(2))
            message = f"there is no {'command' if self.prog == 'tenon' else 'action'} '{word}'"
        else:
            options = re.search(r"unrecognized arguments: (\S+)", message)
            word = options.group(1) if options else ""
            choices = [o for o in self._option_string_actions] if word.startswith("-") else []
        near = difflib.get_close_matches(word, choices, n=2) if word else []
        if near:
            message += f"; did you mean {' or '.join(map(repr, near))}?"
        elif wrong:
            message += f"; there {'is' if len(choices) == 1 else 'are'} {', '.join(choices)}"
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: error: {message}\n")


def _print_json(value):
    json.dump(value, sys.stdout, indent=2)
    print()


def _columns(rows, indent=""):
    """Prints rows of text in aligned columns."""
    rows = [list(map(str, row)) for row in rows]
    if not rows:
        return
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print((indent + "  ".join(text.ljust(w) for text, w in zip(row, widths))).rstrip())


def ops(args):
    """Lists operators whose full name contains PATTERN, or matches it where it has *, ? or [].

    Without one, those that have no function or method in Python are left out unless --all is given: what other operators
    and derivatives are made of. With --key, those that have a kernel for that key.
    """
    import tenon

    from .. import dispatch

    pattern = args.pattern or ""

    def public(name):
        space, _, short = name.partition("::")
        bare = short.partition(".")[0]
        return space != "aten" or not bare.startswith("_") and (hasattr(tenon, bare) or hasattr(tenon.Tensor, bare))

    everything = args.all or pattern or args.key
    with _reporting(ValueError):
        among = dispatch.operators_with_kernel(args.key) if args.key else dispatch.operators()
    matching = operators_like(pattern, among) if is_pattern(pattern) else [name for name in among if pattern in name]
    names = [name for name in matching if everything or public(name)]
    if args.key and not names:
        raise CommandError(f"no operator has a kernel for {args.key}" + (f" and matches '{pattern}'" if pattern else ""))
    if not names:
        bare = sorted({o.partition("::")[2].partition(".")[0] for o in dispatch.operators()})
        raise CommandError(f"no operator matches '{pattern}'{_hint(pattern.partition('::')[2] or pattern, bare, 3)}")
    if args.json:
        _print_json([{"name": name, "schema": dispatch.schema(name)} for name in names])
        return
    for name in names:
        print(dispatch.schema(name) if args.schemas else name)


def where(args):
    """Shows where a name comes from: of an operator its schema, kernels, derivative, bindings and registrations; of what is
    written in Python its file and line.

    NAME is an operator (add, aten::add.Tensor), a name of the package (torch.softmax, Tensor.softmax, nn.Linear) or a pattern of
    either ('soft*', 'nn.*Norm*'), which lists what matches.
    """
    found = find(args.op)
    if args.json:
        _print_json(found)
        return
    if is_pattern(args.op):
        _columns([_brief(fact) for fact in found])
        return
    for i, fact in enumerate(found):
        if i:
            print()
        print(fact["name"])
        _columns(_python_rows(fact) if "kind" in fact else _operator_rows(fact), "  ")


def _brief(fact):
    declared = fact if "kind" in fact else fact["declared"] or {"file": None, "line": None}
    text = fact["summary"] if "kind" in fact else fact["doc"]
    return fact["name"], place(declared["file"], declared["line"]) or "built in", text


def _python_rows(fact):
    rows = [("kind", fact["kind"]), ("written at", place(fact["file"], fact["line"]) or "in the extension module")]
    if fact["signature"]:
        rows.append(("signature", fact["name"].rpartition(".")[2] + fact["signature"]))
    if fact["summary"]:
        rows.append(("summary", fact["summary"]))
    methods = [f"{name}: {place(at['file'], at['line'])}" for name, at in fact["methods"].items()]
    return rows + [("methods" if j == 0 else "", text) for j, text in enumerate(methods)]


def _operator_rows(op):
    rows = [("schema", op["schema"])]
    if op["declared"]:
        rows.append(("declared at", place(op["declared"]["file"], op["declared"]["line"])))
    if op["doc"]:
        rows.append(("summary", op["doc"]))
    rows += [(field, text) for field, text in op["body"].items()]
    derivative = op["derivative"]
    node = f", node {derivative['node']}" if derivative["node"] else ""
    rows.append(("derivative", derivative["kind"] + node))
    rows += [("", f"{argument}: {formula}") for argument, formula in derivative["formulas"].items()]
    for language, bindings in op["bindings"].items():
        rows += [(language if j == 0 else "", text) for j, text in enumerate(bindings)]
    for device, kernel in op["kernels"].items():
        rows.append((f"on {device}", f"{kernel['source']} {place(kernel['file'], kernel['line'])}".rstrip()))
    return rows + [
        ("registered" if j == 0 else "", f"{r['key']}: {place(r['file'], r['line'])} [{r['kind']}]" + ("" if r["active"] else " (inactive)"))
        for j, r in enumerate(op["registrations"])
    ]


def dump(args):
    """Prints an operator's registrations with file and line, newest first for each key."""
    from .. import dispatch

    dangling = args.op if "::" in args.op else "aten::" + args.op
    names = [dangling] if dangling in dispatch.find_dangling_impls() else operators_named(args.op)
    if args.json:
        _print_json({n: [r._asdict() for r in dispatch.registrations(n)] for n in names})
        return
    print("\n".join(dispatch.dump_registrations(n) for n in names), end="")


def table(args):
    """Prints an operator's computed table: the kernel that a call finds at each key, and where it was registered."""
    from .. import dispatch

    names = operators_named(args.op)
    if args.json:
        _print_json({n: [c._asdict() for c in dispatch.computed_table(n)] for n in names})
        return
    listed = set(dispatch.keys(unused=args.all))
    for i, name in enumerate(names):
        cells = dispatch.computed_table(name)
        print(("\n" if i else "") + f"table of {name}")
        _columns([(c.key, f"[{c.source}]", place(c.file, c.line)) for c in cells if c.key in listed], "  ")
        if rest := [c.key for c in cells if c.key not in listed]:
            print(f"  no kernel or fallback is registered for {', '.join(rest)}")


def keys(args):
    """Explains dispatch keys by name, or prints the key set of an expression's tensor; without either, lists the keys that a
    call may arrive at, with --all also those without a registered kernel or fallback."""
    import tenon

    from .. import dispatch

    if not args.names:
        used = set(dispatch.keys())
        rows = [(k, "runtime" if k in used else _UNUSED) for k in dispatch.keys(unused=args.all)]
        rows += [(k, "alias") for k in _ALIASES[:4]]
        if args.json:
            _print_json([{"key": key, "kind": kind} for key, kind in rows])
        else:
            _columns(rows)
        return
    if all(re.fullmatch(r"[A-Z]\w*", name) for name in args.names):
        known, used = dispatch.keys(unused=True), set(dispatch.keys())
        facts = []
        for name in args.names:
            try:
                key = dispatch.key_parse(name)
            except ValueError:
                key = None
            if key is None:
                raise CommandError(f"there is no dispatch key '{name}'{_hint(name, [*known, *_ALIASES], 2)}")
            alias = dispatch.is_alias_key(key)
            includes = [k for k in known if k in used and alias and dispatch.is_included_in_alias(k, key)]
            facts.append({"key": key, "alias": alias, "includes": includes, "used": alias or key in used})
        if args.json:
            _print_json(facts)
        else:
            for f in facts:
                kind = "runtime key" if f["used"] else f"runtime key, {_UNUSED}"
                print(f"{f['key']}: " + (f"alias of {', '.join(f['includes'])}" if f["alias"] else kind))
        return
    expression = " ".join(args.names)
    try:
        value = eval(compile(expression, "<keys>", "eval"), {"tenon": tenon, "torch": tenon})
    except Exception as e:
        raise CommandError(f"cannot evaluate '{expression}': {type(e).__name__}: {e}") from None
    if not isinstance(value, tenon.Tensor):
        raise CommandError(f"'{expression}' is a {type(value).__name__}, not a Tensor")
    found = dispatch.key_set(value)
    _print_json(found.names()) if args.json else print(found)


#: What a key is that has a name and nothing more.
_UNUSED = "no kernel or fallback is registered for it"
#: As tables print them, then PyTorch's spellings.
_ALIASES = ("CompositeImplicit", "CompositeExplicit", "CompositeDense", "Autograd", "CatchAll",
            "CompositeImplicitAutograd", "CompositeExplicitAutograd")  # fmt: skip


def check(args):
    """Checks the dispatcher's data for OP, or for every operator: registrations, schemas and tables agree, and every
    registered kernel is for a declared operator."""
    from .. import dispatch

    dangling = dispatch.find_dangling_impls()
    if args.op:
        full = args.op if "::" in args.op else "aten::" + args.op
        names = [full] if full in dangling else operators_named(args.op)
        dangling = [name for name in names if name in dangling]
    else:
        names = [None]
    wrong = []
    for name in names:
        try:
            dispatch.check_invariants(name)
        except RuntimeError as e:
            wrong.append(str(e))
    if args.json:
        _print_json({"dangling": dangling, "wrong": wrong})
    else:
        for name in dangling:
            first = dispatch.registrations(name)[0]
            print(f"{name} has a kernel for {first.key} ({place(first.file, first.line)}) and no declaration")
        for text in wrong or ([] if dangling else ["nothing is wrong"]):
            print(text)
    return 1 if wrong or dangling else 0


def trace(args):
    """Runs a script, or code given with -c, and prints every dispatched call; with --chrome, writes them to a file that
    chrome://tracing and ui.perfetto.dev open."""
    from . import traced

    if args.code is None and args.script is None:
        args.parser.error("give a script, or code with -c")
    arguments = list(args.arguments)
    if args.code is not None and args.script is not None:
        arguments.insert(0, args.script)
    if arguments[:1] == ["--"]:
        del arguments[0]
    with _reporting(traced.NotStarted):
        return traced.run(args.script, args.code, arguments, args.shapes, args.times, args.chrome)


def stubs(args):
    """Lists every stub, its signature, and the devices that fill it in."""
    from .. import dispatch

    found = dispatch.stubs()
    if args.json:
        _print_json([s._asdict() for s in found])
        return
    # Signatures are long and so come last.
    _columns([(s.name, ", ".join(filter(None, s.devices)), s.signature or "functions in C++ only") for s in found])


def info(args):
    """Prints versions, the CPU target, threads, vendors' libraries and paths."""
    import platform

    import tenon

    from .. import _C, dispatch

    facts = {
        "tenon": tenon.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu target": tenon.cpu_target_name(),
        "threads": tenon.get_num_threads(),
        "strict": tenon.is_strict(),
        "devices": [device for device, _ in dispatch.backends()],
        "backends": dispatch.num_backends(),
        "included keys": dispatch.included_keys().names(),
        "excluded keys": dispatch.excluded_keys().names(),
        "operators": len(dispatch.operators()),
        "package": os.path.dirname(os.path.abspath(tenon.__file__)),
        "module": _C.__file__,
        "vendor libraries": sorted(vendor_libraries().values()),
        "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith("TENON_")},
    }
    if args.json:
        _print_json(facts)
        return

    def text(value):
        if isinstance(value, dict):
            return ", ".join(f"{k}={v}" for k, v in value.items()) or "none set"
        return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)

    _columns([(name, text(value)) for name, value in facts.items()])


def plans(args):
    """Shows the plans that processes left on disk for later ones, or removes them: the folder, its size, how many plans were found
    there and how many were not, by reason; ACTION `list` names each plan, `clear` removes all."""
    import tenon

    if args.action == "clear":
        with _reporting(RuntimeError):
            removed = tenon.plans.clear()
        _print_json({"removed": removed}) if args.json else print(f"removed {removed} plans")
        return
    with _reporting(RuntimeError):
        entries, known = tenon.plans.entries(), tenon.plans.info()
    if known["folder"] and not args.json:  # printed, also where its name is no UTF-8
        known["folder"] = os.fsencode(known["folder"]).decode(errors="replace")
    if args.action == "list":
        if args.json:
            _print_json(entries)
            return
        if not entries:
            print(f"no plans in {known['folder']}" if known["folder"] else f"no plans are kept: {known['off_because']}")
        _columns([(e["file"][:12], _when(e["used"]), f"{e['bytes']} bytes", e["about"] or "?", e["problem"]) for e in entries])
        return
    facts = {"folder": known["folder"] or f"none: {known['off_because']}", "plans": len(entries),
             "bytes": sum(e["bytes"] for e in entries)}  # fmt: skip
    totals = tenon.plans.totals()
    unusable = Counter(entry["problem"] for entry in entries if entry["problem"])
    if args.json:
        _print_json({**facts, "totals": totals, "unusable": unusable})
        return
    counts = {name: totals.get(name, 0) for name in ("loaded", "planned", "tuned")}
    _columns([*facts.items(), *{**counts, **totals}.items(), *((f"not for this process: {why}", n) for why, n in unusable.items())])


def _when(seconds):
    import time

    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def conformance(args):
    """Compares every operator on a device with the CPU: native, fallback, unsupported or wrong, by operator and dtype.

    Exit code 1 where something is wrong. Operators of your own take part when a module given with -i declares samples for
    them (tenon.conformance.declare).
    """
    from ..conformance import command

    return command.main(args)


def bench(args):
    """Prints what a call costs on this machine: by steps, next to the cuDNN frontend's published table and PyTorch.

    `overhead` is a custom operator over a graph, a built-in operator, and a loop of 10,000 small calls next to one large one; with
    NS::NAME it is that operator: tenon bench overhead -i my_ops.py my::norm --arguments '(tenon.ones(1, 16), 1e-6)'
    """
    from . import overhead

    if args.arguments and not args.op:
        args.parser.error("--arguments are those of an operator; name it: overhead NS::NAME")
    with _reporting(LookupError, ValueError):
        overhead.report(args.json, args.op, args.arguments)


def check_op(args):
    """Checks nine points of a fast custom operator, most of them by calling it on tiny tensors. Exit code 1 where one fails.

    Arguments are guessed from the schema, unless --arguments gives them. An operator of your own is there once its module is
    imported: tenon check-op -i my_ops.py my::norm --arguments '(tenon.ones(2, 4), 1e-5)'
    """
    from .. import check_op

    with _reporting(LookupError, ValueError):
        points = check_op.check(args.op, args.arguments, args.limit)
    if args.json:
        _print_json([point._asdict() for point in points])
    else:
        words = {True: "pass", False: "FAIL", None: "-"}
        _columns([(i, words[p.holds], p.name, p.sentence) for i, p in enumerate(points, 1)])
    return 1 if any(point.holds is False for point in points) else 0


def docs(args):
    """Prints a page of the documentation, or without PAGE the names of all and their files."""
    from . import pages

    if args.page is None:
        _columns(pages.pages().items())
        return
    with _reporting(LookupError):
        sys.stdout.write(pages.text_of(args.page))


def onnx(args):
    """Prints what the network in an ONNX file takes, returns and needs, and all that Tenon lacks of it.

    The exit code is 1 if something is missing.
    """
    import tenon

    with _reporting(OSError, ValueError):
        found = tenon.onnx.contents(args.file)
    if args.json:
        _print_json(found.as_dict())
    else:
        print(found)
    return 1 if found.missing else 0


def _positive(text):
    """A number of at least 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, got {number}")
    return number


class _Version(argparse.Action):
    def __call__(self, parser, *_):
        import tenon

        print("tenon", tenon.__version__)
        parser.exit()


#: What --arguments is.
_ARGUMENTS = "a tuple: '(tenon.ones(2, 4), 1e-5)'"


def _parser():
    parser = _Parser(prog="tenon", description=__doc__.splitlines()[0])
    parser.add_argument("--version", action=_Version, nargs=0, help="print Tenon's version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(function, has_json=True):
        short = " ".join(function.__doc__.split("\n\n")[0].split())
        sub = commands.add_parser(function.__name__.replace("_", "-"), help=short, description=function.__doc__)
        sub.add_argument("-i", "--import", dest="modules", metavar="MODULE", action="append", default=[],
                         help="import a module first, or a file of Python, for the operators that it registers")  # fmt: skip
        sub.add_argument("-l", "--load", dest="libraries", metavar="FILE", action="append", default=[],
                         help="load a shared library first: operators, or a device")  # fmt: skip
        if has_json:
            sub.add_argument("--json", action="store_true", help="print JSON")
        sub.set_defaults(run=function, parser=sub)
        return sub

    sub = add(ops)
    sub.add_argument("pattern", nargs="?", metavar="PATTERN")
    sub.add_argument("-a", "--all", action="store_true", help="also what has no function or method in Python")
    sub.add_argument("-s", "--schemas", action="store_true", help="print schemas, not names")
    sub.add_argument("-k", "--key", metavar="KEY", help="only those with a kernel for a key, such as OpenReg or Autograd")
    sub = add(where)
    sub.add_argument("op", metavar="NAME", help="add, aten::add.Tensor, torch.softmax, Tensor.softmax, nn.Linear, 'soft*'")
    for function in (dump, table):
        sub = add(function)
        sub.add_argument("op", metavar="OP", help="aten::add.Tensor; add means all overloads of aten::add")
        if function is table:
            sub.add_argument("-a", "--all", action="store_true", help="also keys without a registered kernel or fallback")
    sub = add(keys)
    sub.add_argument("names", nargs="*", metavar="KEY or EXPRESSION")
    sub.add_argument("-a", "--all", action="store_true", help="also keys without a registered kernel or fallback")
    add(check).add_argument("op", nargs="?", metavar="OP", help="as of dump")
    sub = add(trace, has_json=False)
    sub.add_argument("--shapes", action="store_true", help="also print the shapes of arguments")
    sub.add_argument("--times", action="store_true", help="also print when a call ends, and how long it took")
    sub.add_argument("--chrome", metavar="FILE", help="print nothing; write the calls to FILE as JSON")
    sub.add_argument("-c", dest="code", metavar="CODE", help="code in place of a script")
    sub.add_argument("script", nargs="?", metavar="SCRIPT")
    sub.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="the script's arguments")
    add(stubs)
    add(info)
    add(docs, has_json=False).add_argument("page", nargs="?", metavar="PAGE", help="compile, as docstrings say docs/compile.md")
    add(onnx).add_argument("file", metavar="FILE", help="a model; nothing of it is run")
    sub = add(plans)
    sub.add_argument("action", nargs="?", metavar="ACTION", choices=("show", "list", "clear"), default="show",
                     help="show (as without one), list or clear")  # fmt: skip
    sub = add(check_op)
    sub.add_argument("op", metavar="NS::NAME", help="tenon::rmsnorm; with -i, an operator that a module registers")
    sub.add_argument("--arguments", metavar="EXPRESSION", help=_ARGUMENTS)
    sub.add_argument("--limit", metavar="NS", type=float, default=2000.0, help="nanoseconds that a call may take besides its kernel; 2000")
    sub = add(bench)
    sub.intermixed = True
    sub.add_argument("report", choices=["overhead"], help="what a call costs besides its kernel")
    sub.add_argument("op", nargs="?", metavar="NS::NAME", help="as of check-op")
    sub.add_argument("--arguments", metavar="EXPRESSION", help=_ARGUMENTS)
    sub = add(conformance, has_json=False)
    sub.add_argument("device", metavar="DEVICE", help="the device's name, as load_device and TENON_PLUGIN_PATH have it")
    sub.add_argument("--plugin", metavar="FILE", help="the device's library; without it, DEVICE is looked for")
    sub.add_argument("--option", metavar="NAME=VALUE", action="append", default=[], help="an option of the plug-in")
    sub.add_argument("--ops", metavar="PATTERN", action="append", default=[], help="add, add.Tensor, '*_backward', 'myops::*'")
    sub.add_argument("--dtypes", metavar="DTYPE", nargs="+", default=[], help="only these")
    sub.add_argument("--quick", action="store_true", help="fewer samples and dtypes; a minute at most")
    sub.add_argument("--csv", metavar="FILE", help="write a row for each operator and dtype")
    sub.add_argument("--jobs", metavar="N", type=_positive, help="how many processes; as many as processors")
    sub.add_argument("-v", "--verbose", action="store_true", help="also every row, and what was skipped by reason")
    return parser


def _run(argv):
    args, unknown = _parser().parse_known_args(argv)
    if unknown:
        args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    try:
        # What it imports may need the device, which each of its processes loads first.
        early = args.command != "conformance"
        for module in args.modules if early else ():
            try:
                import_first(module)
            except Exception as e:
                raise CommandError(f"cannot import '{module}': {type(e).__name__}: {e}") from None
        if args.libraries and early:
            from .. import devices

            with _reporting(OSError, RuntimeError, ValueError):
                for path in args.libraries:
                    devices.load_file(path)
        return args.run(args) or 0
    except (CommandError, UnknownName) as e:
        print(f"tenon {args.command}: {e}", file=sys.stderr)
        return 1


def main(argv=None):
    """Runs one command and returns the exit code."""
    try:
        try:
            return _run(argv)
        finally:
            sys.stdout.flush()  # here, where a closed pipe is no surprise
    except BrokenPipeError:
        # The reader has had enough. Nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print("tenon: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
