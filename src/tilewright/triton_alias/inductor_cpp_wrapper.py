"""Inductor's C++ around kernels, for Triton's kernels on a CPU.

AOTInductor and `cpp_wrapper` write C++ that launches kernels. For CPUs, PyTorch 2.13 does so only
for users' kernels and only in programs of AOTInductor: a kernel that Inductor generates has no
grid, and other programs have no variable for the loaded kernel. Its hook for other back ends
(`register_backend_for_device`) accepts the classes below instead, which have both.

The C++ names the libraries of its kernels. Without a GPU, keys of Inductor's caches omit the
version of the kernel compiler, so programs of an older version would be reused. They include the
identity of a graph pass that a back end may register: ours does nothing.

Needs torch.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

from tilewright.compiler import package_version

_common: Any = importlib.import_module("torch._inductor.codegen.common")
_config: Any = importlib.import_module("torch._inductor.config")
_heuristics: Any = importlib.import_module("torch._inductor.runtime.triton_heuristics")
_utils: Any = importlib.import_module("torch._inductor.codegen.cpp_utils")
_virtualized: Any = importlib.import_module("torch._inductor.virtualized")
_wrapper: Any = importlib.import_module("torch._inductor.codegen.cpp_wrapper_cpu")
_passes: Any = importlib.import_module("torch._inductor.custom_graph_pass")
_cache: Any = importlib.import_module("torch._inductor.codecache").CpuTritonKernelCache

_Call: Any = _wrapper.DeferredCpuTritonCallWrapper
_Wrapper: Any = _wrapper.CppWrapperCpu

_GRID = ("grid_0", "grid_1", "grid_2")

_NUMBERS = {
    **dict.fromkeys(("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"), "int64_t"),
    "i1": "bool", "u1": "bool", "fp32": "float", "fp64": "double",
}  # fmt: skip
"""C++ types in which a launcher takes numbers, by their types in signatures."""


class KernelCall(_Call):
    """The C++ function `call_<kernel>(arguments)`, which loads the kernel once and launches it."""

    def _resolve_arg_names(self) -> tuple[list[str], list[str], list[str]]:
        """Names of the arguments of the function, of those that the kernel takes, and of grid
        values."""
        wrapper, kernel, grid = _Call._resolve_arg_names(self)
        if "declared_constexpr_names" in self.inductor_meta:
            return wrapper, kernel, grid
        # a generated kernel: its tuned constants come last, and are not passed
        names = [*_cache.get(self.kernel_name)["signature"]]
        return [*names[: len(self.arg_types) - len(grid)], *grid], kernel, grid

    def _get_cpp_param_type(self, name: str, arg_type: Any) -> str:
        """The declaration of a parameter; a float as the kernel takes it."""
        if arg_type is float:
            return f"{_NUMBERS[_cache.get(self.kernel_name)['signature'][name]]} {name}"
        return _Call._get_cpp_param_type(self, name, arg_type)

    def _generate_load_kernel(self, prefix: Any, *files: str) -> None:
        if not _virtualized.V.graph.aot_mode:  # there, a member of the program's class
            prefix.splice(
                f"""
                static struct {{
                    void* {self.kernel_name}_kernel_fn;
                    torch::aot_inductor::CpuTritonLauncherFn {self.kernel_name}_launcher_fn;
                }} kernels_;
                """
            )
        _Call._generate_load_kernel(self, prefix, *files)

    def _generate_launch(
        self, prefix: Any, kernel_arg_names: Any, grid_arg_names: Any, signature: Any
    ) -> None:
        config = _tuned[self.kernel_name]
        grid = _heuristics.GridExpr.from_meta(self.inductor_meta, config, mode="cpp")
        prefix.writelines(grid.prefix)
        extents = (grid.x_grid, grid.y_grid, grid.z_grid)
        for name, extent in zip(_GRID, extents, strict=True):
            prefix.writeline(f"uint32_t {name} = {extent};")
        _Call._generate_launch(self, prefix, kernel_arg_names, _GRID, self._read(prefix, signature))

    def _read(self, prefix: Any, signature: dict[str, str]) -> dict[str, str]:
        """Read the numbers that are passed as tensors without dimensions; return the new
        signature."""
        names, _, _ = self._resolve_arg_names()
        given = dict(zip(names, self.arg_types, strict=True))
        passed: dict[str, str] = {}
        for name, kind in signature.items():
            dtype = given.get(name)
            is_number = dtype in _utils.DTYPE_TO_CPP and kind in _NUMBERS
            passed[f"{name}_number" if is_number else name] = kind
            if is_number:
                memory = f"static_cast<const {_utils.DTYPE_TO_CPP[dtype]}*>({name}.data_ptr())"
                prefix.writeline(f"{_NUMBERS[kind]} {name}_number = *{memory};")
        return passed


class CppWrapper(_Wrapper):
    """The C++ around the kernels of a graph."""

    def __init__(self) -> None:
        # The kernels must be compiled when the C++ is written. Inductor does so by default only
        # for AOTInductor; the creator of this object restores what is set here.
        if _config.cpu_backend == "triton":
            _config.triton.autotune_at_compile_time = True
        _Wrapper.__init__(self)

    @staticmethod
    def create(*_subgraph: Any, **_named: Any) -> CppWrapper:
        """As of the class above: of the graph or of a part of it."""
        return CppWrapper()

    def _generate_kernel_call_helper(self, kernel_name: str, *args: Any, **named: Any) -> None:
        _Wrapper._generate_kernel_call_helper(self, kernel_name, *args, **named)
        calls = self._cpu_triton_call_wrappers
        call = calls.get(f"call_{kernel_name}")
        if call is not None and not isinstance(call, KernelCall):
            fields = {f.name: getattr(call, f.name) for f in dataclasses.fields(call)}
            calls[call.wrapper_name] = KernelCall(**fields)

    def make_zero_buffer(self, name: str) -> str:
        """The statement of C++ that clears a workspace."""
        return f"AOTI_TORCH_ERROR_CODE_CHECK(aoti_torch_zero_({name}.get()));"

    def generate_and_run_autotune_block(self) -> None:
        """Compile and tune the kernels, by a program that lacks a name if they have a workspace,
        and store the choices."""
        self.kernel_autotune_defs.splice(
            "from torch._C._dynamo.guards import _empty_strided_cpu as empty_strided_cpu"
        )
        self.kernel_autotune_calls.splice(
            f"import {__name__} as wrapper; wrapper.record_configs(globals())"
        )
        _Wrapper.generate_and_run_autotune_block(self)


_tuned: dict[str, Any] = {}
"""The configuration of each kernel of the graph that was tuned last."""


def record_configs(names: dict[str, Any]) -> None:
    """Record the configurations of the kernels among the names of a program that tuned them."""
    for value in names.values():
        if isinstance(value, _heuristics.CachingAutotuner):
            _tuned[value.inductor_meta["kernel_name"]] = value.launchers[0].config


class CompilerVersion(_passes.CustomGraphModulePass):
    """Changes no graph; its identity changes with Tilewright."""

    def __call__(self, gm: Any) -> None:
        """Nothing."""

    def uuid(self) -> str:
        """A part of the keys of Inductor's caches of graphs."""
        return package_version()


def register() -> None:
    """Make Inductor write C++ for CPUs by `CppWrapper`."""
    _common.init_backend_registration()
    cpu = _common.device_codegens["cpu"]
    _common.register_backend_for_device(
        "cpu",
        cpu.scheduling,
        cpu.wrapper_codegen,
        CppWrapper,
        cpu.fx_wrapper_codegen,
        _common.custom_backend_passes.get("cpu") or CompilerVersion(),
    )
