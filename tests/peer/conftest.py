"""Skips the folder where PyTorch is not installed, and counts what was compared."""

from collections import Counter
from pathlib import Path

import pytest

_COUNTS = Counter()
_DIFFERENCES = []


@pytest.fixture(scope="session")
def counts():
    return _COUNTS


@pytest.fixture(scope="session")
def differences():
    return _DIFFERENCES


def pytest_terminal_summary(terminalreporter):
    if not _COUNTS:
        return
    path = Path(__file__).parents[2] / "build" / "peer.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(_DIFFERENCES) + "\n")
    terminalreporter.section("beside PyTorch")
    for what, n in sorted(_COUNTS.items(), key=lambda item: -item[1]):
        terminalreporter.write_line(f"  {n:7} {what}")
