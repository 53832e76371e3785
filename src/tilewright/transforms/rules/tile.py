"""Identities of shapes, memory accesses and contractions."""
