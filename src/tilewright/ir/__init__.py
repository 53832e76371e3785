"""Tile IR: types, operations, text, verification, rewriting and passes."""
