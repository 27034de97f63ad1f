"""The `tenon` command and what it observes. command.py is where to start reading."""
