"""Adjacent steps, swapped: the code is equal, or a property refuses the pipeline.

No order is left to prose: a pair whose order matters is one that a property orders. Two codes that
are both right but differ would be rows of `QUALITY_ONLY`; there are none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache

import pytest

import tilewright
from tests.corpus.figures import source_of
from tests.corpus.variants import CORPUS, HERE, Variant
from tilewright.backends import GPUTarget
from tilewright.backends.cpu.pipeline import cpu_pipeline
from tilewright.backends.nvidia.arch import row_for
from tilewright.backends.nvidia.passes import software_pipeline
from tilewright.backends.nvidia.passes.insert_shared_barriers import InsertSharedBarriers
from tilewright.backends.nvidia.pipeline import Choices, front_pipeline, layout_pipeline
from tilewright.ir import Module, Pipeline, Step, parse_module, print_module
from tilewright.support.errors import InternalCompilerError
from tilewright.transforms import Dce

TARGETS = ("sm_80", "sm_90", "sm_120", "cpu")
KERNELS = (
    "add", "attention", "attention_backward", "attention_by_descriptors", "attention_decode",
    "dropout", "grouped_matmul", "layer_norm", "matmul", "quantized_matmul", "softmax", "transpose",
)  # fmt: skip

QUALITY_ONLY: frozenset[tuple[str, str]] = frozenset()
"""Pairs of passes whose two orders give code that differs and is right in both."""


@dataclass(frozen=True)
class Case:
    """A kernel and the pipelines of a target."""

    text: str
    pipelines: tuple[Pipeline, ...]

    def module(self) -> Module:
        """The front end's IR."""
        return parse_module(self.text)


def variant_of(kernel: str, capability: int) -> Variant:
    """The first variant of an architecture, or of the one that has all."""
    rows = [variant for variant in CORPUS[kernel] if variant.capability == capability]
    return rows[0] if rows else CORPUS[kernel][0]


@cache
def case_of(kernel: str, target: str) -> Case:
    capability = HERE if target == "cpu" else int(target[3:])
    variant = variant_of(kernel, capability)
    gpu = GPUTarget("cuda", capability, 32)
    text = str(tilewright.compile(source_of(variant), gpu, variant.options).asm["source"])
    if target == "cpu":
        return Case(text, (cpu_pipeline(fma=True),))
    words = dict(variant.words)
    choices = Choices(
        row_for(capability), words.get("num_warps", 4), words.get("num_stages", 3),
        bulk_loads=words.get("bulk_loads", "all"), persistent=words.get("persistent"),
        registers=words.get("maxnreg"),
    )  # fmt: skip
    return Case(text, (front_pipeline(choices), layout_pipeline(choices)))


def swapped(pipeline: Pipeline, index: int) -> tuple[Step, ...] | None:
    """The steps from `index` on, two in the other order; None where a property refuses that."""
    one, other, *rest = pipeline.steps[index:]
    try:
        replace(pipeline, steps=(*pipeline.steps[:index], other, one, *rest))
    except InternalCompilerError as error:
        assert "needs the property" in error.detail
        return None
    return (other, one, *rest)


def run(steps: Iterable[Step], module: Module) -> Module:
    """A copy of the module after the steps, without verification."""
    result = Module(tuple(function.clone() for function in module.functions.values()))
    for step in steps:
        for function in result.functions.values():
            step.work.run(function)
    return result


def passes_that_leave_dead_ops(steps: Iterable[Step], module: Module) -> set[str]:
    """The passes after which `dce` removes something, where it removed nothing before."""
    found, state, had = set[str](), module, True
    for step in steps:
        state = run((step,), state)
        has = print_module(run((Step(Dce()),), state)) != print_module(state)
        found |= {step.work.name} if has and not had else set()
        had = has
    return found


def differing_swaps(pipeline: Pipeline, module: Module) -> tuple[set[tuple[str, str]], Module]:
    """The pairs of passes whose swap changes the result, and the result in the right order."""
    states = [module]
    for step in pipeline.steps:
        states.append(run((step,), states[-1]))
    texts, found = [print_module(state) for state in states], set[tuple[str, str]]()
    for index in range(len(pipeline.steps) - 1):
        steps = swapped(pipeline, index)
        if steps is None or texts[index] == texts[index + 1] == texts[index + 2]:
            continue
        both = run(steps[:2], states[index])
        if print_module(both) != texts[index + 2] and (
            print_module(run(steps[2:], both)) != texts[-1]
        ):
            found.add((pipeline.steps[index].work.name, pipeline.steps[index + 1].work.name))
    return found, states[-1]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_swapped_steps_give_equal_code_or_are_refused(kernel: str, target: str) -> None:
    case = case_of(kernel, target)
    module, differing = case.module(), set[tuple[str, str]]()
    for pipeline in case.pipelines:
        found, module = differing_swaps(pipeline, module)
        differing |= found
    assert differing <= QUALITY_ONLY


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_passes_leave_no_dead_ops(kernel: str, target: str) -> None:
    case = case_of(kernel, target)
    steps = [step for pipeline in case.pipelines for step in pipeline.steps]
    assert not passes_that_leave_dead_ops(steps, case.module())


def test_a_pass_that_leaves_dead_ops_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of("matmul", "sm_80")
    monkeypatch.setattr(software_pipeline, "remove_dead", lambda function: False)
    steps = [step for pipeline in case.pipelines for step in pipeline.steps]
    assert passes_that_leave_dead_ops(steps, case.module()) == {"nvidia-software-pipeline"}


def test_a_pair_whose_order_no_property_checks_is_found() -> None:
    case = case_of("matmul", "sm_90")
    layouts = case.pipelines[1]
    expand, insert = layouts.steps[-2:]
    steps = (*layouts.steps[:-2], replace(expand, ends=()), replace(insert, needs=()))
    module = run(case.pipelines[0].steps, case.module())
    found, _ = differing_swaps(replace(layouts, steps=steps), module)
    assert ("nvidia-lower-exchanges", "nvidia-insert-shared-barriers") in found


def test_a_missing_barrier_is_reported_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of("matmul", "sm_90")
    module = run(case.pipelines[0].steps, case.module())
    monkeypatch.setattr(InsertSharedBarriers, "run", lambda self, function: False)
    with pytest.raises(InternalCompilerError, match="every shared-memory hazard is separated"):
        case.pipelines[1].run(module)


def test_barriers_before_the_ops_that_need_them_are_refused() -> None:
    pipeline = layout_pipeline(Choices(row_for(90)))
    assert swapped(pipeline, len(pipeline.steps) - 2) is None
