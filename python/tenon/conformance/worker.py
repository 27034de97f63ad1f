"""One process of the kit: reads what to do as JSON, tries operators on the device, and prints a line of JSON for each.

A device may crash it; the line that began and did not end says at which operator.
"""

import importlib
import json
import os
import sys

import tenon

from . import table
from .cells import QUICK, Bench, Plan, forms_of
from .claims import Claims
from .families import row_of
from .rows import DECLARED


def prepare(job):
    """Loads the device and what declares operators; the bench."""
    name = job["device"].partition(":")[0]
    if job["plugin"]:
        tenon.load_device(job["plugin"], name=name, options=job["options"])
    elif tenon.devices.module_if_there(name) is None:
        raise ValueError(f"there is no device {name} in TENON_PLUGIN_PATH; give its library with --plugin")
    for library in job["libraries"]:
        tenon.ops.load_library(library)
    sys.path.insert(0, os.getcwd())
    for module in job["modules"]:
        importlib.import_module(module)
    sys.path.pop(0)
    plan = QUICK if job["quick"] else Plan()
    if job["dtypes"]:
        unknown = set(job["dtypes"]) - set(Plan().dtypes)
        if unknown:
            raise ValueError(f"there is no dtype {', '.join(sorted(unknown))}; there are {', '.join(Plan().dtypes)}")
        plan = plan.of(tuple(job["dtypes"]))
    return Bench(job["device"], plan, Claims(job["device"]))


def entries():
    """All of Tenon's operators and the declared ones, by name."""
    return {**table.entries(), **table.declared(DECLARED)}


def say(kind, **what):
    print(json.dumps({"what": kind, **what}), flush=True)


def main():
    job = json.loads(sys.stdin.readline())
    try:
        bench = prepare(job)
        found = entries()
    except Exception as e:  # of the device or of a module: the parent says it
        return say("error", text=f"{type(e).__name__}: {e}")
    wanted = job["entries"]
    if wanted is None:
        return say("entries", names=list(found), forms={n: [o.full_name for o in e.operators] for n, e in found.items()},
                   described=tenon.devices.module_if_there(bench.name).get_device_properties()._asdict()["name"],
                   kernels=sorted(bench.claims.own), stubs=bench.claims.stubs)  # fmt: skip
    for name in wanted:
        entry = found[name]
        row = row_of(entry)
        tried = {op.full_name for op in forms_of(entry, row)}
        for op in entry.operators:
            if op.full_name in job["done"] or job["forms"] and op.full_name not in job["forms"]:
                continue
            if op.full_name not in tried:
                say("absent", entry=name, operator=op.full_name, text="no row describes it" if row is None else "Python does not reach it")
                continue
            say("begin", entry=name, operator=op.full_name)
            for cell in bench.try_operator(op, row):
                say("cell", **cell.summary())
            say("did", operator=op.full_name)
        say("end", entry=name)


if __name__ == "__main__":
    main()
