"""`tenon trace`: runs a program and prints the calls that the dispatcher makes for it, or writes them to a file."""

import contextlib
import os
import runpy
import signal
import sys
import traceback

from .. import dispatch


class NotStarted(Exception):
    """Why the program was not run."""


def _print(line):
    """Ends the process where no one reads the lines, as a closed pipe ends other programs: what is raised here, the dispatcher ignores."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.raise_signal(signal.SIGPIPE)


def run(script, code, arguments, shapes=False, times=False, chrome=None):
    """Runs a script, or code where it is not None, and returns the exit code."""
    import tenon

    if chrome:
        try:
            open(chrome, "a").close()  # before the script's work, not after it
        except OSError as e:
            raise NotStarted(f"--chrome {chrome}: {e.strerror}") from None
    if code is None and not os.path.exists(script):
        raise NotStarted(f"there is no file '{script}'")
    context = dispatch.record() if chrome else dispatch.trace(_print, shapes=shapes, times=times)
    before, failed = list(sys.argv), None
    sys.argv = [script if code is None else "-c", *arguments]
    recording = None
    try:
        with contextlib.ExitStack() as stack:
            if chrome:
                stack.callback(lambda: recording.export_chrome_trace(chrome))
            recording = stack.enter_context(context)
            try:
                if code is not None:
                    exec(compile(code, "<code>", "exec"), {"__name__": "__main__", "tenon": tenon})
                else:
                    runpy.run_path(script, run_name="__main__")
            except BrokenPipeError:
                raise
            except Exception as e:
                failed = e
    finally:
        sys.argv = before
    if failed is None:
        return 0
    at = failed.__traceback__
    while at and at.tb_next and at.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
        at = at.tb_next
    traceback.print_exception(failed.with_traceback(at))
    return 1
