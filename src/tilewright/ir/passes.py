"""Passes and pipelines: what transforms a function, in which order, and why."""
