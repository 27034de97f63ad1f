"""What the parts of this folder share: kinds of structures, plain values, and refusals."""

import types

#: Structures of arguments and results, as python/src/replay/structure.h has them.
TENSOR, CONSTANT, TUPLE, LIST, DICT_OF, GIVEN = range(6)
#: Plain values: equal ones are the same.
SCALARS = (bool, int, float, complex, str, bytes, type(None), type(...), type(NotImplemented), range, types.CodeType)


class Refused(Exception):
    """Why a program is not replayed, and the line, if it is known."""


def is_alike(now, then):
    """Whether something is the same object, or an equal plain value."""
    return now is then or type(now) is type(then) in SCALARS and now == then
