"""`compile`: artifacts, metadata, options, sources of each kind, dumps, overrides, events."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.unit.compiler.kernels import ADD, add, pair
from tilewright.backends import GPUTarget, backend_named
from tilewright.compiler import ASTSource, CompiledKernel, IRSource, compile
from tilewright.compiler.kernel_metadata import shared
from tilewright.frontend.python import ArgSpec, KernelSignature
from tilewright.ir.types import PointerType, f32
from tilewright.support import ListRecorder, StageText, Timing, errors, recording, settings


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path) -> Iterator[None]:
    with settings().cache.scope(dir=tmp_path / "cache"):
        yield


def add_source(block: int = 64, **attrs: object) -> ASTSource:
    return ASTSource(add, ADD, {"BLOCK": block}, attrs.get("attrs"))  # type: ignore[arg-type]


def assert_adds(kernel: CompiledKernel) -> None:
    x = np.arange(100, dtype="f")
    out = np.zeros_like(x)
    kernel[(2,)](x, x, out, 100)
    assert np.array_equal(out, 2 * x)


def test_a_kernel_runs_with_all_or_with_run_time_arguments() -> None:
    kernel = compile(add_source())
    assert_adds(kernel)
    x = np.arange(100, dtype="f")
    out = np.zeros_like(x)
    kernel[(2, 1, 1)](x, x, out, 100, 64)
    assert np.array_equal(out, 2 * x)
    with pytest.raises(errors.ArgumentCount):
        kernel[(1,)](x, x)


def test_artifacts_are_those_of_triton_that_exist_here() -> None:
    kernel = compile(add_source())
    assert {"source", "ttir", "llir", "asm", "obj"} <= set(kernel.asm)
    assert len(kernel.asm) == len(list(kernel.asm))
    assert "func @add(%x: ptr<f32>" in kernel.asm["source"]
    assert "define" in kernel.asm["llir"]
    assert isinstance(kernel.asm["obj"], bytes)
    assert "add" in kernel.asm["asm"]
    assert "ptx" not in kernel.asm
    with pytest.raises(KeyError):
        kernel.asm["ptx"]


def test_equal_metadata_is_one_object_but_true_is_not_one() -> None:
    assert shared(["a", [1, "b"]]) is shared(("a", (1, "b")))
    assert shared([1, 0]) == (1, 0) and shared([[1], "c"]) == ((1,), "c")
    assert repr(shared([True, 0])) == "(True, 0)"
    assert repr(shared([1.0, 0])) == "(1.0, 0)"
    assert repr(shared([[True], "c"])) == "((True,), 'c')"
    assert shared([{"a": 1}]) == ({"a": 1},)


def test_metadata_can_be_copied_and_pickled() -> None:
    metadata = compile(add_source()).metadata
    pickled = pickle.loads(pickle.dumps(metadata))
    for copied in (copy.copy(metadata), copy.deepcopy(metadata), pickled):
        assert copied == metadata
        assert copied.name == metadata.name


def test_metadata_has_name_hash_target_and_all_options() -> None:
    kernel = compile(add_source(), options={"num_warps": 8})
    metadata = kernel.metadata
    assert (metadata.num_warps, metadata.num_ctas, metadata.shared) == (8, 1, 1)
    assert metadata.hash == kernel.hash
    assert metadata.target == backend_named("cpu").target()
    assert set(backend_named("cpu").options.names()) <= set(metadata._fields)
    assert metadata._asdict()["name"] == kernel.name == metadata.name
    assert kernel.packed_metadata == (8, 1, 1)
    with pytest.raises(AttributeError, match="no 'nmae'"):
        _ = metadata.nmae


def test_attrs_become_facts() -> None:
    source = add_source(attrs={(0,): [["tt.divisibility", 16]], (3,): [["tt.divisibility", 16]]})
    text = str(compile(source).asm["source"])
    assert "%x: ptr<f32> {aligned = 16}" in text
    assert "%y: ptr<f32>," in text
    assert "%n: i32 {multiple_of = 16}" in text


def test_constexprs_by_position_path_or_name() -> None:
    for key in (4, (4,), "BLOCK"):
        assert compile(ASTSource(add, ADD, {key: 32})).hash == compile(add_source(32)).hash
    with pytest.raises(errors.MissingArgument, match="'BLOCK'"):
        ASTSource(add, ADD)


def test_tuples_are_flattened() -> None:
    items = (ArgSpec("i0", "value", f32), ArgSpec("i1", "constexpr", value=2.0))
    specs = (
        ArgSpec("out", "value", PointerType(f32)),
        ArgSpec("items", "tuple", value=tuple, items=items),
        ArgSpec("scale", "value", f32),
    )
    kernel = compile(ASTSource.of(pair, KernelSignature(specs)))
    out = np.zeros(1, "f")
    kernel[(1,)](out, (3.0, 2.0), 10.0)
    assert out[0] == 50


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_wraps": 4}, "there is no option 'num_wraps' of the backend cpu"),
        ({"num_wraps": 4}, "did you mean 'num_warps'"),
        ({"num_warps": 3}, "a power of two"),
        ({"bananas": 1}, "there are 'bulk_loads'"),
    ],
)
def test_wrong_options(options: dict[str, object], message: str) -> None:
    with pytest.raises((errors.InvalidOption, errors.UnknownName), match=message):
        compile(add_source(), options=options)


def test_an_unknown_backend() -> None:
    with pytest.raises(errors.TilewrightError, match="cray"):
        compile(add_source(), target=GPUTarget("cray", 1, 1))


def test_options_and_settings_are_part_of_the_hash() -> None:
    plain = compile(add_source()).hash
    assert compile(add_source()).hash == plain
    assert compile(add_source(128)).hash != plain
    assert compile(add_source(), options={"enable_fp_fusion": False}).hash != plain
    with settings().compilation.scope(debug=True):
        kernel = compile(add_source())
    assert kernel.hash != plain
    assert kernel.metadata.debug is True


def test_compiling_goes_on_from_tile_ir() -> None:
    ttir = str(compile(add_source()).asm["ttir"])
    kernel = compile(IRSource(ttir))
    assert kernel.name == "add"
    assert kernel.stored == (2,)
    assert_adds(kernel)
    assert str(kernel.asm["source"]) == ttir
    source = str(compile(add_source()).asm["source"])
    assert_adds(compile(IRSource(source, "source")))


def test_compiling_goes_on_from_each_dumped_stage(tmp_path: Path) -> None:
    with settings().compilation.scope(dump_dir=tmp_path):
        kernel = compile(add_source())
    (folder,) = [path for path in tmp_path.iterdir() if path.name != "cache"]
    assert folder.name == f"add-{kernel.hash[:12]}"
    names = {path.name for path in folder.iterdir()}
    assert names == {"add.source", "add.ttir", "add.llir", "add.obj", "kernel.json"}
    for stage in ("source", "ttir", "llir"):
        assert_adds(compile(folder / f"add.{stage}"))
        assert_adds(compile(str(folder / f"add.{stage}")))


def test_dumping_works_from_the_disk_cache_too(tmp_path: Path) -> None:
    compile(add_source())
    with settings().compilation.scope(dump_dir=tmp_path / "dumps"):
        compile(add_source())
    (folder,) = (tmp_path / "dumps").iterdir()
    assert (folder / "add.llir").exists()


def test_llvm_ir_alone_lacks_what_a_launch_needs() -> None:
    llir = str(compile(add_source()).asm["llir"])
    with pytest.raises(errors.InvalidOption, match="metadata"):
        compile(IRSource(llir, "llir"))
    with pytest.raises(errors.InvalidOption, match="one of source, ttir, llir"):
        compile(IRSource("x\n", "ptx"))


def test_a_file_overrides_a_stage(tmp_path: Path) -> None:
    source = str(compile(add_source()).asm["source"])
    changed = re.sub(r"arith.add (.*: tile<64xf32>)", r"arith.mul \1", source)
    assert changed != source
    (tmp_path / "add.source").write_text(changed)
    with settings().compilation.scope(override_dir=tmp_path):
        kernel = compile(add_source())
    x = np.arange(100, dtype="f")
    out = np.zeros_like(x)
    kernel[(2,)](x, x, out, 100)
    assert np.array_equal(out, x * x)
    assert_adds(compile(add_source()))


def test_events_tell_each_stage() -> None:
    events = ListRecorder()
    with recording(events):
        compile(add_source())
    assert [event.stage for event in events.of(StageText)] == ["source", "ttir", "llir"]
    names = {event.name for event in events.of(Timing)}
    assert {"frontend", "stage ttir", "stage llir", "stage obj"} <= names
    again = ListRecorder()
    with recording(again):
        compile(add_source())
    assert again.of(StageText) == []
    assert {event.name for event in again.of(Timing)} == {"disk cache"}


def test_a_kernel_from_disk_is_the_same() -> None:
    first, second = compile(add_source()), compile(add_source())
    assert {k: first.asm[k] for k in first.asm} == {k: second.asm[k] for k in second.asm}
    assert first.metadata == second.metadata
    assert first.parameters == second.parameters
    assert json.dumps(first.metadata._asdict(), default=str)


def test_mistakes_leave_without_frames_of_the_compiler() -> None:
    with pytest.raises(errors.InvalidOption) as caught:
        compile(add_source(), options={"num_warps": 3})
    frames = [entry.path for entry in caught.traceback]
    assert all("tilewright" not in Path(str(path)).parts for path in frames), frames


def test_a_stage_that_is_no_text(tmp_path: Path) -> None:
    """As the source, and where it replaces a stage."""
    for name in ("bad.ttir", "add.ttir"):
        (tmp_path / name).write_bytes(b"\xff\xfe")
    with pytest.raises(errors.SourceNotAvailable, match="'utf-8' codec"):
        compile(tmp_path / "bad.ttir")
    with (
        settings().compilation.scope(override_dir=tmp_path),
        pytest.raises(errors.SourceNotAvailable, match=r"add\.ttir"),
    ):
        compile(ASTSource(add, ADD, {"BLOCK": 16}))
