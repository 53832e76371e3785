"""Users' kernels, compiled for three NVIDIA architectures and a CPU: figures as in the tables.

The tables are `tests/golden/users/TARGET/FAMILY.txt`. In the guard tier each `SAMPLE`-th case of a
family is compiled for one of the targets, in slices of the rest all of them. `pytest --bless
tests/corpus/test_users.py` rewrites the tables.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.corpus import table
from tests.corpus.assembler import VERSION, pinned_ptxas
from tests.corpus.user_figures import CPU, CpuFigures, UserFigures, figures_of
from tests.corpus.users import FAMILIES
from tests.corpus.variants import CORPUS, USERS_ON, Variant
from tilewright import settings
from tilewright.backends import GPUTarget
from tilewright.backends.nvidia.driver import device_target

FOLDER = Path(__file__).parents[1] / "golden" / "users"
GPUS = {f"sm_{capability}": GPUTarget("cuda", capability, 32) for capability in USERS_ON}
TARGETS = GPUS | {"cpu": GPUTarget("cpu", CPU, 1)}
SAMPLE = 7
"""Cases from one that the guard tier compiles to the next."""


@pytest.fixture(autouse=True)
def _wheel(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Assemble by the wheel's ptxas, also where a GPU's driver could."""
    monkeypatch.setattr(device_target, "is_device_target", lambda target: False)
    with settings().cuda.scope(ptxas_path=pinned_ptxas()):
        yield


def variants_of(family: str, target: str) -> list[Variant]:
    """All cases of a family for one target."""
    capability = TARGETS[target].arch if target in GPUS else USERS_ON[0]
    return [v for v in CORPUS[f"users/{family}"] if v.capability == capability]


def text_of(variants: list[Variant], target: str) -> str:
    """The lines of the table for these variants."""
    found: dict[tuple[str, str], UserFigures | CpuFigures] = {
        (target, v.label): figures_of(v, TARGETS[target]) for v in variants
    }
    return table.text_of(found, f"ptxas {VERSION}" if target in GPUS else CPU)


@pytest.mark.parametrize("family", FAMILIES)
def test_sampled_cases_have_the_figures_of_the_table(family: str) -> None:
    position = list(FAMILIES).index(family)
    target = list(TARGETS)[position % len(TARGETS)]
    sampled = variants_of(family, target)[position % SAMPLE % len(FAMILIES[family]) :: SAMPLE]
    expected = table.rows((FOLDER / target / f"{family}.txt").read_text())
    found = table.rows(text_of(sampled, target))
    assert sampled and found - expected == set()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("family", FAMILIES)
def test_code_is_as_in_the_table(family: str, target: str, request: pytest.FixtureRequest) -> None:
    text = text_of(variants_of(family, target), target)
    path = FOLDER / target / f"{family}.txt"
    report = table.check(path, text, bless=bool(request.config.getoption("--bless")))
    if report is not None:
        pytest.fail(report, pytrace=False)


def test_each_family_has_a_table_for_each_target_with_all_its_cases() -> None:
    tables = {(path.parent.name, path.stem): path for path in FOLDER.glob("*/*.txt")}
    assert set(tables) == {(target, family) for target in TARGETS for family in FAMILIES}
    for (_, family), path in tables.items():
        assert len(table.rows(path.read_text())) == len(FAMILIES[family]) + 1


@pytest.mark.parametrize("family", FAMILIES)
def test_labels_of_a_family_differ(family: str) -> None:
    labels = [case.label for case in FAMILIES[family]]
    assert len(set(labels)) == len(labels) > 0


def test_a_figure_that_is_not_in_the_table_is_found() -> None:
    text = text_of(variants_of("atomics", "sm_90")[:1], "sm_90")
    (row,) = table.rows(text) - table.rows("\n".join(text.splitlines()[:2]))
    other = row.removesuffix(row.split()[-1]) + "77"
    expected = table.rows(text.replace(text.splitlines()[-1], other))
    assert table.rows(text) - expected == {row}
