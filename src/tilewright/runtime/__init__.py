"""Launching: arguments, variants, grids, tuning."""

from tilewright.language import cdiv, next_power_of_2
from tilewright.runtime.grid import normal_grid
from tilewright.runtime.hooks import HookChain, LaunchMetadata, launch_enter, launch_exit
from tilewright.runtime.jit import JITFunction, jit
from tilewright.runtime.mock import MockTensor, TensorWrapper, reinterpret
from tilewright.runtime.parameters import KernelParam

__all__ = [
    "HookChain",
    "JITFunction",
    "KernelParam",
    "LaunchMetadata",
    "MockTensor",
    "TensorWrapper",
    "cdiv",
    "jit",
    "launch_enter",
    "launch_exit",
    "next_power_of_2",
    "normal_grid",
    "reinterpret",
]
