"""Writes a failing program as a test file that runs by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.program_dtypes import FLOATS, Stops, Undefined, same_bits
from tests.fuzz.program_source import source
from tests.fuzz.program_tree import ArrayArg, Program
from tests.fuzz.reference_model import contents, expected
from tests.fuzz.run_program import Failure, order_of

_FORM = '''"""{head}

    python -m pytest {name}
"""

import ml_dtypes
import numpy as np
import pytest

from tests.fuzz import same_bits
from tests.guarded_devices import device_class
{source}

def numbers(text, dtype):
    """An array from the hexadecimal digits of its bytes."""
    return np.frombuffer(bytes.fromhex(text), dtype).copy()


GIVEN = {{
{given}
}}
EXPECTED = {{
{wanted}
}}


@pytest.mark.parametrize("name", {devices})
def test_fuzzed(name):
    device = device_class(name)()
    device.seed = {order}  # of a random order of warps in the emulator; None: all in step
    arrays = {{key: device.array(value) for key, value in GIVEN.items()}}
{aliases}    device.run(kernel, ({grid},), {args})
    for key, value in EXPECTED.items():
        assert same_bits(arrays[key], value).all(), (key, arrays[key], value)
'''


def written_test(program: Program, failure: Failure, name: str = "this_file.py") -> str:
    """The text of a test that fails as the program did."""
    start = contents(program)
    try:
        wanted = expected(program)
    except (Undefined, Stops) as reason:
        wanted = {}
        failure = Failure(failure.seed, failure.device, failure.kind, f"{failure.detail}\n{reason}")
    same = {a.name: a.same_as for a in program.arrays() if a.same_as}
    own = {key: value for key, value in start.items() if key not in same}
    changed = {key: value for key, value in wanted.items()
               if key not in same and value.tobytes() != start[key].tobytes()}  # fmt: skip
    args = [f'arrays["{a.name}"]' if isinstance(a, ArrayArg) else _number(a.value)
            for a in program.args]  # fmt: skip
    words = [f"{word}={value}" for word, value in program.words.items()]
    devices = [d for d in ("interpreter", "cpu", "emulated") if d not in program.skip]
    if failure.device not in devices:
        devices.append(failure.device)
    return _FORM.format(
        head=_headline(program, failure), name=name, source=source(program),
        given=_table(own, program), wanted=_table(changed, program),
        devices=tuple(devices),
        aliases="".join(f'    arrays["{k}"] = arrays["{v}"]\n' for k, v in same.items()),
        order=order_of(program), grid=program.grid, args=", ".join([*args, *words]),
    )  # fmt: skip


def _headline(program: Program, failure: Failure) -> str:
    detail = failure.detail.replace("\\", "/").replace('"""', "'''")
    return f"Seed {program.seed}, {failure.device}, {failure.kind}: {detail}"[:1200]


def _number(value: Any) -> str:
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def _table(arrays: dict[str, Any], program: Program) -> str:
    rows = [f'    "{name}": {_array(value, program.array(name).dtype)},'
            for name, value in arrays.items()]  # fmt: skip
    return "\n".join(rows)


def _array(value: Any, dtype: str) -> str:
    kind = "bool" if dtype == "int1" else f"ml_dtypes.{dtype}" if dtype == "bfloat16" else (
        f'"{dtype}"')  # fmt: skip
    if same_bits(value, np.full_like(value, value.flat[0])).all():
        number = value.flat[0]
        shown = repr(float(number)) if dtype in FLOATS else repr(int(number))
        if "nan" not in shown and "inf" not in shown:
            return f"np.full({value.size}, {shown}, {kind})"
    if dtype in FLOATS:
        plain = np.isfinite(value.astype(np.float64)).all() and value.size <= 64
        if not plain:
            return f'numbers("{value.tobytes().hex()}", {kind})'
        return f"np.array({value.astype(np.float64).tolist()}, {kind})"
    return f"np.array({value.astype(object).tolist()}, {kind})"


def save(folder: Path, program: Program, failure: Failure) -> Path:
    """Write the test below a folder; its name tells the seed and the device."""
    folder.mkdir(parents=True, exist_ok=True)
    kind = "".join(c if c.isalnum() else "_" for c in failure.kind)
    place = folder / f"test_seed_{program.seed}_{failure.device}_{kind}.py"
    place.write_text(written_test(program, failure, place.name), encoding="utf-8")
    return place
