"""One process of the kit: reads what to do as JSON, tries operators on the device, and prints a line of JSON for each.

A device may crash it; the line that began and did not end says at which operator.
"""

import json
import sys

import tenon

from .._tools.imports import import_first
from . import device_checks, table
from .cells import QUICK, Bench, Cell, Plan, forms_of
from .claims import Claims
from .families import row_of
from .library import TENON
from .rows import DECLARED

#: Entries whose kernels are compiled together.
BATCH = 40


def prepare(job):
    """Loads the device and what declares operators; the bench."""
    name = job["device"].partition(":")[0]
    if job["plugin"]:
        tenon.load_device(job["plugin"], name=name, options=job["options"])
    elif job["options"]:
        raise ValueError(f"{name} is looked for by its name, which takes no options; give its library with --plugin, and --option")
    elif tenon.devices.module_if_there(name) is None:
        raise ValueError(f"there is no device {name} in TENON_PLUGIN_PATH; give its library with --plugin")
    for library in job["libraries"]:
        tenon.devices.load_file(library)
    for module in job["modules"]:
        import_first(module)
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
        forms = {part: device_checks.names(part) for part in device_checks.PARTS}
        return say("entries", forms=forms | {n: [o.full_name for o in e.operators] for n, e in found.items()},
                   described=tenon.devices.module_if_there(bench.name).get_device_properties()._asdict()["name"],
                   kernels=sorted(bench.claims.own), stubs=bench.claims.stubs)  # fmt: skip
    for part in device_checks.PARTS:
        if part in wanted:
            wanted.remove(part)
            try_part(bench, part, job)
    for start in range(0, len(wanted), BATCH):
        names = wanted[start : start + BATCH]
        warm_up(bench, [(op, row_of(found[n])) for n in names for op in operators_of(found[n], job)])
        for name in names:
            try_entry(bench, name, found[name], job)


def operators_of(entry, job):
    """The operators of an entry that are asked for."""
    return [o for o in entry.operators if o.full_name not in job["done"] and o.full_name in (job["forms"] or [o.full_name])]


def warm_up(bench, operators):
    """Compiles the kernels of these operators together, which takes half as long, where the device compiles something."""
    device = tenon.devices.module_if_there(bench.name)
    if device is not None:
        device.warm_up(lambda: [bench.try_operator(op, row) for op, row in operators
                                if row is not None and TENON.function(op, row) is not None])  # fmt: skip


def try_part(bench, part, job):
    """Says what comes of the checks of a part that no operator shows."""
    for name in device_checks.names(part):
        if name in job["done"] or name not in (job["forms"] or [name]):
            continue
        say("begin", entry=part, operator=name)
        state, text = device_checks.try_check(name, bench.device)
        say("check", part=part, check=name, state=state)
        if state == "wrong":
            say("cell", **Cell(name, "any", differences={part: text}).summary())
        say("did", operator=name)
    say("end", entry=part)


def try_entry(bench, name, entry, job):
    """Says what comes of each operator of an entry."""
    row = row_of(entry)
    tried = {op.full_name for op in forms_of(entry, row)}
    for op in operators_of(entry, job):
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
