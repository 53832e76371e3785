# The types of what `__init__.py` loads at first use.
from tilewright import backends as backends
from tilewright import c as c
from tilewright import compiler as compiler
from tilewright import kernels as kernels
from tilewright import language as language
from tilewright import runtime as runtime
from tilewright import testing as testing
from tilewright.backends import GPUTarget as GPUTarget
from tilewright.compiler import ASTSource as ASTSource
from tilewright.compiler import CompiledKernel as CompiledKernel
from tilewright.compiler import IRSource as IRSource
from tilewright.compiler import compile as compile
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
from tilewright.runtime import jit as jit
from tilewright.runtime import reinterpret as reinterpret
from tilewright.runtime import set_allocator as set_allocator
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

TritonError = TilewrightError
constexpr_function = ConstexprFunction

__version__: str
