"""Rewrite rules that any back end may use."""
