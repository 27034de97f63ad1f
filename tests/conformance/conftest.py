"""The matrix of this run: filled by the tests, written to build/conformance.txt, summed up at the end.

    TENON_CONFORMANCE=sample:SEED    a tenth of the operators, chosen by the seed (any text), in all their forms
"""

import os
from pathlib import Path

import pytest

from conformance.chosen import SAMPLE, is_chosen
from tenon.conformance.matrix import Matrix

_MATRIX = Matrix()
_RAN = set()  # (function, its parameter) of every test of this folder that ran


def pytest_collection_modifyitems(config, items):
    items.sort(key=lambda item: item.name == "test_no_cell_is_silent")  # what the others filled in
    if not SAMPLE:
        return
    if not SAMPLE.startswith("sample:"):
        raise pytest.UsageError(f"TENON_CONFORMANCE is 'sample:SEED', got {SAMPLE!r}")
    operators = [(i, i.callspec.params.get("name") if hasattr(i, "callspec") else None) for i in items]
    config.hook.pytest_deselected(items=[i for i, name in operators if name and not is_chosen(name)])
    items[:] = [i for i, name in operators if not name or is_chosen(name)]


def pytest_runtest_teardown(item):
    if hasattr(item, "callspec"):
        _RAN.add((item.originalname, item.callspec.params.get("name")))


@pytest.fixture(scope="session")
def ran():
    return _RAN


@pytest.fixture(scope="session")
def matrix():
    return _MATRIX


@pytest.fixture(scope="session")
def deep(request):
    return bool(os.environ.get("TENON_CONFORMANCE_DEEP"))


def pytest_terminal_summary(terminalreporter):
    if not _MATRIX.cells:
        return
    path = Path(os.environ.get("TENON_CONFORMANCE_REPORT") or Path(__file__).parents[2] / "build" / "conformance.txt")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_MATRIX.text())
    terminalreporter.section("conformance")
    for line in _MATRIX.summary():
        terminalreporter.write_line(line)
    terminalreporter.write_line("absent, by reason (all of it in " + str(path) + "):")
    for reason, keys in _MATRIX.absent_by_reason()[:12]:
        terminalreporter.write_line(f"  {len(keys):6} {reason}")


def pytest_configure(config):
    # References of empty means and of variances of one element, which are nan on purpose.
    for text in ("Mean of empty slice", "Degrees of freedom <= 0"):
        config.addinivalue_line("filterwarnings", f"ignore:{text}:RuntimeWarning")
