"""One module for each YAML file of tenon/ops/yaml, with the rows of its operators in ROWS."""

import importlib
import pkgutil
from dataclasses import replace
from functools import cache

from ..rows import DECLARED, default


@cache
def rows():
    """All rows, by the operator that they name."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        for row in importlib.import_module(f"{__name__}.{module.name}").ROWS:
            for name in row.name.split():
                assert name not in found, f"two rows for {name}"
                found[name] = replace(row, name=name)
    return found


def row_of(entry):
    """The row of an entry, or the one that its signature and name say; None where nothing describes it."""
    name = entry.main.full_name
    return DECLARED.get(name) or rows().get(name) or (None if "::" in name else default(entry))
