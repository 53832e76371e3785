"""LLVM's intrinsics that are one PTX instruction each, as that instruction.

In a template a, b, ... stand for the operands and d for the result; A, B, ... are operands that
must be constants.
"""

from __future__ import annotations

import re

_TEMPLATES: list[tuple[str, str]] = [
    (r"shfl\.sync\.(idx|bfly|up|down)\.[if]32", "shfl.sync.{0}.b32 d, b, c, e, a"),
    (r"shfl\.sync\.(up|down)\.i32p", "shfl.sync.{0}.b32 d|p, b, c, e, a"),
    (r"elect\.sync", "elect.sync d|p, a"),
    (r"setmaxnreg\.(inc|dec)\.sync\.aligned\.u32", "setmaxnreg.{0}.sync.aligned.u32 A"),
    (r"barrier0", "bar.sync 0"),
    (r"barrier\.cta\.sync(?:\.aligned)?\.all", "barrier.sync a"),
    (r"barrier\.cta\.(sync|arrive)(?:\.aligned)?\.count", "barrier.{0} a, b"),
    (r"barrier\.cta\.red\.(and|or|popc)(?:\.aligned)?\.all", "barrier.red.{0} d, a, b"),
    (r"barrier\.cta\.red\.(and|or|popc)(?:\.aligned)?\.count", "barrier.red.{0} d, a, b, c"),
    (r"bar\.warp\.sync", "bar.warp.sync a"),
    (r"fence\.proxy\.async\.shared_(cta|cluster)", "fence.proxy.async.shared::{0}"),
    (r"fence\.proxy\.async(\.global)?", "fence.proxy.async{0}"),
    (r"fence\.mbarrier_init\.release\.cluster", "fence.mbarrier_init.release.cluster"),
    (r"membar\.(cta|gl|sys)", "membar.{0}"),
    (r"mbarrier\.init\.shared", "mbarrier.init.shared.b64 [a], b"),
    (r"mbarrier\.inval\.shared", "mbarrier.inval.shared.b64 [a]"),
    (r"mbarrier\.arrive\.scope\.cta\.space\.cta", "mbarrier.arrive.shared.b64 d, [a], b"),
    (r"mbarrier\.arrive\.expect\.tx\.scope\.cta\.space\.cta",
     "mbarrier.arrive.expect_tx.shared.b64 d, [a], b"),
    (r"mbarrier\.expect\.tx\.scope\.cta\.space\.cta", "mbarrier.expect_tx.shared.b64 [a], b"),
    (r"mbarrier\.(try|test)\.wait\.parity\.scope\.(?:cta|cluster)\.space\.cta",
     "mbarrier.{0}_wait.parity.shared.b64 d, [a], b"),
    (r"cp\.async\.(ca|cg)\.shared\.global\.(\d+)", "cp.async.{0}.shared.global [a], [b], {1}"),
    (r"cp\.async\.(ca|cg)\.shared\.global\.(\d+)\.s",
     "cp.async.{0}.shared.global [a], [b], {1}, c"),
    (r"cp\.async\.commit\.group", "cp.async.commit_group"),
    (r"cp\.async\.wait\.group", "cp.async.wait_group A"),
    (r"cp\.async\.wait\.all", "cp.async.wait_all"),
    (r"cp\.async\.bulk\.commit\.group", "cp.async.bulk.commit_group"),
    (r"cp\.async\.bulk\.wait\.group(\.read)?", "cp.async.bulk.wait_group{0} A"),
    (r"cp\.async\.bulk\.global\.to\.shared\.(cta|cluster)",
     "cp.async.bulk.shared::{0}.global.mbarrier::complete_tx::bytes [a], [c], e, [b]"),
    (r"cp\.async\.bulk\.shared\.cta\.to\.global",
     "cp.async.bulk.global.shared::cta.bulk_group [a], [b], c"),
    (r"wgmma\.(fence|commit_group)\.sync\.aligned", "wgmma.{0}.sync.aligned"),
    (r"wgmma\.wait_group\.sync\.aligned", "wgmma.wait_group.sync.aligned A"),
    (r"(ex2|lg2|rcp|sqrt|rsqrt|sin|cos|tanh)\.approx(\.ftz)?\.f(?:32)?", "{0}.approx{1}.f32 d, a"),
    (r"ff2(f16|bf16)x2\.rn", "cvt.rn.{0}x2.f32 d, a, b"),
    (r"ldmatrix\.sync\.aligned\.m8n8\.x(\d)(\.trans)?\.b16.*", "ldmatrix"),
    (r"stmatrix\.sync\.aligned\.m8n8\.x(\d)(\.trans)?\.b16.*", "stmatrix"),
    (r"cp\.async\.bulk\.tensor\.g2s(?:\.cta)?\.tile\.(\d)d", "tensor load"),
    (r"cp\.async\.bulk\.tensor\.s2g\.tile\.(\d)d", "tensor store"),
    (r"cp\.async\.bulk\.tensor\.reduce\.(\w+)\.tile\.(\d)d", "tensor reduce"),
    (r"prefetch\.tensormap.*|cp\.async\.bulk\.tensor\.prefetch.*", "prefetch.tensormap a"),
    (r"griddepcontrol\.(wait|launch\.dependents)", "griddepcontrol.{0}"),
    (r"prmt", "prmt.b32 d, a, b, c"),
    (r"nanosleep", "nanosleep.u32 a"),
]  # fmt: skip

