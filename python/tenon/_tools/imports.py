"""What `tenon COMMAND -i` names: a module, looked for in the current folder too, or a file of Python."""

import importlib
import importlib.util
import os
import sys


def import_first(name: str) -> None:
    """Imports it. Raises FileNotFoundError for a file that is not there, and what the import raises."""
    if not (name.endswith(".py") or os.sep in name):
        sys.path.insert(0, os.getcwd())
        try:
            importlib.import_module(name)
        finally:
            sys.path.pop(0)
        return
    if not os.path.isfile(name):
        raise FileNotFoundError("there is no such file")
    # By its place: a module of the same name may be there already, such as json.
    path = os.path.abspath(name)
    stem = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(stem, path)
    if spec is None or spec.loader is None:
        raise ImportError("it is no file of Python (.py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(stem, module)
    sys.path.insert(0, os.path.dirname(path))  # for modules next to it, as where it is run as a script
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
