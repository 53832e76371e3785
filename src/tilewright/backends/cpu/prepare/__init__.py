"""Turns tile IR into tile IR that the CPU lowering accepts: what a CPU lacks is expanded."""

from tilewright.backends.cpu.prepare.pipeline import prepare

__all__ = ["prepare"]
