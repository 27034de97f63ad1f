"""Kinds of comparisons with what a program has read, as python/src/pure/guards.h has them."""

ENTRY, NO_ENTRY, SIZE, ITEM, CELL, CODE, DEFAULTS, TYPE, DICT, CLASS, ELEMENTS, KEYS, MEMBER, RESULT = range(14)
