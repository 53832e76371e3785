"""Types of the part of llvmlite 0.50 that tilewright uses."""

__version__: str
