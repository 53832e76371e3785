"""The time of compilations, and of operations on tile IR."""
