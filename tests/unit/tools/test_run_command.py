"""`tilewright run`: tile IR on arrays, through the NumPy rules."""

import numpy as np
import pytest

from tests.unit.tools.texts import SCALE
from tilewright.tools.cli import main


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "scale.tile"
    path.write_text(SCALE)
    return str(path)


def test_arrays_from_files_and_made_up(file, tmp_path, capsys):
    x = np.arange(128, dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    folder = tmp_path / "out"
    arguments = [str(tmp_path / "x.npy"), "zeros:128", "2.5", "--grid", "2", "--save", str(folder)]
    assert main(["run", file, *arguments]) == 0
    np.testing.assert_array_equal(np.load(folder / "out.npy"), x * np.float32(2.5))
    assert [path.name for path in folder.iterdir()] == ["out.npy"]
    assert capsys.readouterr().out.startswith("out: float32 (128,)\n")


def test_one_program_instance(file, tmp_path):
    arguments = ["ones:64x2", "zeros:64x2", "3", "--grid", "2", "--pid", "1"]
    assert main(["run", file, *arguments, "--save", str(tmp_path)]) == 0
    out = np.load(tmp_path / "out.npy").ravel()
    assert out[:64].tolist() == [0] * 64
    assert out[64:].tolist() == [3] * 64


@pytest.mark.parametrize("grid", ["0", "2,0", "1,1,0"])
def test_an_empty_grid_runs_nothing(file, grid, capsys):
    assert main(["run", file, "ones:64", "zeros:64", "3", "--grid", grid]) == 0
    assert f"--grid {grid} has no programs: nothing ran" in capsys.readouterr().err
    assert main(["run", file, "ones:64", "zeros:64", "3", "--grid", grid, "--pid", "0"]) == 0
    assert capsys.readouterr().out == ""


def test_random_arrays_repeat_with_their_seed(file, tmp_path):
    def out(seed):
        arguments = ["random:64", "zeros:64", "1", "--seed", seed, "--save", str(tmp_path)]
        assert main(["run", file, *arguments]) == 0
        return np.load(tmp_path / "out.npy")

    assert np.array_equal(out("1"), out("1"))
    assert not np.array_equal(out("1"), out("2"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["zeros:64"], "@scale takes 3 arguments, found 1: x: ptr<f32>"),
        (["zeros:64", "zeros:64", "many"], "expected a number, found 'many'"),
        (["zeros:64", "zeros:64", "1", "--grid=-1"], "the grid (-1,) holds -1"),
        (["zeros:64", "zeros:64", "1", "--grid=1,1,1,1"], "has 4 extents"),
        (["zeros:64", "zeros:64", "1", "--grid", "9" * 20], f"holds {'9' * 20}; the limit is"),
        (["zeros:64", "zeros:64", "1", "--grid", "1," + "9" * 20], "the limit is 2147483647"),
        (["zeros:64", "zeros:64", "1", "--pid", "9" * 20], "has no program (99999999999999999999"),
        (["zeros:64", "zeros:64", "1", "--pid=-1"], "is not one to three numbers that are not"),
        (["zeros:64", "zeros:64", "1", "--grid", "wide"], "expected numbers such as 4,1,1"),
        (["none.npy", "zeros:64", "1"], "none.npy: No such file"),
        (["randn:64", "zeros:64", "1"], "'randn:64' is no array: write X.npy, or zeros:, ones:"),
        (["zeros:8*8", "zeros:64", "1"], "'zeros:8*8' is no array: write X.npy"),
        (["zeros:40", "zeros:64", "1"], "load at element 40 of argument 'x'"),
        (["FILE", "zeros:64", "1"], "is not an array in NumPy's format"),
    ],
)
def test_mistakes(arguments, message, file, capsys):
    assert main(["run", file, *[file if a == "FILE" else a for a in arguments]]) == 1
    assert message in capsys.readouterr().err


ONE = "func @{name}(%X: ptr<f32>) {{\n  cf.return\n}}\n"


@pytest.mark.parametrize(
    ("names", "found"), [((), "none"), (("a", "b"), "'a', 'b'"), (tuple("abcdefghij"), "'a', 'b'")]
)
def test_modules_without_or_with_several_functions(names, found, tmp_path, capsys):
    path = tmp_path / "kernel.tile"
    path.write_text("".join(ONE.format(name=name) for name in names))
    for words in (["run", str(path), "ones:4"], ["compile", str(path), "--emit", "llir"]):
        assert main(words) == 1
        printed = capsys.readouterr().err
        assert f"expected tile IR with one function, found {found}" in printed
        assert "Traceback" not in printed and "bug" not in printed


def test_parameters_that_are_tiles(tmp_path, capsys):
    path = tmp_path / "kernel.tile"
    path.write_text("func @k(%x: ptr<f32>, %t: tile<8xf32>) {\n  cf.return\n}\n")
    for words in (["run", str(path), "ones:4", "1"], ["compile", str(path), "--emit", "llir"]):
        assert main(words) == 1
        assert "parameter %t of the kernel @k is tile<8xf32>, a tile" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("zeros:99999999999999999", "not enough memory for zeros:99999999999999999"),
        ("zeros:" + "9" * 5000, "not enough memory for zeros:999"),
        ("ones", "No such file"),
        ("{folder}/x.npz", "is not an array in NumPy's format"),
        ("{folder}/short.npz", "is not an array in NumPy's format"),
    ],
)
def test_arguments_that_are_no_arrays(argument, message, file, tmp_path, capsys):
    np.savez(tmp_path / "x.npz", np.zeros(3))
    (tmp_path / "short.npz").write_bytes((tmp_path / "x.npz").read_bytes()[:100])
    assert main(["run", file, argument.format(folder=tmp_path), "zeros:64", "3"]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("number", ["x", "9" * 5000, "1e", "0x"])
def test_arguments_that_are_no_numbers(number, file, capsys):
    assert main(["run", file, "ones:64", "zeros:64", number]) == 1
    assert "expected a number, found '" in capsys.readouterr().err


@pytest.mark.parametrize("seed", ["-5", "1.5", "many", "9" * 2000])
def test_seeds_that_are_no_natural_numbers(seed, file, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["run", file, "random:64", "zeros:64", "1", f"--seed={seed}"])
    assert stop.value.code == 2
    assert "argument --seed: expected an integer of at least 0" in capsys.readouterr().err


def test_a_seed_may_be_long(file):
    assert main(["run", file, "random:64", "zeros:64", "1", "--seed", "9" * 40]) == 0
