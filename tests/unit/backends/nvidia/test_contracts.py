"""What the contracts of the NVIDIA pipelines refuse, named by the pass that is to prevent it."""

import pytest

from tilewright.backends import GPUTarget, StageContext
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.backend import BACKEND
from tilewright.backends.nvidia.pipeline import Choices, front_pipeline, layout_pipeline
from tilewright.ir import Function, Module, Pipeline, parse_function, print_module
from tilewright.ir.types import TileType, i32
from tilewright.support.errors import InternalCompilerError
from tilewright.transforms import Licm

AMPERE = Choices(row_for(80))
POINTERS = """
func @f(%X: ptr<f32>, %H: ptr<bf16>, %Z: ptr<f8e5m2>) {
  %r = tile.range {start = 0, end = 256} : tile<256xi32>
  %i = tile.reshape %r {shape = [16, 16]} : tile<16x16xi32>
  %px = tile.splat %X {shape = [16, 16]} : tile<16x16xptr<f32>>
  %ax = mem.offset %px, %i : tile<16x16xptr<f32>>
  %x = mem.load %ax : tile<16x16xf32>
  %ph = tile.splat %H {shape = [16, 16]} : tile<16x16xptr<bf16>>
  %ah = mem.offset %ph, %i : tile<16x16xptr<bf16>>
  %h = mem.load %ah : tile<16x16xbf16>
  %pz = tile.splat %Z {shape = [16, 16]} : tile<16x16xptr<f8e5m2>>
  %az = mem.offset %pz, %i : tile<16x16xptr<f8e5m2>>
  %z = mem.load %az : tile<16x16xf8e5m2>
"""
FRONT = {
    "nvidia-legalize-dots": (
        '  %y = tile.dot %x, %x, %x {precision = "ieee"} : tile<16x16xf32>',
        "tensor cores do not compute ieee dots of f32",
    ),
    "nvidia-legalize-arithmetic": (
        "  %s = arith.add %h, %h : tile<16x16xbf16>\n  %y = arith.cast %s : tile<16x16xf32>",
        "arith.add is computed in f32, not in bf16",
    ),
    "nvidia-legalize-casts": (
        "  %y = arith.cast %z : tile<16x16xf32>",
        "casts from tile<16x16xf8e5m2> to tile<16x16xf32> are expanded",
    ),
}


def kernel(body: str) -> Function:
    return parse_function(f"{POINTERS}{body}\n  mem.store %ax, %y\n  cf.return\n}}")


def idle(pipeline: Pipeline, name: str, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """The pipeline, of which one pass does nothing."""
    cls = next(type(step.work) for step in pipeline.steps if step.work.name == name)
    monkeypatch.setattr(cls, "run", lambda self, function: False)
    return pipeline


@pytest.mark.parametrize("name", FRONT)
def test_a_legalization_that_does_nothing_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, message = FRONT[name]
    front_pipeline(AMPERE).run(kernel(body))
    with pytest.raises(InternalCompilerError, match=rf"{message} .*\(after {name}\)"):
        idle(front_pipeline(AMPERE), name, monkeypatch).run(kernel(body))


def test_tiles_without_layouts_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    function = kernel("  %y = arith.neg %x : tile<16x16xf32>")
    pipeline = idle(layout_pipeline(AMPERE), "nvidia-assign-layouts", monkeypatch)
    with pytest.raises(
        InternalCompilerError, match=r"has no layout \(after nvidia-assign-layouts\)"
    ):
        pipeline.run(function)


def _forget_a_layout(function: Function) -> bool:
    indices = next(op for op in function.walk() if op.opcode == "tile.range").results[0]
    indices.type = TileType((256,), i32)
    return True


def test_a_later_pass_that_breaks_a_contract_is_named_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the pass that gave the contract, and of the one that broke it."""
    function = kernel("  %y = arith.neg %x : tile<16x16xf32>")
    monkeypatch.setattr(Licm, "run", lambda self, function: _forget_a_layout(function))
    with pytest.raises(InternalCompilerError) as raised:
        layout_pipeline(AMPERE).run(function)
    assert "invalid tile IR after the pass licm" in str(raised.value)
    assert "(after nvidia-assign-layouts)" in str(raised.value)


def test_what_the_front_pipeline_makes_is_read_again() -> None:
    """Text of the first stage may hold products by FMAs."""
    module = Module((kernel(FRONT["nvidia-legalize-dots"][0]),))
    front_pipeline(AMPERE).run(module)
    text = print_module(module)
    assert "nvidia.dot_fma" in text
    context = StageContext(GPUTarget("cuda", 80, 32), BACKEND.options())
    parsed = BACKEND.stages[0].parse(text, context)
    assert isinstance(parsed, Module)
    assert print_module(parsed) == text
