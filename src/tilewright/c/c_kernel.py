"""`kernel`: a launchable object from a Triton-C source, tuned where there are choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.c.c_function import CFunction
from tilewright.c.c_program import CProgram
from tilewright.c.macro_values import Defines, choices_of, definitions, values_of, warps_of
from tilewright.runtime import Autotuner, Config, is_on_host
from tilewright.support import user_boundary


class CKernel(Autotuner):
    """The result of `kernel`, with `k[grid](...)`, `best_config` and `warmup` as any tuned kernel.

    given: the arguments of `kernel`, from which it is unpickled.
    """

    given: tuple[Any, ...] = ()

    def has_one_choice(self, named: Mapping[str, Any]) -> bool:
        """Whether there is nothing to tune: no lists of macros, on a CPU, which has no warps."""
        return super().has_one_choice(named) or (not self._tuned and is_on_host(named))

    def __reduce__(self) -> tuple[Any, ...]:
        # Functions and configurations are not pickled: unpickling creates them.
        return _kernel, self.given


def kernel(
    source_or_path: str | Path,
    defines: Defines | None = None,
    num_warps: int | Sequence[int] = (4, 8),
    name: str | None = None,
    *,
    num_stages: int = 3,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    warmup: float | None = None,
    rep: float | None = None,
    interpret: bool | None = None,
) -> CKernel:
    """A kernel written in Triton-C.

    source_or_path: the text, or the path of a file; defines: macros by name, or definitions such as
    "-DSIZE=[32, 64] -DTYPE=float", in one text or several; every list among the values is tuned, as
    num_warps is (on GPUs, where it matters), anew for each set of integer arguments and dtypes.
    name: of the kernel, where there are several. reset_to_zero, restore_value, warmup, rep: as of
    `autotune`; interpret: run in the interpreter (default: the setting TILEWRIGHT_INTERPRET).

    The kernel is launched as `k[grid](arguments in the order of the source)`; `grid` is a tuple, or
    a function of the arguments and chosen macros by name.
    Errors: CompilationErrors in the source, KernelNotFound, AmbiguousKernel, EmptyDefine,
    InvalidOption.
    """
    with user_boundary:
        return _kernel(
            CProgram(source_or_path),
            definitions(defines),
            num_warps,
            name,
            num_stages,
            {
                "reset_to_zero": reset_to_zero,
                "restore_value": restore_value,
                "warmup": warmup,
                "rep": rep,
            },
            interpret,
        )


def _kernel(
    program: CProgram,
    macros: dict[str, Any],
    num_warps: int | Sequence[int],
    name: str | None,
    num_stages: int,
    tuning: dict[str, Any],
    interpret: bool | None,
) -> CKernel:
    given = (program, macros, num_warps, name, num_stages, tuning, interpret)
    # Only for its errors, before the source is parsed.
    for macro, value in macros.items():
        values_of(macro, value)
    warps = warps_of(num_warps)
    function = CFunction(program, name, macros, interpret)
    configs = [
        Config(choice, num_warps=count, num_stages=num_stages)
        for choice in choices_of(macros)
        for count in warps
    ]
    made = CKernel(function, function.arg_names, configs, function.integers, **tuning)
    made.given = given
    return made
