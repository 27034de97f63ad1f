"""The divergences that there are formulas for; importing them registers them."""

from . import matrices as matrices, pairs as pairs
