"""One module for each YAML file of tenon/ops/yaml, with the rows of its operators in ROWS."""

import importlib
import pkgutil
from functools import cache


@cache
def rows():
    """All rows, by the operator that they name."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        for row in importlib.import_module(f"{__name__}.{module.name}").ROWS:
            assert row.name not in found, f"two rows for {row.name}"
            found[row.name] = row
    return found
