"""Helpers for training."""

from . import data

__all__ = ["data"]
