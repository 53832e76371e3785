"""Data classes whose methods are written at their first use behave as the standard ones."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import Any, ClassVar

import pytest

from tilewright.support.data_class import dataclass as ours

FORMS: list[dict[str, bool]] = [
    {},
    {"eq": False},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "eq": False},
    {"slots": True, "kw_only": True},
]


class Body:
    count: int
    name: str = "x"
    items: list[int] = dataclasses.field(default_factory=list[int])
    hidden: object = dataclasses.field(default=None, kw_only=True, repr=False)
    made: list[int] = dataclasses.field(default_factory=list[int], init=False)
    seen: int = dataclasses.field(default=7, init=False, compare=False)
    kind: ClassVar[str] = "body"

    def doubled(self) -> int:
        return 2 * self.count


def made(decorate: Any, form: dict[str, bool]) -> Any:
    """The same class body under a decorator."""
    names = {k: v for k, v in vars(Body).items() if k not in ("__dict__", "__weakref__")}
    names = {k: copy.copy(v) if isinstance(v, dataclasses.Field) else v for k, v in names.items()}
    return decorate(**form)(type("Body", (), names))


def assert_same(form: dict[str, bool], ask: Any) -> None:
    """Both decorators answer alike, with a value or an error."""
    answers: list[object] = []
    for decorate in (ours, dataclasses.dataclass):
        try:
            answers.append(ask(made(decorate, form)))
        except Exception as problem:
            answers.append((type(problem), str(problem).replace("test_data_class.", "")))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_they_answer_as_standard_ones(form: dict[str, bool]) -> None:
    assert_same(form, lambda c: repr(c(count=1, name="n", hidden=2)))
    assert_same(form, lambda c: c(count=1) == c(count=1))
    assert_same(form, lambda c: c(count=1) == c(count=2))
    assert_same(form, lambda c: c(count=1) == "other")
    assert_same(form, lambda c: c.__hash__ is None)
    assert_same(form, lambda c: c(3).doubled())
    assert_same(form, lambda c: dataclasses.replace(c(count=3), name="y").name)
    assert_same(form, lambda c: dataclasses.asdict(c(count=3, items=[1])))
    assert_same(form, lambda c: [(f.name, f.kw_only, f.repr) for f in dataclasses.fields(c)])
    assert_same(form, lambda c: c.__match_args__)
    assert_same(form, lambda c: hasattr(c(count=1), "__dict__"))
    assert_same(form, lambda c: c(count=1).items is c(count=1).items)
    assert_same(form, lambda c: c.kind)
    assert_same(form, lambda c: (c(count=1).made, c(count=1).seen))
    assert_same(form, lambda c: c(count=1, seen=2))
    assert_same(form, lambda c: c())
    assert_same(form, lambda c: c(1, count=2))
    assert_same(form, lambda c: [c(count=i).name for i in range(9)])
    if "eq" not in form:
        assert_same(form, lambda c: hash(c(count=1)))


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_fields_are_set_as_in_standard_ones(form: dict[str, bool]) -> None:
    def assigned(cls: Any) -> object:
        one = cls(count=1)
        one.count = 2
        return one.count

    def deleted(cls: Any) -> object:
        one = cls(count=1)
        del one.name
        return getattr(one, "name", None)

    assert_same(form, assigned)
    if form.get("frozen") or form.get("slots"):
        assert_same(form, deleted)


@ours(frozen=True, slots=True)
class Point:
    """Two numbers."""

    x: int
    y: int = 0


@ours(frozen=True, slots=True)
class Named(Point):
    """A point with a name."""

    name: str = ""


@dataclasses.dataclass(frozen=True)
class Standard(Point):
    z: int = 5


@ours
class Checked:
    """Looks at what it is given."""

    size: int

    def __post_init__(self) -> None:
        assert self.size > 0


def test_hashes_are_those_of_the_tuple_of_fields() -> None:
    assert hash(Point(1, 2)) == hash((1, 2))
    assert len({Point(1), Point(1, 0), Point(2)}) == 2


def test_instances_are_copied_and_pickled() -> None:
    for point in (Point(1, 2), Named(1, 2, "n"), Standard(1, 2, 3)):
        assert copy.copy(point) == copy.deepcopy(point) == point
        assert pickle.loads(pickle.dumps(point)) == point


def test_fields_are_inherited() -> None:
    assert Named(1, name="n") == Named(1, 0, "n") != Point(1)
    assert repr(Named(1)) == "Named(x=1, y=0, name='')"
    assert Standard(1) == Standard(1, 0, 5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Named(1).name = "other"  # pyright: ignore[reportAttributeAccessIssue]


def test_classes_are_matched_by_position() -> None:
    match Named(1, 2, "n"):
        case Named(x, y, name):
            assert (x, y, name) == (1, 2, "n")


def test_what_follows_the_constructor_is_called() -> None:
    with pytest.raises(AssertionError):
        Checked(0)
    assert Checked(1).size == 1


@ours(eq=False)
class Problem(Exception):
    """What a subclass extends before it has ever been made."""

    what: str
    hint: str | None = dataclasses.field(default=None, kw_only=True)


class WrongName(Problem):
    """A problem with a constructor of its own."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no {name}", hint="spell it right")
        self.name = name


def test_a_subclass_calls_the_constructor_first() -> None:
    wrong = WrongName("x")
    assert (wrong.what, wrong.hint, wrong.name) == ("no x", "spell it right", "x")
    assert Problem("other").hint is None
    assert wrong != WrongName("x")


@ours(eq=False)
class Unmade(Exception):
    """A class whose constructor is looked up before its first instance."""

    what: str
    hint: str | None = dataclasses.field(default=None, kw_only=True)


class UnmadeToo(Unmade):
    """A subclass that inherits it."""


@pytest.mark.parametrize("cls", [UnmadeToo, Unmade])
def test_a_signature_needs_no_instance(cls: type) -> None:
    assert list(inspect.signature(cls).parameters) == ["what", "hint"]


def test_a_constructor_is_bound_to_a_class_as_to_an_instance() -> None:
    @ours
    class Size:
        extent: int

    # As `inspect.signature` of Python 3.13 does.
    constructor = Size.__dict__["__init__"].__get__(Size, type)
    assert list(inspect.signature(constructor).parameters) == ["extent"]
    assert Size(3).extent == 3
