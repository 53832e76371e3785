"""`python -m triton.tools.link`: one function for variants of a kernel.

    python -m triton.tools.link matmul_fp16.*.h -o matmul_fp16

reads the headers that `triton.tools.compile` writes; writes `matmul_fp16.h` and `.c` with
`matmul_fp16(stream, arguments, algo_id)`, `matmul_fp16_default`, `matmul_fp16_get_num_algos`, and
`load_` and `unload_` with that name. An algorithm is a choice of compile-time values and warps;
among its variants, the function takes the first, of those with most hints, whose hints hold.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tilewright.support import TilewrightError, errors
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass
from tilewright.triton_alias.aot_compile_tool import LINK_COMMENT

__all__ = ["main"]

_TESTS = {1: "({} == 1)", 16: "({} % 16 == 0)"}


@dataclass(frozen=True, slots=True)
class Variant:
    """A compiled variant, as its header states it. arguments: (C type, name); hints: of each"""

    name: str
    algorithm: str
    function: str
    arguments: tuple[tuple[str, str], ...]
    hints: tuple[int | None, ...]

    @property
    def call(self) -> str:
        """The call of its function."""
        pairs = zip(self.arguments, self.hints, strict=True)
        passed = ["stream", *(name for (_, name), hint in pairs if hint != 1)]
        return f"{self.function}({', '.join(passed)})"

    @property
    def condition(self) -> str:
        """The test of its hints in C."""
        pairs = zip(self.arguments, self.hints, strict=True)
        tests = [_TESTS[hint].format(name) for (_, name), hint in pairs if hint is not None]
        return " && ".join(tests) or "1"


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; mistakes are printed."""
    parser = argparse.ArgumentParser("triton.tools.link", description="Join variants.")
    parser.add_argument("headers", nargs="+", type=Path, help="those of triton.tools.compile")
    parser.add_argument("--out", "-o", type=Path, required=True, help="without a suffix")
    parser.add_argument("--prefix", default="", help="of the names of functions")
    chosen = parser.parse_args(words)
    try:
        variants = [read_header(header) for header in chosen.headers]
        header, source = linked(variants, chosen.prefix, [path.name for path in chosen.headers])
        chosen.out.with_suffix(".h").write_text(header, encoding="utf-8")
        chosen.out.with_suffix(".c").write_text(source, encoding="utf-8")
    except synchronous(TilewrightError, OSError) as problem:
        print(f"triton.tools.link: {problem}", file=sys.stderr)
        return 1
    return 0


def read_header(path: Path) -> Variant:
    """The variant of a header. Errors: OSError, InvalidOption."""
    lines = path.read_text("utf-8").splitlines()
    found = [line.removeprefix(LINK_COMMENT) for line in lines if line.startswith(LINK_COMMENT)]
    if len(found) != 1:
        raise errors.InvalidOption("header", "one that triton.tools.compile wrote", str(path))
    stated: dict[str, Any] = json.loads(found[0])
    arguments = tuple((type_, name) for type_, name in stated["arguments"])
    return Variant(
        stated["name"], stated["algorithm"], stated["function"], arguments, tuple(stated["hints"])
    )


def linked(variants: Sequence[Variant], prefix: str, headers: Sequence[str]) -> tuple[str, str]:
    """The header and the source. Errors: InvalidOption for variants of different functions."""
    first = variants[0]
    for variant in variants:
        for what in ("name", "arguments"):
            one, other = getattr(variant, what), getattr(first, what)
            if one != other:
                expected = f"equal {what} of all headers: {other}"
                raise errors.InvalidOption(variant.function, expected, one)
    name = prefix + first.name
    parameters = ", ".join(["CUstream stream", *(" ".join(pair) for pair in first.arguments)])
    header = "\n".join([
        "#include <cuda.h>", "#include <stdint.h>", "#ifdef __cplusplus", 'extern "C" {', "#endif",
        f"CUresult {name}({parameters}, int algo_id);",
        f"CUresult {name}_default({parameters});",
        f"int {name}_get_num_algos(void);",
        f"void load_{name}(void);",
        f"void unload_{name}(void);",
        "#ifdef __cplusplus", "}", "#endif", "",
    ])  # fmt: skip
    source = [*(f'#include "{path}"' for path in headers), "", *_source(name, parameters, variants)]
    return header, "\n".join([*source, ""])


def _source(name: str, parameters: str, variants: Sequence[Variant]) -> Iterator[str]:
    algorithms: dict[str, list[Variant]] = {}
    for variant in variants:
        algorithms.setdefault(variant.algorithm, []).append(variant)
    yield f"CUresult {name}({parameters}, int algo_id) {{"
    yield "    switch (algo_id) {"
    for number, group in enumerate(algorithms.values()):
        yield f"    case {number}:"
        group.sort(key=lambda variant: variant.hints.count(None))
        for variant in group:
            yield f"        if ({variant.condition})"
            yield f"            return {variant.call};"
        yield "        return CUDA_ERROR_INVALID_VALUE;"
    yield "    default:"
    yield "        return CUDA_ERROR_INVALID_VALUE;"
    yield "    }"
    yield "}"
    arguments = ", ".join(["stream", *(argument for _, argument in variants[0].arguments)])
    yield f"\nCUresult {name}_default({parameters}) {{ return {name}({arguments}, 0); }}"
    yield f"\nint {name}_get_num_algos(void) {{ return {len(algorithms)}; }}"
    for action in ("load", "unload"):
        yield f"\nvoid {action}_{name}(void) {{"
        yield from (f"    {action}_{variant.function}();" for variant in variants)
        yield "}"


if __name__ == "__main__":
    sys.exit(main())
