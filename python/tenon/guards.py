"""Kinds of what replays compare, as python/src/pure has them."""

# Of comparisons with what a program has read: guards.h.
ENTRY, NO_ENTRY, SIZE, ITEM, CELL, CODE, DEFAULTS, TYPE, DICT, CLASS, ELEMENTS, KEYS, MEMBER, RESULT = range(14)
# Of structures of arguments and results: structure.h.
TENSOR, CONSTANT, TUPLE, LIST, DICT_OF, SAME, GIVEN = range(7)
