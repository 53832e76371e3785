"""Legal LLVM IR for the NVPTX code generator, as shown by tests.

LLVM aborts the process on an instruction that the architecture lacks, a call of a library function,
or inline assembly that it cannot parse; none of these can be caught. Each intrinsic listed
here is compiled and assembled for each architecture row by the unit tests. Plain instructions on
types of up to 64 bits are all legal; on wider integers only moves, multiplications and shifts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tilewright.backends.nvidia.arch import Arch
from tilewright.ir.types import bf16, f16, f32, f64, i8, i16, i32, i64
from tilewright.llvm import llvm_type
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """A function of LLVM. arguments: LLVM types, or literals with their type where the value must
    be known; needs: field of `Arch` that must hold, empty for none."""

    name: str
    result: str
    arguments: tuple[str, ...] = ()
    needs: str = ""


_FLOAT_TYPES = {dtype.name: llvm_type(dtype) for dtype in (f16, bf16, f32, f64)}
_INTEGER_TYPES = {dtype.name: llvm_type(dtype) for dtype in (i8, i16, i32, i64)}


def _each(names: str, types: dict[str, str], arity: int, *more: str) -> Iterator[Intrinsic]:
    """`llvm.NAME.TYPE` with `arity` arguments of the type, then `more`."""
    for name in names.split():
        for suffix, type_ in types.items():
            yield Intrinsic(f"llvm.{name}.{suffix}", type_, (type_,) * arity + more)


def _generic() -> Iterator[Intrinsic]:
    """Target-independent intrinsics, which LLVM also creates when it simplifies."""
    yield from _each("fabs sqrt floor ceil trunc rint nearbyint round roundeven", _FLOAT_TYPES, 1)
    yield from _each(
        "minnum maxnum minimum maximum minimumnum maximumnum copysign", _FLOAT_TYPES, 2
    )
    yield from _each("fma fmuladd", _FLOAT_TYPES, 3)
    yield from _each("exp2", {"f32": "float", "f16": "half"}, 1)
    yield from _each("smin smax umin umax uadd.sat usub.sat sadd.sat ssub.sat", _INTEGER_TYPES, 2)
    yield from _each("abs ctlz cttz", _INTEGER_TYPES, 1, "i1 false")
    yield from _each("ctpop bitreverse", _INTEGER_TYPES, 1)
    yield from _each("fshl fshr", _INTEGER_TYPES, 3)
    for name in ("fptosi", "fptoui"):
        for suffix, type_ in _INTEGER_TYPES.items():
            for source, float_type in _FLOAT_TYPES.items():
                yield Intrinsic(f"llvm.{name}.sat.{suffix}.{source}", type_, (float_type,))


def _generic_scalar() -> Iterator[Intrinsic]:
    """Target-independent intrinsics that are legal on scalars only."""
    yield from _each("bswap", {k: v for k, v in _INTEGER_TYPES.items() if k != "i8"}, 1)
    for name in ("uadd", "usub", "umul", "sadd", "ssub", "smul"):
        for suffix, type_ in _INTEGER_TYPES.items():
            pair = f"{{ {type_}, i1 }}"
            yield Intrinsic(f"llvm.{name}.with.overflow.{suffix}", pair, (type_, type_))
    yield Intrinsic("llvm.assume", "void", ("i1",))
    yield from _each("expect", {**_INTEGER_TYPES, "i1": "i1"}, 2)
    yield Intrinsic("llvm.trap", "void")
    for space in ("p0", "p1", "p3"):
        pointer = _pointer(space)
        yield Intrinsic(
            f"llvm.memcpy.{space}.{space}.i64", "void", (pointer, pointer, "i64", "i1 false")
        )
        yield Intrinsic(f"llvm.memset.{space}.i64", "void", (pointer, "i8", "i64", "i1 false"))


def _pointer(space: str) -> str:
    return "ptr" if space == "p0" else f"ptr addrspace({space[1:]})"


def _special_registers() -> Iterator[Intrinsic]:
    for name in ("tid", "ntid", "ctaid", "nctaid"):
        for axis in "xyz":
            yield Intrinsic(f"llvm.nvvm.read.ptx.sreg.{name}.{axis}", "i32")
    for name in ("laneid", "warpid", "nwarpid", "smid", "nsmid", "clock"):
        yield Intrinsic(f"llvm.nvvm.read.ptx.sreg.{name}", "i32")
    for name in ("eq", "le", "lt", "ge", "gt"):
        yield Intrinsic(f"llvm.nvvm.read.ptx.sreg.lanemask.{name}", "i32")
    for name in ("clock64", "globaltimer"):
        yield Intrinsic(f"llvm.nvvm.read.ptx.sreg.{name}", "i64")
    for name in ("ctarank", "nctarank", "ctaid.x", "nctaid.x", "ctaid.y", "nctaid.y"):
        yield Intrinsic(f"llvm.nvvm.read.ptx.sreg.cluster.{name}", "i32", needs="clusters")
    for name in ("clusterid.x", "nclusterid.x"):
        yield Intrinsic(f"llvm.nvvm.read.ptx.sreg.{name}", "i32", needs="clusters")


def _synchronization() -> Iterator[Intrinsic]:
    yield Intrinsic("llvm.nvvm.barrier0", "void")
    yield Intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all", "void", ("i32 0",))
    yield Intrinsic("llvm.nvvm.barrier.cta.sync.aligned.count", "void", ("i32 1", "i32 64"))
    yield Intrinsic("llvm.nvvm.barrier.cta.arrive.aligned.count", "void", ("i32 1", "i32 64"))
    yield Intrinsic("llvm.nvvm.bar.warp.sync", "void", ("i32",))
    for scope in ("cta", "gl", "sys"):
        yield Intrinsic(f"llvm.nvvm.membar.{scope}", "void")
    yield Intrinsic("llvm.nvvm.elect.sync", "{ i32, i1 }", ("i32",), "elect_sync")
    for name in ("wait", "launch.dependents"):
        yield Intrinsic(f"llvm.nvvm.griddepcontrol.{name}", "void", (), "dependent_launch")
    for name in ("inc", "dec"):
        yield Intrinsic(
            f"llvm.nvvm.setmaxnreg.{name}.sync.aligned.u32", "void", ("i32 40",), "setmaxnreg"
        )
    for name in ("arrive.aligned", "wait.aligned", "arrive", "wait"):
        yield Intrinsic(f"llvm.nvvm.barrier.cluster.{name}", "void", (), "clusters")
    for name in ("", ".global", ".shared_cta"):
        yield Intrinsic(f"llvm.nvvm.fence.proxy.async{name}", "void", (), "proxy_fence")
    # wgmma itself has no intrinsic: it is inline assembly, see warpgroup_mma.py.
    for name, arguments in (("fence", ()), ("commit_group", ()), ("wait_group", ("i64 1",))):
        yield Intrinsic(f"llvm.nvvm.wgmma.{name}.sync.aligned", "void", arguments, "wgmma")


def _across_lanes() -> Iterator[Intrinsic]:
    for name in ("bfly", "idx", "up", "down"):
        for suffix, type_ in (("i32", "i32"), ("f32", "float")):
            arguments = ("i32", type_, "i32", "i32")
            yield Intrinsic(f"llvm.nvvm.shfl.sync.{name}.{suffix}", type_, arguments)
        arguments = ("i32", "i32", "i32", "i32")
        yield Intrinsic(f"llvm.nvvm.shfl.sync.{name}.i32p", "{ i32, i1 }", arguments)
    yield Intrinsic("llvm.nvvm.vote.ballot.sync", "i32", ("i32", "i1"))
    for name in ("all", "any", "uni"):
        yield Intrinsic(f"llvm.nvvm.vote.{name}.sync", "i1", ("i32", "i1"))
    yield Intrinsic("llvm.nvvm.match.any.sync.i32", "i32", ("i32", "i32"))
    yield Intrinsic("llvm.nvvm.activemask", "i32")
    for name in ("add", "min", "max", "umin", "umax", "and", "or", "xor"):
        yield Intrinsic(f"llvm.nvvm.redux.sync.{name}", "i32", ("i32", "i32"), "redux_integer")
    for name in ("fmin", "fmax"):
        yield Intrinsic(f"llvm.nvvm.redux.sync.{name}", "float", ("float", "i32"), "redux_float")


def _arithmetic() -> Iterator[Intrinsic]:
    for name in ("ex2", "lg2", "rsqrt", "rcp", "sqrt", "sin", "cos"):
        prefix = f"llvm.nvvm.{name}.approx"
        if name == "ex2":
            yield Intrinsic(f"{prefix}.ftz.f32", "float", ("float",))
            continue
        if name != "rcp":
            yield Intrinsic(f"{prefix}.f", "float", ("float",))
        yield Intrinsic(f"{prefix}.ftz.f", "float", ("float",))
    for name in ("div.full", "div.full.ftz"):
        yield Intrinsic(f"llvm.nvvm.{name}", "float", ("float", "float"))
    for name in ("rna", "rn", "rz"):
        needs = "bf16_fma" if name == "rna" else "bf16_arithmetic"  # tf32 came with bf16
        yield Intrinsic(f"llvm.nvvm.f2tf32.{name}", "i32", ("float",), needs)
    packed = "bf16_conversion_packed"  # of both kinds of 16 bits
    yield Intrinsic("llvm.nvvm.ff2f16x2.rn", "<2 x half>", ("float", "float"), packed)
    yield Intrinsic("llvm.nvvm.ff2bf16x2.rn", "<2 x bfloat>", ("float", "float"), packed)
    for kind in ("e4m3x2", "e5m2x2"):
        yield Intrinsic(f"llvm.nvvm.ff.to.{kind}.rn", "i16", ("float", "float"), "fp8_conversion")
        yield Intrinsic(f"llvm.nvvm.{kind}.to.f16x2.rn", "<2 x half>", ("i16",), "fp8_conversion")
        yield Intrinsic(f"llvm.nvvm.f16x2.to.{kind}.rn", "i16", ("<2 x half>",), "fp8_conversion")
    yield Intrinsic("llvm.nvvm.prmt", "i32", ("i32", "i32", "i32"))


def _shared_memory() -> Iterator[Intrinsic]:
    shared, device = "ptr addrspace(3)", "ptr addrspace(1)"
    for how in ("ca.shared.global.4", "ca.shared.global.8", "ca.shared.global.16",
                "cg.shared.global.16"):  # fmt: skip
        yield Intrinsic(f"llvm.nvvm.cp.async.{how}", "void", (shared, device), "cp_async")
        yield Intrinsic(f"llvm.nvvm.cp.async.{how}.s", "void", (shared, device, "i32"), "cp_async")
    yield Intrinsic("llvm.nvvm.cp.async.commit.group", "void", (), "cp_async")
    yield Intrinsic("llvm.nvvm.cp.async.wait.group", "void", ("i32 1",), "cp_async")
    yield Intrinsic("llvm.nvvm.cp.async.wait.all", "void", (), "cp_async")
    for count in (1, 2, 4):
        result = "i32" if count == 1 else f"{{ {', '.join(['i32'] * count)} }}"
        for trans in ("", ".trans"):
            form = f"sync.aligned.m8n8.x{count}{trans}.b16.p3"
            yield Intrinsic(f"llvm.nvvm.ldmatrix.{form}", result, (shared,))
            arguments = (shared, *["i32"] * count)
            yield Intrinsic(f"llvm.nvvm.stmatrix.{form}", "void", arguments, "stmatrix")


def _warp_mma() -> Iterator[Intrinsic]:
    """Names are without the types that all operands of a shape share."""
    half, single = "<2 x half>", "float"

    def form(name: str, result: str, a: str, b: str, counts: tuple[int, int, int]) -> Intrinsic:
        na, nb, nc = counts
        struct = f"{{ {', '.join([result] * nc)} }}"
        arguments = (a,) * na + (b,) * nb + (result,) * nc
        # Turing has only this one of the listed shapes; the others came with bf16.
        needs = "" if name == "m16n8k8.row.col.f32.f32" else "bf16_fma"
        return Intrinsic(f"llvm.nvvm.mma.{name}", struct, arguments, needs)

    yield form("m16n8k16.row.col.f32.f32", single, half, half, (4, 2, 4))
    yield form("m16n8k8.row.col.f32.f32", single, half, half, (2, 1, 4))
    yield form("m16n8k16.row.col.f16.f16", half, half, half, (4, 2, 2))
    yield form("m16n8k16.row.col.bf16", single, "i32", "i32", (4, 2, 4))
    yield form("m16n8k8.row.col.bf16", single, "i32", "i32", (2, 1, 4))
    yield form("m16n8k8.row.col.tf32", single, "i32", "i32", (4, 2, 4))
    yield form("m16n8k32.row.col.s8", "i32", "i32", "i32", (4, 2, 4))
    yield form("m16n8k32.row.col.u8", "i32", "i32", "i32", (4, 2, 4))
    yield form("m8n8k4.row.col.f64", "double", "double", "double", (1, 1, 2))
    for a in ("e4m3", "e5m2"):
        for b in ("e4m3", "e5m2"):
            made = form(f"m16n8k32.row.col.f32.{a}.{b}.f32", single, "i32", "i32", (4, 2, 4))
            yield Intrinsic(made.name, made.result, made.arguments, "fp8_conversion")


def _by_name(*groups: Iterable[Intrinsic]) -> dict[str, Intrinsic]:
    return {intrinsic.name: intrinsic for group in groups for intrinsic in group}


GENERIC = _by_name(_generic())
"""Intrinsics that also take vectors of any width; LLVM splits them."""

INTRINSICS = GENERIC | _by_name(
    _generic_scalar(),
    _special_registers(),
    _synchronization(),
    _across_lanes(),
    _arithmetic(),
    _shared_memory(),
    _warp_mma(),
)
"""By name."""

_NO_CODE = re.compile(r"\n(?:!\d+ = (?:distinct )?!DI|target datalayout = ).*")
"""Debug metadata and data layouts, which are no code: their names may look like types."""
_IGNORED = re.compile(r"llvm\.(?:dbg|lifetime|experimental\.noalias|donothing)\b")
_CALLED = re.compile(r"@(llvm\.[\w.]+)")
_VECTOR = re.compile(r"\.v\d+(?=[a-z])")
_ASM = re.compile(r'asm (?:sideeffect )?"((?:[^"\\]|\\.)*)", "([^"]*)"')
_CONSTRAINT = re.compile(r"(?:=&?|)(?:[bhrlfdqn]|\d+)|~\{memory\}")
_OPERAND = re.compile(r"\$\{?(\d+)")
_WIDE_HINT = re.compile(r"i\d{3}|i[789]\d|i6[5-9]")
_WIDE = re.compile(r"\b(?:i(?:6[5-9]|[7-9]\d|\d{3,})|fp128|x86_fp80|ppc_fp128)\b")
_WIDE_FINE = re.compile(
    r"= (?:zext|sext|trunc|mul|l?shr|shl|ashr|and|or|xor|add|sub|bitcast|load|insertelement|"
    r"extractelement|shufflevector)\b|^\s*store\b|^\s*(?:target|declare|define)\b"
)


def unlisted(text: str, arch: Arch) -> list[str]:
    """The constructs of a module that no test has compiled for `arch`; empty if there are none."""
    text = _NO_CODE.sub("", text)
    risks = [name for name in dict.fromkeys(_CALLED.findall(text)) if not _is_listed(name, arch)]
    risks += [asm for asm in dict.fromkeys(_ASM.findall(text)) if not _is_readable(*asm)] and [
        "inline assembly"
    ]
    # a cheap test first, since few modules have such types: the exact one scans each line
    if _WIDE_HINT.search(text) or "fp128" in text or "x86_fp80" in text:
        wide = (line for line in text.splitlines() if _WIDE.search(line))
        risks += [line.strip() for line in wide if not _WIDE_FINE.search(line)]
    return risks


def _is_listed(name: str, arch: Arch) -> bool:
    if _IGNORED.match(name):
        return True
    intrinsic = INTRINSICS.get(name) or GENERIC.get(_VECTOR.sub(".", name))
    if intrinsic is None:
        return False
    return not intrinsic.needs or bool(getattr(arch, intrinsic.needs))


def _is_readable(template: str, constraints: str) -> bool:
    """Whether LLVM has the constraints, and each $N in the template is an operand."""
    parts = constraints.split(",") if constraints else []
    operands = sum(not part.startswith("~") for part in parts)
    return all(_CONSTRAINT.fullmatch(part) for part in parts) and all(
        # "$$" is a dollar sign
        int(number) < operands
        for number in _OPERAND.findall(template.replace("$$", ""))
    )
