"""The methods of a kernel that compile before a launch; `tilewright.aot` implements them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tilewright.runtime.launch.variant_cache import VariantCache
from tilewright.support import ON_MISS, errors, function_late, settings, user_boundary

_record = function_late("tilewright.aot.recording:Recording")
_variants = function_late("tilewright.aot.variants:variants_of")
_precompile = function_late("tilewright.aot.compile_variants:precompile")


class AheadOfTime:
    """A kernel whose variants can be recorded, listed and compiled before they are launched."""

    variant_cache: VariantCache

    def record(self, path: str | Path | None = None) -> Any:
        """A block that records its launches as specs: `with kernel.record("spec.toml") as found`,
        then `found.specs`. path: a spec file to write. See `tilewright.aot`."""
        return _record(self, path)

    def variants(self, **declared: object) -> list[Any]:
        """The variants that declared arguments reach, as `tilewright.aot.KernelSpec`s:
        `kernel.variants(x="fp16:16", n=range(1, 1 << 20), BLOCK=[64, 128])`."""
        with user_boundary:
            return _variants(self, declared)

    def precompile(
        self,
        specs: Iterable[Any] = (),
        /,
        *,
        executor: Any = None,
        yes: bool = False,
        target: Any = None,
        **declared: object,
    ) -> Any:
        """Compile and load variants before they are launched: specs, or declared arguments as for
        `variants`. executor: compiles them; yes: also more than 256; target: instead of this
        machine, then nothing is loaded. See `tilewright.aot`."""
        with user_boundary:
            listed = [*specs, *(_variants(self, declared) if declared else ())]
            return _precompile(listed, executor, yes, target)

    @property
    def on_miss(self) -> str:
        """The treatment of launches whose variant is not in memory: compile, generic, error or log.

        Errors: InvalidOption, at an assignment.
        """
        return self.variant_cache.on_miss or settings().cache.on_miss

    @on_miss.setter
    def on_miss(self, mode: str | None) -> None:
        if mode is not None and mode not in ON_MISS:
            raise errors.InvalidOption("on_miss", f"one of {', '.join(ON_MISS)}", repr(mode))
        self.variant_cache.on_miss = mode
