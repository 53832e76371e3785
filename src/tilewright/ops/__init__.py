"""The tile operations; each is a class whose docstring is its equation."""