_LETTERS = "abcefghijklmnoq"


def as_assembly(name: str, type_: str, operands: list[str]) -> tuple[str, str] | None:
    """(template, constraints) of inline assembly that does what an intrinsic does."""
    name = name.removeprefix("llvm.nvvm.")
    for pattern, template in _TEMPLATES:
        match = re.fullmatch(pattern, name)
        if match is not None:
            outputs = 0 if type_ == "void" else max(type_.count(","), 0) + 1
            groups = [group or "" for group in match.groups()]
            text = _LONG.get(template, _short)(template, groups, outputs, operands)
            return text + ";", ",".join(["=r"] * outputs + ["r"] * len(operands))
    return None


def _short(template: str, groups: list[str], outputs: int, operands: list[str]) -> str:
    head, _, rest = template.format(*groups).partition(" ")

    def one(match: re.Match[str]) -> str:
        letter = match[0]
        if letter in "dp":
            return "_" if not outputs else f"${'dp'.index(letter)}"
        number = _LETTERS.index(letter.lower())
        return operands[number] if letter.isupper() else f"${outputs + number}"

    return f"{head} " + re.sub(r"\b[a-zA-Z]\b", one, rest)


def _ldmatrix(template: str, groups: list[str], outputs: int, operands: list[str]) -> str:
    words = ", ".join(f"${i}" for i in range(outputs))
    head = f"ldmatrix.sync.aligned.m8n8.x{groups[0]}{groups[1]}.shared.b16"
    return f"{head} {{{words}}}, [${outputs}]"


def _stmatrix(template: str, groups: list[str], outputs: int, operands: list[str]) -> str:
    words = ", ".join(f"${i}" for i in range(1, len(operands)))
    return f"stmatrix.sync.aligned.m8n8.x{groups[0]}{groups[1]}.shared.b16 [$0], {{{words}}}"


def _tensor_load(template: str, groups: list[str], outputs: int, operands: list[str]) -> str:
    """Operands: target, mbarrier, map, coordinates; then hints, which say nothing here."""
    coordinates = ", ".join(f"${3 + i}" for i in range(int(groups[0])))
    return (f"cp.async.bulk.tensor.{groups[0]}d.shared::cta.global.tile"
            f".mbarrier::complete_tx::bytes [$0], [$2, {{{coordinates}}}], [$1]")  # fmt: skip


def _tensor_store(template: str, groups: list[str], outputs: int, operands: list[str]) -> str:
    """Operands: source, map, coordinates, hints."""
    coordinates = ", ".join(f"${2 + i}" for i in range(int(groups[-1])))
    kind = f".{groups[0]}" if template == "tensor reduce" else ""
    reduce = "reduce." if kind else ""
    return (f"cp.{reduce}async.bulk.tensor.{groups[-1]}d.global.shared::cta{kind}.tile.bulk_group "
            f"[$1, {{{coordinates}}}], [$0]")  # fmt: skip


_LONG = {
    "ldmatrix": _ldmatrix, "stmatrix": _stmatrix, "tensor load": _tensor_load,
    "tensor store": _tensor_store, "tensor reduce": _tensor_store,
}  # fmt: skip
