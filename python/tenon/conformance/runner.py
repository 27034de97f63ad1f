"""Runs the kit over a device: workers in processes of their own, which restart after the operator that crashed one."""

import fnmatch
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass, field

from .cells import Cell


class KitError(Exception):
    """The kit cannot run: no such device, no such operator."""


@dataclass
class Report:
    """What a run found."""

    device: str
    described: str = ""
    kernels: list = field(default_factory=list)  # operators with kernels of the plug-in's own
    stubs: list = field(default_factory=list)
    cells: list = field(default_factory=list)
    absent: dict = field(default_factory=dict)  # operator: why it was not tried
    checks: dict = field(default_factory=dict)  # {part: {check: kept, not offered, not seen, wrong}}, of device_checks.py

    def states(self):
        return Counter(c.state for c in self.cells)

    def wrong(self):
        return [c for c in self.cells if c.state == "wrong"]

    def skips(self):
        """{reason: how many kinds of samples}; "" where there is none."""
        found = Counter()
        for c in self.cells:
            found.update(c.skipped)
        return found


class Worker:
    """One process with its share of the entries."""

    def __init__(self, job, entries, said):
        self.job, self.left, self.said = job, list(entries), said
        self.begun, self.done = None, []
        self.process, self.stopped = None, False

    def stop(self):
        """From another thread: `run` returns."""
        self.stopped = True
        if self.process:
            self.process.process.kill()

    def run(self):
        while self.left:
            code, errors = self.one_process()
            if self.stopped:
                return
            if self.begun is None and code == 0:
                return
            if self.begun is None:
                raise KitError(f"a process of the kit ended with code {code}: {errors[-1500:]}")
            self.crashed(code, errors)

    def one_process(self):
        self.begun = None
        self.process = Process({**self.job, "entries": self.left, "done": self.done})
        if self.stopped:
            self.stop()
        for message in self.process.messages():
            if message["what"] == "begin":
                self.begun = message["operator"]
            elif message["what"] == "did":
                self.begun = None
                self.done.append(message["operator"])
            elif message["what"] == "end":
                self.left.remove(message["entry"])
            self.said.put(message)
        return self.process.end()

    def crashed(self, code, errors):
        """Notes the running operator; the next process continues after it."""
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        last = errors.strip().splitlines()[-1:] or [""]
        # An exception that reached the end of the process is not the operator's own, which is caught.
        kind, what = ("crash", "the process died: ") if code < 0 else ("failure", "")
        cell = Cell(self.begun, "any", differences={kind: f"{what}{how} {last[0]}".rstrip()})
        self.said.put({"what": "cell", **cell.summary()})
        self.done.append(self.begun)


def environment():
    """One thread for each process, and this very package, wherever the process starts."""
    package = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    return {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": path}


class Process:
    """A process that does a job: worker.py."""

    def __init__(self, job):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([sys.executable, "-m", "tenon.conformance.worker"], stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, stderr=self.errors, env=environment())  # fmt: skip
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.close()

    def messages(self):
        for line in self.process.stdout:
            if line.startswith('{"what"'):  # a plug-in may print, too
                yield json.loads(line)

    def end(self):
        """(exit code, what was written to stderr)"""
        code = self.process.wait()
        self.errors.seek(0)
        return code, self.errors.read()


#: Why operators of the plug-in's own are not tried.
NO_SAMPLES = "no samples are declared: tenon.conformance.declare, in a module given with -i"


def chosen(forms, patterns, absent=()):
    """{entry: its operators} that match one of the patterns, or have one as a part of their name's beginning."""
    if not patterns:
        return {entry: [] for entry in forms}
    found = {}
    for entry, names in forms.items():
        hits = [n for n in names if any(fnmatch.fnmatchcase(n, p) or n.partition(".")[0] == p for p in patterns)]
        if hits:
            found[entry] = hits
    if not found:
        why = f"; {', '.join(absent)}: {NO_SAMPLES}" if absent else ""
        raise KitError(f"no operator matches {' or '.join(patterns)}{why}")
    return found


def run(device, plugin=None, options=None, ops=(), dtypes=(), quick=False, modules=(), libraries=(), jobs=1):
    """Tries operators on a device, which is loaded from `plugin` in each process; returns a Report."""
    job = {"device": device, "plugin": plugin and os.path.abspath(plugin), "options": options or {}, "quick": quick,
           "dtypes": list(dtypes), "modules": list(modules), "libraries": list(libraries), "entries": None,
           "forms": [], "done": []}  # fmt: skip
    if device in ("cpu", "meta"):
        raise KitError(f"{device} is not a device from a plug-in; the kit compares those with the CPU")
    process = Process(job)
    answer = next(process.messages(), None)
    code, errors = process.end()
    if answer is None:
        raise KitError(f"the device {device} cannot be started: exit code {code}: {errors[-1500:]}")
    if answer["what"] == "error":
        raise KitError(answer["text"])
    report = Report(device, answer["described"], answer["kernels"], answer["stubs"])
    own = [k for k in answer["kernels"] if not k.startswith("aten::") and k not in answer["forms"]]
    report.absent.update({k: NO_SAMPLES for k in own if not ops or any(fnmatch.fnmatchcase(k, p) for p in ops)})
    found = chosen(answer["forms"], ops, report.absent)
    job["forms"] = sorted({f for forms in found.values() for f in forms})
    said, failed = queue.Queue(), []
    workers = [Worker(job, share, said) for i in range(jobs) if (share := list(found)[i::jobs])]

    def work(worker):
        try:
            worker.run()
        except Exception as e:
            failed.append(e)

    threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
    try:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    except BaseException:  # Ctrl-C, which the processes have got too: their end is no crash
        for worker in workers:
            worker.stop()
        for t in threads:
            if t.is_alive():
                t.join()
        raise
    if failed:
        raise failed[0]
    while not said.empty():
        note(report, said.get())
    order = {n: i for i, n in enumerate(n for forms in answer["forms"].values() for n in forms)}
    report.cells.sort(key=lambda c: order.get(c.operator, 0))
    return report


def note(report, message):
    what = message.pop("what")
    if what == "cell":
        message.pop("state")
        report.cells.append(Cell(**{**message, "skipped": Counter(message["skipped"])}))
    elif what == "absent":
        report.absent[message["operator"]] = message["text"]
    elif what == "check":
        report.checks.setdefault(message["part"], {})[message["check"].partition(".")[2]] = message["state"]
    elif what == "error":
        raise KitError(message["text"])
