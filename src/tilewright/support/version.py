"""The version of the package; the build reads it here too (pyproject.toml)."""

__version__ = "0.1.0"
