"""Passes and pipelines: options as text, verification, events, failures."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import tilewright
from tilewright import ops
from tilewright.ir import (
    PASSES,
    Contract,
    Function,
    Module,
    Pass,
    Pipeline,
    Property,
    Rewriter,
    Step,
    parse_function,
    parse_pipeline,
    pass_named,
    pass_names,
    pipeline_of,
)
from tilewright.ir.pass_table import pass_modules
from tilewright.support import ListRecorder, PassEnded, PassStarted, recording, settings
from tilewright.support.errors import InternalCompilerError, InvalidOption, UnknownName


@dataclass(frozen=True)
class Options(Pass, name="test-options"):
    """Has an option of each kind and changes nothing."""

    count: int = 4
    ratio: float = 0.5
    fast: bool = False
    mode: str = "plain"

    def run(self, function: Function) -> bool:
        return False


@dataclass(frozen=True)
class DropStores(Pass, name="test-drop-stores"):
    """Changes something."""

    def run(self, function: Function) -> bool:
        stores = [op for op in function.walk() if isinstance(op, ops.StoreOp)]
        for store in stores:
            Rewriter.erase(store)
        return bool(stores)


@dataclass(frozen=True)
class Damage(Pass, name="test-damage"):
    """Leaves invalid IR."""

    def run(self, function: Function) -> bool:
        Rewriter.erase(function.body.terminator)
        return True


@dataclass(frozen=True)
class Crash(Pass, name="test-crash"):
    """Raises."""

    def run(self, function: Function) -> bool:
        raise KeyError("lost")


@pytest.fixture
def function() -> Function:
    return parse_function("func @f(%X: ptr<i32>, %x: i32) {\n  mem.store %X, %x\n  cf.return\n}")


@pytest.mark.parametrize(
    "text",
    ["test-options", "test-options{count=7}", "test-options{ratio=0.25 fast=true mode=odd}",
     "test-options,test-drop-stores,test-options{count=-1}", ""],
)  # fmt: skip
def test_pipelines_print_and_parse(text: str) -> None:
    assert str(parse_pipeline(text)) == text


def test_spaces_and_commas_are_free() -> None:
    pipeline = parse_pipeline(" test-options { count=7, fast=true } ,\n test-drop-stores ")
    assert [step.work for step in pipeline.steps] == [Options(7, fast=True), DropStores()]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("test-opttions", "did you mean 'test-options'?"),
        ("test-options{cnt=1}", "did you mean 'count'?"),
        ("test-options{count=many}", "count of test-options"),
        ("test-options{fast=1}", "fast of test-options"),
        ("test-options test-options", "passes such as"),
    ],
)
def test_wrong_pipelines_say_what_is_expected(text: str, message: str) -> None:
    with pytest.raises((InvalidOption, UnknownName)) as caught:
        parse_pipeline(text)
    assert message in str(caught.value)


def test_every_registered_pass_has_defaults_and_text() -> None:
    for name, cls in PASSES.items():
        assert pass_named(name) is cls
        assert str(cls()) == name
        assert parse_pipeline(name).steps[0].work == cls()


def test_every_pass_is_in_the_table_of_modules() -> None:
    folder = Path(tilewright.__file__).parent
    declared = {
        name: f"tilewright.{'.'.join(file.relative_to(folder).with_suffix('').parts)}"
        for file in folder.rglob("*.py")
        for name in re.findall(
            r"^class \w+\(Pass, name=\"([\w-]+)\"", file.read_text(), re.MULTILINE
        )
    }
    assert declared == pass_modules()
    assert {*declared} <= {*pass_names()}


def test_a_pass_is_imported_when_a_pipeline_names_it() -> None:
    text = (
        "import sys; from tilewright.ir import parse_pipeline; "
        "parse_pipeline('canonicalize'); print('tilewright.transforms.passes.cse' in sys.modules, "
        "parse_pipeline('cse,nvidia-select-tma'))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "False cse,nvidia-select-tma\n"


def test_a_pipeline_describes_itself() -> None:
    pipeline = pipeline_of("demo", ((Options(count=1), "to see"), (DropStores(), "nobody reads")))
    assert pipeline.describe() == (
        "demo:\n  1. test-options{count=1}  to see\n  2. test-drop-stores       nobody reads"
    )


def test_running_tells_whether_something_changed(function: Function) -> None:
    pipeline = parse_pipeline("test-options,test-drop-stores")
    assert pipeline.run(Module((function,))) is True
    assert pipeline.run(function) is False


def test_events_frame_each_pass(function: Function) -> None:
    events = ListRecorder()
    with recording(events):
        parse_pipeline("test-drop-stores").run(function)
    started, ended = events.events
    assert isinstance(started, PassStarted) and isinstance(ended, PassEnded)
    assert (started.pass_name, started.function) == ("test-drop-stores", "f")
    assert ended.changed and ended.seconds >= 0
    assert "mem.store" not in ended.text()


def test_invalid_results_are_reported_with_the_pass(function: Function) -> None:
    with pytest.raises(InternalCompilerError) as caught:
        parse_pipeline("test-damage,test-options").run(function)
    text = str(caught.value)
    assert "invalid tile IR after the pass test-damage" in text
    assert "cannot be the last op" in text
    assert "passes: test-damage,test-options" in text


def test_invalid_input_is_reported_before_the_first_pass(function: Function) -> None:
    Damage().run(function)
    with pytest.raises(InternalCompilerError, match="before the first pass"):
        parse_pipeline("test-options").run(function)


def test_without_verification_of_each_pass_the_last_result_is_verified(function: Function) -> None:
    passes = parse_pipeline("test-damage,test-options")
    with (
        settings().compilation.scope(verify=False),
        pytest.raises(InternalCompilerError, match="after all passes") as caught,
    ):
        passes.run(function)
    assert "TILEWRIGHT_VERIFY=1" in str(caught.value)


def test_without_verification_of_each_pass_the_last_contract_is_held(function: Function) -> None:
    strict = Contract("drop", frozenset((ops.ReturnOp,)))
    pipeline = Pipeline("p", (Step(Options(), gives=(Property("dropped", strict),)),))
    with (
        settings().compilation.scope(verify=False),
        pytest.raises(InternalCompilerError, match="is not legal after drop"),
    ):
        pipeline.run(function)


def test_a_crash_names_the_pass(function: Function) -> None:
    with pytest.raises(InternalCompilerError, match=r"test-crash failed on @f: KeyError: 'lost'"):
        parse_pipeline("test-crash").run(function)


def test_a_step_checks_its_contract(function: Function) -> None:
    only_return = Contract("drop", frozenset((ops.ReturnOp,)))
    pipeline = Pipeline("p", (Step(DropStores(), gives=(Property("dropped", only_return),)),))
    pipeline.run(function)
    other = parse_function("func @f() {\n  mem.barrier\n  cf.return\n}")
    with pytest.raises(InternalCompilerError, match="mem.barrier is not legal after drop"):
        pipeline.run(other)
