"""The report of a compiled function: what _C._record_explain tells, as text that a reader can act on."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SHOWN = 20  # of each kind, the most frequent first; `events` has all

class Report:
    """What became of the calls of a compiled function. `str(report)` is for readers; `events` is the same as dictionaries.

    Every event has "event"; segments come in the order in which they were planned:
        "segment": operators that were planned together: "runs" of the plan, whether an earlier process made it ("loaded"), "nodes" (operators), "steps", "first_line",
            "last_line", "ended" (why; "ended_by" which operator, if one), "regions" (each with its name, its operators, the bytes that it moves, those
            that its operators would move apart, the "engine" that runs it and its "knobs", why others "refused" to, and, with tune=, what was
            "timed": names, "microseconds", and the "reason" why it was not taken) and "opaque" (operator, line, why it is part of no region)
        "now": an operator that ran at once: "operator", "reason", "line", "count"
        "left": a call that differed from what ran before: "operator", "field", "line", "count"
        "forced": a value was needed: "reason", "line", "count", and "operator" if it was one
        "replays": with pure=True, how many there are ("count"), and how often one ran ("runs")
        "replanned": with pure=True, what was another value than in an earlier call: "reason", "count"
        "refused": with pure=True, why the program runs at every call: "reason", "line"
        "skipped": runs that were not recorded, as those before them had saved nothing: "count"
        "forgotten": all plans were dropped, as there were more than 1,024: "count"
    """

    def __init__(self, events: Any) -> None:
        self.events = events

    def of(self, kind: str) -> list[Any]:
        """The events of one kind."""
        return [event for event in self.events if event["event"] == kind]

    @property
    def segments(self) -> list[Any]:
        return self.of("segment")

    @property
    def planned(self) -> int:
        """How many plans there are: calls that are like earlier ones add none."""
        return len(self.segments)

    @property
    def loaded(self) -> int:
        """How many of them an earlier process made."""
        return sum(segment["loaded"] for segment in self.segments)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        if not self.events:
            return "nothing was recorded yet"
        runs = sum(segment["runs"] for segment in self.segments)
        loaded = f", {self.loaded} of them made by an earlier process" if self.loaded else ""
        lines = [f"{_count(self.planned, 'plan')}{loaded}, run {_times(runs)}"]
        for event in self.of("forgotten"):
            lines[0] += f"; those before were forgotten {_times(event['count'])}, as there were more than 1,024"
        numbered = sorted(enumerate(self.segments, 1), key=lambda s: -s[1]["runs"])[:_SHOWN]
        for number, segment in sorted(numbered, key=lambda s: s[0]):
            lines += _segment(number, segment)
        lines += _more(len(self.segments))
        for kind, title, describe in (
            ("forced", "a value was needed before the end", lambda e: _why(e.get("operator"), e["reason"])),
            ("now", "ran at once", lambda e: _why(e["operator"], e["reason"])),
            ("left", "left the known path", lambda e: f"{e['operator']}: {e['field']}"),
            ("replanned", "recorded again, because another value was there than before", lambda e: e["reason"]),
            ("refused", "not replayed", lambda e: e["reason"]),
        ):
            events = self.of(kind)
            if events:
                lines.append(title)
            for event in sorted(events, key=lambda e: -e["count"])[:_SHOWN]:
                lines.append(f"  {_place(event.get('line'))}{describe(event)} ({_times(event['count'])})")
            lines += _more(len(events))
        for event in self.of("skipped"):
            lines.append(f"not recorded {_times(event['count'])}: what was given was no larger than where no calls were joined")
        for event in self.of("replays"):
            lines.append(f"{_count(event['count'], 'replay')}, run {_times(event['runs'])} without the program")
        return "\n".join(lines)


def _more(count):
    if count > _SHOWN:
        yield f"  and {count - _SHOWN} more"


def _segment(number, segment):
    span = _short(segment["first_line"])
    last = _short(segment["last_line"])
    if last != span:
        span = f"{span} to {last}"
    yield (
        f"plan {number}: {_count(segment['nodes'], 'operator')} in {_count(segment['steps'], 'step')}, {span}, "
        f"run {_times(segment['runs'])}, ended: {_why(segment.get('ended_by'), segment['ended'])}"
    )
    for region in segment["regions"]:
        yield (
            f"  {region['name']}: {', '.join(region['operators'])}; moves {_bytes(region['bytes'])} "
            f"instead of {_bytes(region['bytes_apart'])}; run by {region['engine']}{_knobs(region['knobs'])}"
        )
        for trial in region["timed"]:
            time = f"{trial['microseconds']:.1f} us" if trial["microseconds"] else ""
            yield f"    timed: {trial['name']}: {', '.join(filter(None, (time, trial['reason'])))}"
        yield from (f"    not by {why}" for why in region["refused"])
    for operator, line, reason in segment["opaque"]:
        yield f"  {_place(line)}{operator}: {reason}"


def _knobs(knobs):
    return f"({', '.join(f'{name}={value}' for name, value in knobs.items())})" if knobs else ""


def _why(operator, reason):
    return f"{operator}: {reason}" if operator else reason


def _bytes(n):
    for unit in ("bytes", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.0f} {unit}" if unit == "bytes" else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} GiB"


def _count(n, what):
    return f"{n} {what}{'' if n == 1 else 's'}"


def _times(n):
    return "once" if n == 1 else f"{n} times"


def _short(line):
    """A line without the folder that the program runs in."""
    if not line:
        return ""
    here = os.getcwd() + os.sep
    return line.removeprefix(here)


def _place(line):
    short = _short(line)
    return f"{short}: " if short else ""
