"""How compile(pure=True) makes replays: loaded at the first call of such a function. program.py is where to start reading."""
