"""Traces with shapes and times, and recordings as Chrome's Trace Event Format."""

import collections
import json
import os
import subprocess
import sys
import threading

import pytest

import tenon
from tenon import dispatch


def check_trace_events(text):
    """The format as its document describes it (Trace Event Format, October 2016): the fields that each phase must have, their
    types, and that complete events of one thread nest."""
    document = json.loads(text)
    assert set(document) == {"traceEvents", "displayTimeUnit"} and document["displayTimeUnit"] in ("ms", "ns")
    required = {"M": {"name": str, "args": dict}, "X": {"name": str, "cat": str, "ts": float, "dur": float, "args": dict},
                "i": {"name": str, "cat": str, "ts": float, "s": str}}  # fmt: skip
    stacks = collections.defaultdict(list)
    for event in document["traceEvents"]:
        fields = {**required[event["ph"]], "ph": str, "pid": int, "tid": int}
        assert set(event) == set(fields), event
        assert all(isinstance(event[name], (int, float) if kind is float else kind) for name, kind in fields.items()), event
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name") and isinstance(event["args"]["name"], str)
        if event["ph"] == "i":
            assert event["s"] in "gpt"
        if event["ph"] == "X":
            assert event["ts"] >= 0 and event["dur"] >= 0
            stack = stacks[event["pid"], event["tid"]]
            while stack and stack[-1] <= event["ts"]:
                stack.pop()
            end = event["ts"] + event["dur"]
            assert not stack or end <= stack[-1] + 1e-6, "an event ends after the one that it is in"
            stack.append(end)
    return document["traceEvents"]


def test_lines_show_shapes_and_times_on_request():
    x = tenon.ones(2, 3)
    with dispatch.trace(shapes=True) as lines:
        x + tenon.tensor(1.0)
    assert " [call] op=[aten::add.Tensor], key=[CPU], args=[CPU, CPU], shapes=[[2, 3], []]" in lines
    with dispatch.trace(times=True) as lines:
        x * 2
        with pytest.raises(RuntimeError):
            x @ x
    assert lines[0].startswith(" [call] op=[aten::mul") and lines[1].startswith(" [return] op=[aten::mul") and "us=[" in lines[1]
    assert any(line.strip().startswith("[throw] op=[aten::m") for line in lines)
    with dispatch.trace() as lines:
        x + x
    assert lines == [" [call] op=[aten::add.Tensor], key=[CPU], args=[CPU, CPU]"]


def test_traces_that_overlap_each_get_every_line():
    x = tenon.ones(2)
    first, second = dispatch.trace(), dispatch.trace(shapes=True)
    a = first.__enter__()
    x + 1
    b = second.__enter__()
    x - 1
    first.__exit__(None, None, None)
    x * 2
    second.__exit__(None, None, None)
    x / 2
    assert [sum(f"aten::{name}." in line for line in a) for name in ("add", "sub", "mul", "div")] == [1, 1, 0, 0]
    assert [sum(f"aten::{name}." in line for line in b) for name in ("add", "sub", "mul", "div")] == [0, 1, 1, 0]
    assert all("shapes=" in line for line in b)


def test_recordings_of_several_threads_are_valid_json():
    def work():
        x = tenon.randn(3, 4, requires_grad=True)
        (x * x).sum().backward()

    with dispatch.record() as recording:
        with pytest.raises(RuntimeError, match="has not ended"):
            recording.chrome_trace()
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        work()
        with pytest.raises(RuntimeError):
            tenon.ones(2, 3) @ tenon.ones(2, 3)
    events = check_trace_events(recording.chrome_trace())
    calls = [e for e in events if e["ph"] == "X"]
    assert len(calls) == len(recording.events) > 40
    ids = {t.native_id for t in threads} | {threading.get_native_id()}
    assert {e["tid"] for e in calls} == {e.thread for e in recording.events} == ids
    assert {e["pid"] for e in calls} == {os.getpid()}
    named = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert set(named) == ids and "main thread" in named.values()
    (product,) = {e["name"] for e in calls if e["args"]["Input Dims"] == [[3, 4], [3, 4]] and e["name"] == "aten::mul.Tensor"}
    assert product == "aten::mul.Tensor"
    failed = [e for e in calls if e["args"].get("failed")]
    assert failed and all("m" in e["name"] for e in failed)
    first = recording.events[0]
    assert first.op == calls[0]["name"] and first.depth == 0 and first.end_ns >= first.begin_ns and first.stream is None


def test_calls_of_kernels_in_python_nest():
    with tenon.library.Library("traced", "DEF") as lib:
        lib.define("odd(Tensor x) -> Tensor")
        lib.impl("odd", lambda x: x + x, "CPU")
        x = tenon.ones(1)
        with dispatch.record() as recording:
            tenon.ops.traced.odd(x)
    assert [(e.op, e.depth) for e in recording.events] == [("traced::odd", 0), ("aten::add.Tensor", 1)]
    check_trace_events(recording.chrome_trace())


def test_nothing_is_recorded_outside(tmp_path):
    with dispatch.record() as recording:
        pass
    tenon.ones(1)
    assert recording.events == []
    recording.export_chrome_trace(tmp_path / "trace.json")
    check_trace_events((tmp_path / "trace.json").read_text())


@pytest.mark.parametrize("value, shown", [("1", ()), ("shapes", ("shapes=",)), ("shapes,times", ("shapes=", "us=")), ("0", None), ("", None)])
def test_the_environment_switches_it_on(value, shown):
    done = subprocess.run(
        [sys.executable, "-c", "import tenon; tenon.ones(2) + tenon.ones(2)"], capture_output=True, text=True,
        env={**os.environ, "TENON_SHOW_DISPATCH_TRACE": value},
    )  # fmt: skip
    assert ("[call] op=[aten::add.Tensor]" in done.stderr) == (shown is not None)
    for part in ("shapes=", "us="):
        assert (part in done.stderr) == (part in (shown or ()))
