"""Training on several devices, which is not in Tenon yet. Programs import this module whether they use it or not; a name
that they do ask for says that it is absent."""

from .._names.absent import add_module_getattr

add_module_getattr(__name__)
