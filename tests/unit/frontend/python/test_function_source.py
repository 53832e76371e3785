"""Finding the source of functions, and what a kernel depends on."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

import linecache
import textwrap
from types import FunctionType, ModuleType

import pytest

import tilewright.language as tl
from tilewright.frontend.python import dependencies, source_of
from tilewright.language import constexpr_function, device_function
from tilewright.support import errors


def decorate(*args, **kwargs):
    return lambda fn: fn


# fmt: off
@decorate(
    {"a": 1},
)
@decorate()
def decorated(
    x,
):  # a comment
    """
Text at the margin.
    """
    y = """
def not_a_function(): """
# a comment at the margin
    return (
x, y
)


# what follows
AFTER = 1


class Holder:
    def method(self, x):
        return [
    x
        ]

    after = 1
# fmt: on


def test_the_text_of_a_function_is_found_whole():
    source = source_of(decorated)
    assert source.text.startswith("def decorated(\n")
    assert source.text.endswith("x, y\n)\n")
    assert source.tree.lineno + source.line_shift == decorated.__code__.co_firstlineno + 4


def test_an_indented_function_keeps_its_columns():
    source = source_of(Holder.method)
    first = Holder.method.__code__.co_firstlineno
    statement = source.tree.body[0]
    assert source.text.endswith("    x\n        ]\n")
    assert (statement.lineno + source.line_shift, statement.col_offset) == (first + 1, 8)


def test_sources_are_kept():
    assert source_of(decorated) is source_of(decorated)


def define(text: str, file: str = "<test>", name: str = "f") -> FunctionType:
    """A function from text that is no file, unless `linecache` is told of it."""
    namespace: dict[str, object] = {"__name__": "test", "tl": tl}
    exec(compile(textwrap.dedent(text), file, "exec"), namespace)
    found = namespace[name]
    assert isinstance(found, FunctionType)
    return found


def remember(file: str, text: str) -> None:
    """Make a text known as a notebook does."""
    text = textwrap.dedent(text)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)


def test_source_not_available():
    with pytest.raises(
        errors.SourceNotAvailable, match="'f' is not available: <test> is not a file"
    ):
        source_of(define("def f(x): return x"))


def test_a_notebook_cell_is_a_source():
    remember("<cell 1>", "def f(x): return x")
    assert source_of(define("def f(x): return x", "<cell 1>")).text == "def f(x): return x"


def test_a_file_that_has_changed_is_no_source():
    remember("<changed>", "\n\ndef g(x): return x")
    with pytest.raises(errors.SourceNotAvailable, match="has changed since it was imported"):
        source_of(define("\n\ndef f(x): return x", "<changed>"))
    with pytest.raises(errors.SourceNotAvailable, match="has changed since it was imported"):
        source_of(define("\n\n\n\n\ndef f(x): return x", "<changed>"))
    remember("<shorter>", "def f(x):\n  return x\n")
    with pytest.raises(errors.SourceNotAvailable, match="has changed since it was imported"):
        source_of(define("def f(x):\n  y = x\n  return y\n", "<shorter>"))


def test_a_reloaded_file_is_read_again(tmp_path):
    file = tmp_path / "kernels.py"
    for text in ("def f(x):\n    return x + 1\n", "def f(x):\n    return x + 22\n"):
        file.write_text(text)
        assert source_of(define(text, str(file))).text == text


def test_a_lambda_is_no_kernel():
    with pytest.raises(errors.SourceNotAvailable, match="not written as a 'def' statement"):
        source_of(lambda x: x)


def test_an_async_function_is_no_kernel():
    async def f(x):
        return x

    with pytest.raises(errors.UnsupportedLanguageConstruct, match="an async function"):
        source_of(f)


LIMIT = 4
STEP = tl.constexpr(2)
helpers = ModuleType("helpers")
helpers.WIDTH = 8


class Limits:
    SIZE = 16


unused = 1


@constexpr_function
def doubled(n):
    return 2 * n


@device_function
def helper(x):
    return x + STEP


@device_function
def kernel(out, n: tl.constexpr = LIMIT):
    tl.store(out, helper(n) + LIMIT + doubled(helpers.WIDTH) + Limits.SIZE)
    if n < 0:
        kernel(out)


def test_dependencies_follow_calls_and_constants():
    found = dependencies(kernel)
    assert sorted(used.name for used in found.used) == [
        "LIMIT", "Limits.SIZE", "STEP", "doubled", "helper", "helpers.WIDTH", "kernel",
    ]  # fmt: skip
    assert found.hash == dependencies(kernel).hash
    assert len(found.hash) == 64
    assert found.changed() == ()


@pytest.mark.parametrize(
    ("holder", "name", "value"),
    [
        (globals(), "LIMIT", 5),
        (globals(), "STEP", tl.constexpr(3)),
        (helpers.__dict__, "WIDTH", 16),
        (globals(), "helper", kernel),
    ],
)
def test_a_changed_global_is_noticed(monkeypatch, holder, name, value):
    before = dependencies(kernel)
    monkeypatch.setitem(holder, name, value)
    assert [used.binding.key for used in before.changed()] == [name]
    assert dependencies(kernel).hash != before.hash


def test_a_changed_class_attribute_is_noticed(monkeypatch):
    before = dependencies(kernel)
    monkeypatch.setattr(Limits, "SIZE", 32)
    assert [used.name for used in before.changed()] == ["Limits.SIZE"]
    assert dependencies(kernel).hash != before.hash


def test_an_equal_value_is_no_change(monkeypatch):
    before = dependencies(kernel)
    monkeypatch.setitem(globals(), "STEP", tl.constexpr(2))
    monkeypatch.setitem(globals(), "unused", 2)
    assert before.changed() == ()
    assert dependencies(kernel).hash == before.hash


def test_the_hash_sees_the_text_of_called_functions():
    def made(body: str) -> str:
        file = f"<{body}>"
        text = f"def g(x): return {body}\ndef f(out): tl.store(out, g(1))"
        remember(file, text)
        namespace: dict[str, object] = {"tl": tl}
        exec(compile(text, file, "exec"), namespace)
        namespace["g"] = device_function(namespace["g"])
        return dependencies(device_function(namespace["f"])).hash

    assert made("x + 1") != made("x + 2")
    assert made("x + 1") == made("x + 1")


def test_the_type_of_a_constant_counts(monkeypatch):
    before = dependencies(kernel)
    monkeypatch.setitem(globals(), "LIMIT", 4.0)
    assert len(before.changed()) == 1


def closed(step):
    @device_function
    def inner(out):
        tl.store(out, step)

    return inner


def test_closures_are_dependencies():
    one, two = dependencies(closed(1)), dependencies(closed(2))
    assert one.hash != two.hash
    assert [(used.name, used.value) for used in one.used] == [("step", 1)]
