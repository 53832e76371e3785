"""Targets of code generation as data: this machine's CPU, and others by name.

LLVM itself is not imported: a kernel from the disk cache runs without it.
"""

import functools

import llvmlite

from tilewright.llvm.detected_host import DetectedHost, detected_host
from tilewright.llvm.tile_permission import may_use_tiles
from tilewright.support import operating_system
from tilewright.support.data_class import dataclass


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """A target of LLVM's code generator: hashable, part of a cache key.

    triple:   LLVM's target triple, such as x86_64-unknown-linux-gnu or nvptx64-nvidia-cuda
    cpu:      LLVM's CPU name, such as znver5 or sm_90a
    features: comma-separated `+name` / `-name` list
    effort:   0-3, the code generator's optimisation level (2: LLVM's default)
    """

    triple: str
    cpu: str
    features: str = ""
    effort: int = 2


_AMD = ("znver", "sse4a")
"""Prefix of the names of CPUs that issue two vdpbf16ps per cycle, and a feature that only they
have, for hypervisors that report another name. Intel's CPUs issue one every second cycle, which is
slower than fp32 (docs/adr/0037-loops-as-one-matmul.md)."""


@dataclass(frozen=True, slots=True)
class TargetCpu:
    """A CPU as a target of code generation.

    name:        LLVM's CPU name
    arch:        first part of the triple: x86_64, aarch64, arm64, ...
    features:    sorted, comma-separated `+name` / `-name` list for LLVM
    vector_bits: width of the widest vector register that generated code should use
    triple:      of another machine; "" for this one
    """

    name: str
    arch: str
    features: str
    vector_bits: int
    triple: str = ""

    @property
    def enabled(self) -> frozenset[str]:
        """Names of the features that this CPU has."""
        return _enabled(self.features)

    @property
    def runs_here(self) -> bool:
        """Whether this machine runs its code."""
        host = host_cpu()
        own_system = not self.triple or operating_system.IS_LINUX
        return own_system and self.arch == host.arch and self.enabled <= host.enabled

    @property
    def has_assembler(self) -> bool:
        """Whether LLVM can parse its assembly here: llvmlite initializes the parser of one
        architecture, without which LLVM aborts."""
        return self.arch == host_cpu().arch

    @property
    def is_x86(self) -> bool:
        """x86 with 64 bits."""
        return self.arch in ("x86_64", "amd64")

    @property
    def is_arm64(self) -> bool:
        """AArch64 under either of its names."""
        return self.arch in ("aarch64", "arm64")

    @property
    def has_fma(self) -> bool:
        """Fused multiply-add of float vectors in hardware."""
        return self.is_arm64 or "fma" in self.enabled

    @property
    def has_avx512(self) -> bool:
        """Registers of 512 bits with the instructions that every server CPU with them has."""
        return self.is_x86 and self.vector_bits == 512

    @property
    def rounds_to_bf16(self) -> bool:
        """Whether it has an instruction that rounds registers of 512 bits to bf16."""
        return self.has_avx512 and "avx512bf16" in self.enabled

    @property
    def dots(self) -> tuple[str, ...]:
        """Types whose dot-product instructions accumulate in 32 bits: "bf16", "int8"; with
        registers of 512 bits, which the generated code uses, and only where that is not slower than
        fp32."""
        features = {"bf16": "avx512bf16", "int8": "avx512vnni"}
        family, feature = _AMD
        if not (self.name.startswith(family) or feature in self.enabled):
            del features["bf16"]
        wide = self.vector_bits == 512
        return tuple(kind for kind, name in features.items() if wide and name in self.enabled)

    @property
    def tile_dots(self) -> tuple[str, ...]:
        """Types of AMX's tile dot products, by the same names."""
        wide = self.vector_bits == 512  # the code that packs operands needs it
        return tuple(k for k in ("bf16", "int8") if wide and f"amx-{k}" in self.enabled)

    @property
    def has_scalable_vectors(self) -> bool:
        """SVE registers, of `vector_bits` bits each."""
        return "sve" in self.enabled

    @property
    def function_attributes(self) -> str:
        """Attributes that every emitted function needs, as LLVM text."""
        return f"nounwind {width_attributes(self.vector_bits, self.has_scalable_vectors)}"


@functools.cache
def _enabled(features: str) -> frozenset[str]:
    return frozenset(item[1:] for item in features.split(",") if item.startswith("+"))


_SCALE_BITS = 128
"""Bits of which the length of SVE's registers is a multiple."""


