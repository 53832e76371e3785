"""What code is generated for: this machine's CPU as data, and LLVM's target machines.

Importing this module imports llvmlite (30 ms); backends are loaded at the first compile, so
`import tilewright` does not pay for it.
"""

import functools
import os
from dataclasses import dataclass

import llvmlite
from llvmlite import binding

from tilewright.llvm.llvm_lock import LLVM_LOCK
from tilewright.llvm.tile_permission import may_use_tiles

__all__ = [
    "HostCpu",
    "TargetSpec",
    "data_layout",
    "host_cpu",
    "host_target",
    "llvm_version",
    "target_machine",
]


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """For which machine LLVM generates code: hashable, part of a cache key.

    triple:   LLVM's target triple, such as x86_64-unknown-linux-gnu or nvptx64-nvidia-cuda
    cpu:      LLVM's CPU name, such as znver5 or sm_90a
    features: comma-separated `+name` / `-name` list
    effort:   0-3, how hard the code generator tries (2: LLVM's default)
    """

    triple: str
    cpu: str
    features: str = ""
    effort: int = 2


_SLOW_BF16_DOTS = ("sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d")
"""One core starts a vdpbf16ps each second cycle: 88 billion operations a second on Emerald Rapids,
where fp32 has 177, and AMX 2,830."""


@dataclass(frozen=True, slots=True)
class HostCpu:
    """The CPU of this machine, as LLVM detects it.

    name:        LLVM's CPU name
    arch:        first part of the triple: x86_64, aarch64, arm64, ...
    features:    sorted, comma-separated `+name` / `-name` list for LLVM
    vector_bits: width of the widest vector register that generated code should use
    """

    name: str
    arch: str
    features: str
    vector_bits: int

    @property
    def enabled(self) -> frozenset[str]:
        """Names of the features that this CPU has."""
        return frozenset(item[1:] for item in self.features.split(",") if item.startswith("+"))

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
    def dots(self) -> tuple[str, ...]:
        """Narrow numbers whose products it adds up in 32 bits: "bf16", "int8"; by registers of 512
        bits, the only ones that there is code for, and not where it does so slower than in fp32."""
        features = {"bf16": "avx512bf16", "int8": "avx512vnni"}
        if self.name in _SLOW_BF16_DOTS:
            del features["bf16"]
        wide = self.vector_bits == 512
        return tuple(kind for kind, name in features.items() if wide and name in self.enabled)

    @property
    def tile_dots(self) -> tuple[str, ...]:
        """Narrow numbers that AMX multiplies in tiles, in the same terms."""
        wide = self.vector_bits == 512  # for the code that packs operands
        return tuple(k for k in ("bf16", "int8") if wide and f"amx-{k}" in self.enabled)

    @property
    def function_attributes(self) -> str:
        """Attributes that every emitted function needs, as LLVM text.

        They make registers of `vector_bits` both legal and preferred: CPUs such as
        skylake-avx512 otherwise get 256-bit code wherever LLVM itself chooses a width.
        """
        bits = self.vector_bits
        return f'nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'


@functools.cache
def host_cpu() -> HostCpu:
    """This machine's CPU. A feature set that LLVM cannot detect (older macOS) is empty.

    AMX is left out where the system does not let this process use it.
    """
    features = binding.get_host_cpu_features()
    if features.get("amx-tile") and not may_use_tiles():
        features.update({name: False for name in features if name.startswith("amx-")})
    arch = binding.get_process_triple().split("-", 1)[0].lower()
    enabled = {name for name, on in features.items() if on}
    bits = _vector_bits(arch, enabled)
    return HostCpu(binding.get_host_cpu_name(), arch, features.flatten(), bits)


def _vector_bits(arch: str, enabled: set[str]) -> int:
    if arch not in ("x86_64", "amd64"):
        return 128  # NEON; SVE code would need scalable vectors
    # The subsets that general code needs; every AVX-512 server CPU since 2017 has them.
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= enabled:
        return 512
    return 256 if "avx2" in enabled else 128


@functools.cache
def host_target(effort: int = 2) -> TargetSpec:
    """The target that runs in this process."""
    host = host_cpu()
    triple = binding.get_process_triple()
    if os.name == "nt":
        triple += "-elf"  # the object format that LLVM's in-memory linker loads best on Windows
    return TargetSpec(triple, host.name, host.features, effort)


@functools.cache
def _register_targets() -> None:
    """All of them: 1.3 ms, where the native one alone takes 0.9.

    Addresses of shared memory on NVIDIA's chips have 32 bits; LLVM's default is 64.
    """
    with LLVM_LOCK:
        binding.set_option("tilewright", "--nvptx-short-ptr")
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
        binding.initialize_native_asmparser()


@functools.cache
def target_machine(spec: TargetSpec) -> binding.TargetMachine:
    """LLVM's code generator for `spec`; one per process.

    Code is position independent, with the small code model: the linkers of `object_loader` place
    all sections of an object close together and reach other libraries through stubs.
    """
    _register_targets()
    target = binding.Target.from_triple(spec.triple)
    on_windows = spec.triple.endswith("-elf")
    return target.create_target_machine(
        cpu=spec.cpu,
        features=spec.features,
        opt=spec.effort,
        reloc="default" if on_windows else "pic",
        codemodel="large" if on_windows else "small",
    )


@functools.cache
def data_layout(spec: TargetSpec) -> str:
    """LLVM's description of sizes and alignments on `spec`."""
    return str(target_machine(spec).target_data)


def llvm_version() -> str:
    """The version of llvmlite, which brings LLVM; importlib.metadata would take 2 ms."""
    return llvmlite.__version__
