"""`tenon conformance`: runs the kit, prints what it found."""

import os
import sys

from . import report, runner


def main(args):
    """Runs the kit; 1 when a row is wrong, or when nothing could be tried."""
    if args.csv:
        try:
            open(args.csv, "w").close()  # before a minute's work, not after it
        except OSError as e:
            print(f"tenon conformance: --csv {args.csv}: {e.strerror}", file=sys.stderr)
            return 1
    for text in args.option:
        if not text.partition("=")[1]:
            args.parser.error(f"--option {text}: expected NAME=VALUE")
    options = dict(text.partition("=")[::2] for text in args.option)
    try:
        found = runner.run(args.device, args.plugin, options, args.ops, args.dtypes, args.quick, args.modules, args.libraries,
                           args.jobs or os.cpu_count() or 1)  # fmt: skip
    except runner.KitError as e:
        print(f"tenon conformance: {e}", file=sys.stderr)
        return 1
    if args.csv:
        report.write_csv(found, args.csv)
    print(report.text(found, args.verbose))
    return 1 if found.wrong() or found.skips()[""] else 0
