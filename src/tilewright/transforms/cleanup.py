"""Canonicalize, merge what is computed twice, drop what is not used."""
