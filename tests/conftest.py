"""Two ways to run a part of the tests, or all of them in another way.

    pytest --slow none            without the tests that slow.txt lists, which take a third of a second or more
    pytest --slow sample:SEED     with a seeded tenth of those
    pytest --slow only            those alone
    pytest --list-slow            runs the tests and writes those that took so long to slow.txt

TENON_COMPILE: runs the tests inside a scope that records everything, which must change no result.

    TENON_COMPILE=all             every test, but those in not_recorded.txt
    TENON_COMPILE=sample:SEED     a seeded tenth of them, and no others
    TENON_FLUSH=random:SEED       cuts what is recorded at seeded random points; the library reads it

The summary says how many calls of each folder were recorded, and why the others ran at once.
"""

import os
import zlib
from collections import Counter
from pathlib import Path

import pytest

# No test reads or writes the plans of whoever runs it. Those of the cache start processes with a folder.
os.environ["TENON_CACHE"] = "0"
# The same spectra on every machine. Those of LAPACK start processes with a file.
os.environ["TENON_LAPACK"] = "off"

HERE = Path(__file__).parent
SLOW = HERE / "slow.txt"
SLOW_SECONDS = 0.3
CHOSEN = os.environ.get("TENON_COMPILE", "")
SAMPLE_PERCENT = 10
#: What there is no waiting for: reads of values, operators of users, which run at their line, and devices with queues of their own.
NEVER = (
    ": it returns something else than tensors", ": a number is made of it: item(), bool(), float(), if",
    ": the operator, or a kernel of it, is the user's", ": a tensor is not on the host", ": it makes a tensor on a device",
)  # fmt: skip
#: The compiled functions of tests/compile open scopes of their own, and count what those do.
OWN_SCOPES = "tests/compile/"

_counts = {}  # folder of tests -> Counter of calls
_reasons = Counter()


def not_recorded():
    """{beginning of a test's id: why it is left out}"""
    reasons = {}
    for line in (HERE / "not_recorded.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, why = line.partition("  ")
            reasons[name] = why.strip()
    return reasons


def pytest_addoption(parser):
    group = parser.getgroup("tenon")
    group.addoption("--slow", default="all", metavar="all|none|only|sample:SEED", help="which of the tests of tests/slow.txt to run")
    group.addoption("--list-slow", action="store_true", help="write tests that take a third of a second or more to tests/slow.txt")


def slow_tests():
    return {line for line in SLOW.read_text().splitlines() if line and not line.startswith("#")}


def is_sampled(seed, name):
    return zlib.crc32(f"{seed} {name}".encode()) % 100 < SAMPLE_PERCENT


def drop(config, items, unwanted):
    """Leaves out the items for which `unwanted` holds."""
    dropped = [item for item in items if unwanted(item)]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if not unwanted(item)]


def choose_slow(config, items, which):
    slow = slow_tests()
    if which == "only":
        drop(config, items, lambda item: item.nodeid not in slow)
    elif which != "all":
        drop(config, items, lambda item: item.nodeid in slow and (which == "none" or not is_sampled(which, item.nodeid)))


class _SlowTests:
    """Adds up what each test took and writes those above the limit."""

    def __init__(self):
        self.seconds = Counter()

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self):
        found = sorted(test for test, seconds in self.seconds.items() if seconds >= SLOW_SECONDS)
        head = [line for line in SLOW.read_text().splitlines() if line.startswith("#")]
        SLOW.write_text("\n".join(head + found) + "\n")


def pytest_configure(config):
    # With pytest-xdist the first process hears of all tests.
    if config.getoption("--list-slow") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_SlowTests())
    if CHOSEN and CHOSEN != "all" and not CHOSEN.startswith("sample:"):
        raise pytest.UsageError(f"TENON_COMPILE is 'all' or 'sample:SEED', got {CHOSEN!r}")
    which = config.getoption("--slow")
    if which not in ("all", "none", "only") and not which.startswith("sample:"):
        raise pytest.UsageError(f"--slow is 'all', 'none', 'only' or 'sample:SEED', got {which!r}")


def pytest_collection_modifyitems(config, items):
    choose_slow(config, items, config.getoption("--slow"))
    if not CHOSEN:
        return
    left_out = (OWN_SCOPES, *not_recorded())

    def unwanted(item):
        name = item.nodeid if item.nodeid.startswith("tests/") else f"tests/{item.nodeid}"
        return name.startswith(left_out) or not (CHOSEN == "all" or is_sampled(CHOSEN, name))

    drop(config, items, unwanted)


if CHOSEN:
    import tenon

    def _stats():
        stats = tenon._C._record_stats()
        why = {reason: n for reason, n in stats["reasons"].items() if not reason.startswith("flush: ")}
        return {**stats, "never": sum(n for reason, n in why.items() if reason.endswith(NEVER))}

    class _Raises:
        """pytest.raises, at whose end what was recorded is computed: errors that follow from values come then."""

        def __init__(self, checker):
            self._checker = checker

        def __enter__(self):
            return self._checker.__enter__()

        def __exit__(self, kind, error, trace):
            if error is None:
                try:
                    tenon._C._record_flush()
                except Exception as e:
                    kind, error, trace = type(e), e, e.__traceback__
            return self._checker.__exit__(kind, error, trace)

    _raises = pytest.raises

    def _raises_at_the_end(*args, **kwargs):
        if len(args) > 1:  # a function to call
            function, *given = args[1:]
            with _raises_at_the_end(args[0]) as info:
                function(*given, **kwargs)
            return info
        return _Raises(_raises(*args, **kwargs))

    pytest.raises = _raises_at_the_end

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(pyfuncitem):
        folder = Path(pyfuncitem.path).relative_to(HERE).parts[0]
        # Conformance makes its samples of arrays, which it never writes; other tests may.
        shared = "trusted" if folder == "conformance" else "safe"
        before = _stats()
        with tenon.recording(threshold=0, shared=shared):
            result = yield
        after = _stats()
        for name in ("recorded", "now", "never"):
            _counts.setdefault(folder, Counter())[name] += after[name] - before[name]
        _reasons.update({why: n - before["reasons"].get(why, 0) for why, n in after["reasons"].items()})
        return result


def _percent(part, whole):
    return f"{100 * part / whole if whole else 100:5.1f} %"


def pytest_terminal_summary(terminalreporter):
    if not _counts:
        return
    terminalreporter.section("recorded programs")
    for folder, counts in [*sorted(_counts.items()), ("all", sum(_counts.values(), Counter()))]:
        calls = counts["recorded"] + counts["now"]
        others = calls - counts["never"]
        terminalreporter.write_line(
            f"  {folder:14} {_percent(counts['recorded'], calls)} of {calls:8} calls that are no views were recorded; "
            f"{_percent(counts['recorded'], others)} of those that read no value and are neither the user's nor a device's"
        )
    terminalreporter.write_line("ran at once:")
    for why, n in _reasons.most_common(15):
        if n and not why.startswith("flush: "):
            terminalreporter.write_line(f"  {n:8} {why}")
