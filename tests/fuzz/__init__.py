"""A bounded, seeded fuzz of every operator: a right result or a clear error, nothing else. See fuzz.py."""
