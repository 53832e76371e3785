"""`tilewright compile`: Python kernels and tile IR to each stage."""

import re
from pathlib import Path

import pytest

from tests.unit.tools.texts import SCALE
from tilewright.ir import parse_module
from tilewright.tools.cli import main

ADD = "tilewright.kernels.elementwise:add_kernel"
TYPES = ["x_ptr=*fp32:16", "y_ptr=*fp32:16", "out_ptr=*fp32:16", "n=i32", "BLOCK=256"]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "scale.tile"
    path.write_text(SCALE)
    return str(path)


def test_a_python_kernel_to_tile_ir(capsys):
    assert main(["compile", ADD, *TYPES]) == 0
    out = capsys.readouterr().out
    kernel = parse_module(out).kernel
    assert kernel.name == "add_kernel"
    assert "%x_ptr: ptr<f32> {aligned = 16}" in out
    assert "%n: i32)" in out
    assert "tile<256xf32>" in out


@pytest.mark.parametrize(
    ("stage", "has"), [("source", "mem.load"), ("llir", "define "), ("asm", "ret")]
)
def test_each_textual_stage(stage, has, capsys):
    assert main(["compile", ADD, *TYPES, "--emit", stage]) == 0
    assert has in capsys.readouterr().out


def test_a_file_of_tile_ir(file, capsys):
    assert main(["compile", file, "--emit", "llir", "--target", "cpu"]) == 0
    assert "@scale" in capsys.readouterr().out


def test_a_kernel_in_a_file(tmp_path, capsys):
    path = tmp_path / "own_kernels.py"
    path.write_text(
        "import tilewright\nimport tilewright.language as tl\n\n"
        "@tilewright.jit\ndef fill(out, value, BLOCK: tl.constexpr):\n"
        "    tl.store(out + tl.arange(0, BLOCK), value)\n"
    )
    assert main(["compile", f"{path}:fill", "out=*fp16", "value=fp32", "BLOCK=16"]) == 0
    assert "func @fill(%out: ptr<f16>, %value: f32)" in capsys.readouterr().out


WITH_META = """
import tilewright
import tilewright.language as tl


@tilewright.jit
def fill(out, value, SCALE: tl.constexpr = 3, **META):
    tl.store(out + tl.arange(0, META["BLOCK"]), value * SCALE * META["FACTOR"])
"""


def test_the_constants_of_a_kernel_with_meta(tmp_path, capsys):
    path = tmp_path / "meta_kernels.py"
    path.write_text(WITH_META)
    kernel, types = f"{path}:fill", ["out=*fp16", "value=fp32"]
    assert main(["compile", kernel, *types, "BLOCK=32", "FACTOR=5"]) == 0
    out = capsys.readouterr().out
    assert "func @fill(%out: ptr<f16>, %value: f32)" in out
    assert "tile<32xf16>" in out and "3.0" in out and "5.0" in out
    assert main(["compile", kernel, "BLOCK=8", "out=*fp16", "FACTOR=5", types[1], "SCALE=2"]) == 0
    out = capsys.readouterr().out
    assert "tile<8xf16>" in out and "2.0" in out
    assert main(["compile", kernel, "out=*fp16", "BLOCK=32"]) == 1
    usage = "it takes: out=TYPE value=TYPE [SCALE=VALUE] NAME=VALUE ..."
    assert f"fill got no value\n{usage}" in capsys.readouterr().err
    assert main(["compile", kernel, *types, "BLOCK=32"]) == 1
    assert "FACTOR" in capsys.readouterr().err


def test_output_file_takes_binary_stages(tmp_path):
    output = tmp_path / "add.o"
    assert main(["compile", ADD, *TYPES, "--emit", "obj", "-o", str(output)]) == 0
    assert len(output.read_bytes()) > 100


def test_times_cover_stages_and_passes(capsys):
    assert main(["compile", ADD, *TYPES, "--times"]) == 0
    out, err = capsys.readouterr()
    assert "Where the time went" not in out
    for name in ("frontend", "stage ttir", "stage obj", "pass canonicalize"):
        assert name in err


def test_options_reach_the_backend(capsys):
    assert main(["compile", ADD, *TYPES, "--option", "num_warps=8"]) == 0
    assert main(["compile", ADD, *TYPES, "--option", "num_warps=3"]) == 1
    assert "num_warps" in capsys.readouterr().err


def test_assembly_for_another_processor(capsys: pytest.CaptureFixture[str]):
    assert main(["compile", ADD, *TYPES, "--emit", "asm", "--target", "aarch64"]) == 0
    assert re.search(r"fadd\tv\d+\.4s", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([ADD], "got no x_ptr, y_ptr, out_ptr, n, BLOCK\nit takes: x_ptr=TYPE"),
        ([ADD, *TYPES, "z=i32"], "got no parameter z"),
        ([ADD, "x_ptr"], "expected NAME=VALUE, found 'x_ptr'"),
        ([ADD, *TYPES, "--emit", "ptx"], "--emit takes one of source, ttir"),
        ([ADD, *TYPES, "--target", "abacus"], "no backend serves the target 'abacus'"),
        (["tilewright.kernels.elementwise:ad"], "its kernels are: add_kernel"),
        (["no_such_module:f"], "there is no module 'no_such_module'"),
        (["nowhere/kernels.py:f"], "there is no file nowhere/kernels.py"),
        (["nowhere.tile"], "No such file"),
        (["add.py"], "add.py is a file of Python kernels: name one, as in FILE.py:kernel"),
        (["add.c"], "add.c is Triton-C, which 'tilewright cc' compiles; this command takes FILE"),
        (["add.c:add"], "add.c is Triton-C, which 'tilewright cc' compiles; this command takes"),
        (
            [ADD, "x_ptr=*float", *TYPES[1:]],
            "'x_ptr' has no type '*float'; write the type as in *fp32",
        ),
        (["FILE", "x=i32"], "only a Python kernel"),
    ],
)
def test_mistakes(arguments, message, file, capsys):
    assert main(["compile", *[file if a == "FILE" else a for a in arguments]]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_a_mistake_in_the_kernel_points_into_its_source(tmp_path, capsys):
    path = tmp_path / "mistaken.py"
    path.write_text(
        "import tilewright\nimport tilewright.language as tl\n\n"
        "@tilewright.jit\ndef fill(out):\n"
        "    tl.store(out + tl.arange(0, 16), tl.zeros((8,), tl.float32))\n"
    )
    assert main(["compile", f"{path}:fill", "out=*fp32"]) == 1
    err = capsys.readouterr().err
    assert f"{path}:6:" in err
    assert "Traceback" not in err


def test_tensor_descriptors(capsys: pytest.CaptureFixture[str]):
    path = Path(__file__).parents[1] / "runtime" / "arguments" / "test_descriptor_arguments.py"
    arguments = ["d=tensordesc<fp16[4, 8]>:16", "M=4", "--emit", "source"]
    assert main(["compile", f"{path}:add_one", *arguments]) == 0
    assert "%d_shape_1: i32 {non_negative = 1, multiple_of = 8}" in capsys.readouterr().out