def width_attributes(bits: int, scalable: bool = False) -> str:
    """LLVM's attributes of a function whose registers have `bits` bits.

    They make such registers both legal and preferred: CPUs such as skylake-avx512 otherwise get
    256-bit code wherever LLVM itself chooses a width. For a CPU with `scalable` vectors they fix
    the length of these.
    """
    if scalable:
        return f"vscale_range({bits // _SCALE_BITS},{bits // _SCALE_BITS})"
    return f'"prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'


@functools.cache
def host_cpu() -> TargetCpu:
    """This machine's CPU. A feature set that LLVM cannot detect (older macOS) is empty.

    AMX is left out where the system does not permit it to this process.
    """
    return _host(detected_host(llvm_version()))


def _host(detected: DetectedHost) -> TargetCpu:
    features = {item[1:]: item[0] for item in detected.features.split(",") if item}
    if features.get("amx-tile") == "+" and not may_use_tiles():
        features.update({name: "-" for name in features if name.startswith("amx-")})
    arch = detected.triple.split("-", 1)[0].lower()
    bits = _vector_bits(arch, {name for name, sign in features.items() if sign == "+"})
    text = ",".join(f"{sign}{name}" for name, sign in sorted(features.items()))
    return TargetCpu(detected.cpu, arch, text, bits)


_X86_64_V2 = "+cx16,+popcnt,+sahf,+sse3,+sse4.1,+sse4.2,+ssse3"
_X86_64_V3 = "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+popcnt"
_X86_64_V4 = f"{_X86_64_V3},+avx512bw,+avx512cd,+avx512dq,+avx512f,+avx512vl"
_AMX = f"{_X86_64_V4},+amx-bf16,+amx-int8,+amx-tile,+avx512bf16,+avx512vnni"
_LINUX = "{}-unknown-linux-gnu"
_ARM = "aarch64", _LINUX.format("aarch64")
_X86 = "x86_64", _LINUX.format("x86_64")

_NAMED_CPUS = {
    "aarch64": TargetCpu("generic", _ARM[0], "+neon", 128, _ARM[1]),
    **{
        f"aarch64-sve{bits}": TargetCpu("generic", _ARM[0], "+neon,+sve", bits, _ARM[1])
        for bits in (128, 256, 512)
    },
    "x86-64": TargetCpu("x86-64", _X86[0], "", 128, _X86[1]),
    "x86-64-v2": TargetCpu("x86-64-v2", _X86[0], _X86_64_V2, 128, _X86[1]),
    "x86-64-v3": TargetCpu("x86-64-v3", _X86[0], _X86_64_V3, 256, _X86[1]),
    "x86-64-v4": TargetCpu("x86-64-v4", _X86[0], _X86_64_V4, 512, _X86[1]),
    "x86-64-v4-amx": TargetCpu("x86-64-v4", _X86[0], _AMX, 512, _X86[1]),
}
"""Linux CPUs that any machine can target: the least of each kind (System V ABI,
AMD64 supplement, 3.1.1: microarchitecture levels). SVE code serves registers of one length, and
"amx" adds the instructions for tiles, and for dot products of bf16 and int8, to a level."""

CPU_NAMES = tuple(_NAMED_CPUS)


def cpu_named(name: str) -> TargetCpu | None:
    """One of CPU_NAMES, or this machine's: "" or its own name; None for any other."""
    host = host_cpu()
    return host if name in ("", host.name) else _NAMED_CPUS.get(name)


def _vector_bits(arch: str, enabled: set[str]) -> int:
    if arch not in ("x86_64", "amd64"):
        return 128  # NEON; LLVM does not report the length of SVE's registers
    # The AVX-512 subsets that general code needs; every server CPU with AVX-512 has them.
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= enabled:
        return 512
    return 256 if "avx2" in enabled else 128


@functools.cache
def host_target(effort: int = 2) -> TargetSpec:
    """The target that runs in this process."""
    host = host_cpu()
    triple = detected_host(llvm_version()).triple
    if operating_system.IS_WINDOWS:
        triple += "-elf"  # the object format that LLVM's in-memory linker loads best on Windows
    return TargetSpec(triple, host.name, host.features, effort)


def cpu_target(cpu: TargetCpu) -> TargetSpec:
    """The target by which LLVM generates code for a CPU."""
    if not cpu.triple:
        return host_target()
    return TargetSpec(cpu.triple, cpu.name, cpu.features)


def llvm_version() -> str:
    """The version of llvmlite, which contains LLVM; importlib.metadata would take 2 ms."""
    return llvmlite.__version__
