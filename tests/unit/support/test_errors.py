"""Every mistake of the catalogue has its code, fills its template and survives pickling."""

import pickle
import traceback
import typing
from collections.abc import Iterable
from dataclasses import MISSING, fields

import pytest

from tilewright.support import SourceLoc, TilewrightError, errors, settings, user_boundary

SAMPLES: dict[object, object] = {
    int: 3,
    str: "thing",
    object: "thing",
    tuple[int, ...]: (1, 2),
    tuple[str, ...]: ("a", "b"),
    Iterable[int]: [1, 2],
    Iterable[str]: ("thin",),
}

CATALOGUE = [
    item
    for item in vars(errors).values()
    if isinstance(item, type) and issubclass(item, TilewrightError) and item.template != "error"
]


def sample(kind: type[TilewrightError]) -> TilewrightError:
    hints = typing.get_type_hints(kind)
    values = {
        item.name: SAMPLES[hints[item.name]]
        for item in fields(kind)
        if item.default is MISSING and not item.kw_only
    }
    return kind(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", CATALOGUE, ids=lambda kind: kind.__name__)
def test_each_mistake_prints_and_pickles(kind: type[TilewrightError]) -> None:
    error = sample(kind).with_loc(SourceLoc("k.py", 1, 0, 1), {"k.py": ["x"]})
    text = str(error)
    assert text.startswith(f"{error.message} [{kind.code}]\n  --> k.py:1:1\n")
    assert "{" not in text
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind and str(copy) == text
    assert kind.__doc__ and not kind.__doc__.startswith(kind.__name__ + "(")


def test_codes_are_unique_and_all_mistakes_are_exported() -> None:
    codes = [kind.code for kind in CATALOGUE]
    assert len(codes) > 30
    assert sorted(set(codes)) == sorted(codes)
    assert {kind.__name__ for kind in CATALOGUE} <= set(errors.__all__)


def test_message_hint_and_place() -> None:
    error = errors.ShapeMismatch(
        "add", (128,), (64,), loc=SourceLoc("k.py", 1, 4, 9, "k"), sources={"k.py": ["z = x + y"]}
    )
    assert str(error) == "\n".join(
        [
            "cannot add tiles of shapes (128,) and (64,) [TW110]",
            "  --> k.py:1:5 in k",
            "  |",
            "1 | z = x + y",
            "  |     ^^^^^",
            "  hint: tile shapes broadcast from the right, and sizes must be equal or 1",
        ]
    )


def test_first_place_stays() -> None:
    near = SourceLoc("k.py", 1)
    error = errors.BadGrid((0,), "has an axis of size 0", loc=near)
    assert error.with_loc(SourceLoc("k.py", 2)) is error
    assert error.loc is near


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (errors.UndefinedName("lod", ["load", "store"]), "did you mean 'load'?"),
        (errors.UndefinedName("zzz", ["load"]), None),
        (errors.UnknownArgument("k", "num_warp", ["num_warps"]), "did you mean 'num_warps'?"),
        (errors.UnknownArgument("k", "zzz", ["x", "n"]), "it has 'x', 'n'"),
        (errors.UnknownAttribute("a tile", "shap", ["shape"]), "did you mean 'shape'?"),
        (errors.NonPowerOfTwo("the size", 100), "use 128 and mask the elements past 100"),
        (errors.NonPowerOfTwo("the size", 0), None),
        (errors.UnknownTarget("tpu", ["cpu"]), "known targets: 'cpu'"),
        (
            errors.InternalCompilerError("x", "a.tile"),
            "please report it with the file a.tile",
        ),
    ],
)
def test_hints_that_depend_on_the_fields(error: TilewrightError, hint: str | None) -> None:
    assert error.hint == hint


def test_text_from_the_user_is_no_template() -> None:
    assert errors.InterpreterError("{loc} {0}").message == "{loc} {0}"


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.UnknownArgument("f", "x"), KeyError),
        (errors.ArgumentCount("f", 1, 2), TypeError),
        (errors.BadGrid((0,), "is empty"), ValueError),
        (errors.SourceNotAvailable("f", "gone"), OSError),
        (errors.LoweringMissing("tile.dot", "cpu"), NotImplementedError),
        (errors.DeviceAssertionFailure("x > 0", (0, 0, 0)), AssertionError),
    ],
)
def test_means_what_the_builtin_means(error: TilewrightError, builtin: type[BaseException]) -> None:
    assert isinstance(error, builtin)
    assert str(error).startswith(error.message)


def _deep_mistake() -> None:
    raise errors.BadGrid((0,), "is empty") from KeyError("inner")


def _entry_point() -> None:
    with user_boundary:
        _deep_mistake()


def test_mistakes_cross_the_boundary_without_compiler_frames() -> None:
    with pytest.raises(errors.BadGrid) as caught:
        _entry_point()
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names == ["test_mistakes_cross_the_boundary_without_compiler_frames"]
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_frames_stay_in_debug_mode() -> None:
    with settings().compilation.scope(debug=True), pytest.raises(errors.BadGrid) as caught:
        _entry_point()
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-1] == "_deep_mistake"
    assert isinstance(caught.value.__cause__, KeyError)


def test_other_exceptions_keep_their_frames() -> None:
    def callback() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError) as caught, user_boundary:
        callback()
    assert caught.traceback[-1].name == "callback"
