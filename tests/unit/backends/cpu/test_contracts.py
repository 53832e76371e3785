"""What the contract of the CPU pipeline refuses, named by the pass that is to prevent it."""

import pytest

from tilewright.backends.cpu.passes.legalize import Legalize
from tilewright.backends.cpu.pipeline import cpu_pipeline
from tilewright.ir import Function, parse_function
from tilewright.support.errors import InternalCompilerError

LAID = "tile<32xi32, register= lane=(1..16) warp= -> dim0:32>"


def kernel(element: str, body: str) -> Function:
    return parse_function(f"""
func @f(%X: ptr<{element}>, %Y: ptr<f32>) {{
  %x = mem.load %X : {element}
  {body}
  mem.store %Y, %y
  cf.return
}}
""")


BODIES = {
    "casts from bf16 to f32 are expanded": ("bf16", "%y = arith.cast %x : f32"),
    "values of ptr<f8e5m2> are stored as their bits": ("f8e5m2", "%y = arith.cast %x : f32"),
    "exp is expanded": ("f32", '%y = arith.math %x {function = "exp"} : f32'),
    "arith.add is computed in 32 bits or more, not in f16": (
        "f16",
        "%s = arith.add %x, %x : f16\n  %y = arith.cast %s : f32",
    ),
}


@pytest.mark.parametrize("message", BODIES)
def test_a_legalization_that_does_nothing_is_named(
    message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu_pipeline(fma=True).run(kernel(*BODIES[message]))
    monkeypatch.setattr(Legalize, "run", lambda self, function: False)
    with pytest.raises(InternalCompilerError, match=rf"{message} \(after cpu-legalize\)"):
        cpu_pipeline(fma=True).run(kernel(*BODIES[message]))


def test_layouts_do_not_come_from_a_front_end() -> None:
    function = parse_function(
        f"func @f() {{\n  %r = tile.range {{start = 0, end = 32}} : {LAID}\n  cf.return\n}}"
    )
    with pytest.raises(InternalCompilerError, match=r"no layouts are assigned yet.*the front end"):
        cpu_pipeline(fma=True).run(function)
