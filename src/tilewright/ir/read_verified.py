"""Tile IR from untrusted text, verified before use."""

from __future__ import annotations

from tilewright import ir
from tilewright.ir.core import Function, Module
from tilewright.ir.types import TileType
from tilewright.ir.verifier import Contract, report
from tilewright.support.errors import InvalidTileIR, TileParameter


def parse_valid_module(text: str, contract: Contract | None = None) -> Module:
    """The module of a text. Errors: TileIRSyntaxError, InvalidTileIR."""
    # imported here: most modules come from a front end
    module = ir.parse_module(text)
    mistakes = report(module, contract)
    if mistakes is not None:
        raise InvalidTileIR(mistakes)
    return module


def valid_kernel(module: Module) -> Function:
    """The only function of a module, if a launch can call it.

    Errors: NotOneFunction, TileParameter.
    """
    kernel = module.kernel
    for arg in kernel.args:
        if isinstance(arg.type, TileType):
            raise TileParameter(kernel.name, arg.name or str(arg.index), arg.type)
    return kernel
