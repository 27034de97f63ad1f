"""Plans on disk: what earlier processes planned is loaded by later ones, and what this one made, found and missed.

    TENON_CACHE=dir         the folder; empty or 0: none. By default tenon in $XDG_CACHE_HOME, or in ~/.cache
    TENON_CACHE_MB=n        how large it gets, 64 by default; what was used longest ago goes first
    TENON_CACHE_REPORT=1    writes a line at the end of a process: 0 planned, 0 tuned, 3 loaded

`tenon plans` is the same as a command.
"""

from __future__ import annotations

from . import _C
from .arguments import check_module as _check_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["clear", "entries", "info", "summary", "totals", "write"]

_plans = _C._plans


def info() -> dict[str, Any]:
    """What this process did: plans that it "planned", "tuned", "loaded" and has "written"; how often a plan was not there, by
    reason ("missed"), and how often one could not be written ("not_written"); the "folder", or None, and why ("off_because")."""
    return _plans.info()


def summary() -> str:
    """The same as a line: "0 planned, 0 tuned, 3 loaded", with the reasons of what was missed."""
    return _plans.summary()


def entries() -> list[dict[str, Any]]:
    """The plans in the folder, the one used last first: "file", "bytes", when it was "used" (seconds since 1970), what it is
    "about", which "build" of Tenon wrote it on which "machine", and why this process would not take it ("problem", else empty).
    Raises RuntimeError for a folder that is not used, such as one that others may write."""
    return _plans.entries()


def totals() -> dict[str, int]:
    """What all processes that have ended counted in the folder since it was emptied: "planned", "loaded", "missed: ..."."""
    return _plans.totals()


def write() -> None:
    """Writes the plans that wait to be written. Otherwise that is done about a second after they were made, and when the process
    ends."""
    _plans.write()


def clear() -> int:
    """Removes all plans from the folder, and the counts. Returns how many plans there were."""
    return _plans.clear()


_check_module(globals())
