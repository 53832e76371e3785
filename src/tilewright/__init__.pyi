# The types of what `__init__.py` loads at first use.
#
# pyright: reportOverlappingOverload=false
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, Protocol, Unpack, overload

from tilewright import aot as aot
from tilewright import backends as backends
from tilewright import c as c
from tilewright import compiler as compiler
from tilewright import distributed as distributed
from tilewright import jax as jax
from tilewright import kernels as kernels
from tilewright import language as language
from tilewright import runtime as runtime
from tilewright import testing as testing
from tilewright.backends import GPUTarget as GPUTarget
from tilewright.compiler import ASTSource as ASTSource
from tilewright.compiler import CompiledKernel as CompiledKernel
from tilewright.compiler import IRSource as IRSource
from tilewright.compiler import compile as compile
from tilewright.compiler import compile_many as compile_many
from tilewright.language import *  # noqa: F403
from tilewright.runtime import AsyncCompileMode as AsyncCompileMode
from tilewright.runtime import Autotuner as Autotuner
from tilewright.runtime import Config as Config
from tilewright.runtime import ConstexprFunction as ConstexprFunction
from tilewright.runtime import FutureKernel as FutureKernel
from tilewright.runtime import Heuristics as Heuristics
from tilewright.runtime import JITFunction as JITFunction
from tilewright.runtime import KernelInterface as KernelInterface
from tilewright.runtime import MockTensor as MockTensor
from tilewright.runtime import TensorWrapper as TensorWrapper
from tilewright.runtime import autotune as autotune
from tilewright.runtime import heuristics as heuristics
from tilewright.runtime import reinterpret as reinterpret
from tilewright.runtime import set_allocator as set_allocator
from tilewright.runtime.jit import JitOptions
from tilewright.support import errors as errors
from tilewright.support import settings as settings
from tilewright.support.errors import AutotunerError as AutotunerError
from tilewright.support.errors import CompilationError as CompilationError
from tilewright.support.errors import InterpreterError as InterpreterError
from tilewright.support.errors import OutOfResources as OutOfResources
from tilewright.support.errors import OverlapWarning as OverlapWarning
from tilewright.support.errors import TilewrightError as TilewrightError
from tilewright.support.errors import TilewrightWarning as TilewrightWarning
from tilewright.triton_alias import as_triton as as_triton
from tilewright.triton_alias import knobs as knobs

_P = ParamSpec("_P")
_Compiled = CompiledKernel

# A launch takes the kernel's arguments, and options of the target by keyword. A type checker
# compares the arguments with the signature; with an option it accepts any, since types cannot
# express additional keywords.
class _Launch(Protocol[_P]):
    @overload
    def __call__(self, *args: _P.args, **more: _P.kwargs) -> _Compiled: ...
    @overload
    def __call__(self, *args: Any, num_warps: int, **more: Any) -> _Compiled: ...
    @overload
    def __call__(self, *args: Any, num_stages: int, **more: Any) -> _Compiled: ...
    @overload
    def __call__(self, *args: Any, num_ctas: int, **more: Any) -> _Compiled: ...
    @overload
    def __call__(self, *args: Any, maxnreg: int | None, **more: Any) -> _Compiled: ...
    @overload
    def __call__(self, *args: Any, enable_fp_fusion: bool, **more: Any) -> _Compiled: ...
    @overload
    def __call__(self, *args: Any, launch_pdl: bool, **more: Any) -> _Compiled: ...
    @overload
    def __call__(self, *args: Any, launch_cooperative_grid: bool, **more: Any) -> _Compiled: ...
    @overload
    def __call__(self, *args: Any, debug: bool, **more: Any) -> _Compiled: ...
    @overload
    def __call__(self, *args: Any, sanitize_overflow: bool, **more: Any) -> _Compiled: ...
    @overload
    def __call__(self, *args: Any, extern_libs: Any, **more: Any) -> _Compiled: ...
    @overload
    def __call__(self, *args: Any, default_dot_input_precision: str, **more: Any) -> _Compiled: ...
    @overload
    def __call__(self, *args: Any, bulk_loads: str, **more: Any) -> _Compiled: ...
    @overload
    def __call__(self, *args: Any, persistent: bool | None, **more: Any) -> _Compiled: ...
    @overload
    def __call__(self, *args: Any, ieee_rounding: bool, **more: Any) -> _Compiled: ...
    @overload
    def __call__(self, *args: Any, strict_triton: bool, **more: Any) -> _Compiled: ...
    @overload
    def __call__(self, *args: Any, int64_offsets: bool, **more: Any) -> _Compiled: ...

class _Kernel(JITFunction, Generic[_P]):
    # In a kernel, a call of another one.
    def __call__(self, *args: Any, **keywords: Any) -> Any: ...
    def __getitem__(self, grid: object) -> _Launch[_P]: ...

@overload
def jit(fn: Callable[_P, object]) -> _Kernel[_P]: ...
@overload
def jit(
    fn: None = None, **options: Unpack[JitOptions]
) -> Callable[[Callable[_P, object]], _Kernel[_P]]: ...

TritonError = TilewrightError
constexpr_function = ConstexprFunction

__version__: str
