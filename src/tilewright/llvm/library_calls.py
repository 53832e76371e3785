"""Calls of LLVM through the library of llvmlite, whose C functions are named `LLVMPY_...`.

`llvmlite.binding` wraps 450 of them when it is imported, and imports `llvmlite.ir`, which takes
14 ms of a first launch; 50 are needed. The signatures below equal its own, as a test checks
(tests/unit/llvm/test_library_calls.py); the version of llvmlite is pinned.

Other users of llvmlite in a process share the library, but not the lock: LLVM permits threads that
work in separate contexts, as every module here does.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_size_t, c_void_p
from pathlib import Path
from typing import Any

import llvmlite
from llvmlite.utils import get_library_name

from tilewright.llvm.llvm_lock import LLVM_LOCK
from tilewright.support import operating_system

_OUT = POINTER(c_void_p)  # to a text, which the caller frees
_PASSES = ("SROA", "InstCombine", "SimplifyCFG", "NewGVN")
_ADD = [f"{kind}_Add{name}Pass" for kind in ("module", "function") for name in _PASSES]

# result, then parameters; references to objects are all plain pointers here
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "DisposeString": (None, c_char_p),
    "SetCommandLine": (None, c_char_p, c_char_p),
    # this machine
    "GetHostCPUName": (None, _OUT),
    "GetHostCPUFeatures": (c_int, _OUT),
    "GetProcessTriple": (None, _OUT),
    # targets
    "InitializeAllTargetInfos": (None,),
    "InitializeAllTargets": (None,),
    "InitializeAllTargetMCs": (None,),
    "InitializeAllAsmPrinters": (None,),
    "InitializeNativeAsmParser": (None,),
    "GetTargetFromTriple": (c_void_p, c_char_p, _OUT),
    "CreateTargetMachine": (
        c_void_p, c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_char_p, c_char_p, c_int, c_int,
        c_char_p,
    ),
    "DisposeTargetMachine": (None, c_void_p),
    "GetTargetMachineTriple": (None, c_void_p, _OUT),
    "CreateTargetMachineData": (c_void_p, c_void_p),
    "CopyStringRepOfTargetData": (None, c_void_p, _OUT),
    "DisposeTargetData": (None, c_void_p),
    "TargetMachineEmitToMemory": (c_void_p, c_void_p, c_void_p, c_int, _OUT),
    "GetBufferStart": (c_void_p, c_void_p),
    "GetBufferSize": (c_size_t, c_void_p),
    "DisposeMemoryBuffer": (None, c_void_p),
    # modules
    "ContextCreate": (c_void_p,),
    "ContextDispose": (None, c_void_p),
    "ParseAssembly": (c_void_p, c_void_p, c_char_p, _OUT),
    "VerifyModule": (c_bool, c_void_p, _OUT),
    "SetTarget": (None, c_void_p, c_char_p),
    "SetDataLayout": (None, c_void_p, c_char_p),
    "PrintModuleToString": (None, c_void_p, _OUT),
    "DisposeModule": (None, c_void_p),
    "ModuleFunctionsIter": (c_void_p, c_void_p),
    "FunctionsIterNext": (c_void_p, c_void_p),
    "DisposeFunctionsIter": (None, c_void_p),
    "IsDeclaration": (c_int, c_void_p),
    "FunctionAttributesIter": (c_void_p, c_void_p),
    "AttributeListIterNext": (c_void_p, c_void_p),
    "DisposeAttributeListIter": (None, c_void_p),
    # passes
    "CreatePipelineTuningOptions": (c_void_p,),
    "PTOSetLoopVectorization": (None, c_void_p, c_bool),
    "PTOSetSLPVectorization": (None, c_void_p, c_bool),
    "PTOSetLoopUnrolling": (None, c_void_p, c_bool),
    "CreatePassBuilder": (c_void_p, c_void_p, c_void_p),
    "CreateNewModulePassManager": (c_void_p,),
    "CreateNewFunctionPassManager": (c_void_p,),
    "RunNewModulePassManager": (None, c_void_p, c_void_p, c_void_p),
    "RunNewFunctionPassManager": (None, c_void_p, c_void_p, c_void_p),
    "DisposeNewModulePassManger": (None, c_void_p),
    "DisposeNewFunctionPassManger": (None, c_void_p),
    "module_AddAlwaysInlinerPass": (None, c_void_p),
    **{name: (None, c_void_p) for name in _ADD},
}  # fmt: skip


def library_path() -> Path:
    """The file of llvmlite's library."""
    return Path(llvmlite.__file__ or "").with_name("binding") / get_library_name()


@functools.cache
def _library() -> ctypes.CDLL:
    path = str(library_path())
    if not operating_system.IS_WINDOWS:
        # without the GIL, which ctypes holds, so that other threads continue
        load = ctypes.CDLL(None).dlopen
        load.restype = c_void_p
        load(os.fsencode(path), os.RTLD_NOW)
    return ctypes.CDLL(path)


@functools.cache
def _function(name: str) -> Callable[..., Any]:
    function = getattr(_library(), f"LLVMPY_{name}")
    function.restype, *function.argtypes = SIGNATURES[name]
    return function


def call(name: str, *arguments: object) -> Any:
    """Call the library's function LLVMPY_`name`, without the GIL."""
    with LLVM_LOCK:
        return _function(name)(*arguments)


def optional_text(name: str, *arguments: object) -> tuple[Any, str]:
    """The result of a function whose last parameter receives a text, and that text."""
    text = c_void_p()
    result = call(name, *arguments, byref(text))
    return result, text_at(text.value) if text.value else ""


def filled_text(name: str, *arguments: object) -> str:
    """The text that a function writes."""
    return optional_text(name, *arguments)[1]


def text_at(pointer: int) -> str:
    """The text that a function returned, which is then freed."""
    text = c_char_p(pointer)
    found = (text.value or b"").decode()
    call("DisposeString", text)
    return found


class Reference:
    """An LLVM object; `dispose` names the function that frees it, "" if none does.

    It keeps the objects that it needs alive.
    """

    _dispose = ""  # until there is an object

    def __init__(self, pointer: int | None, dispose: str = "", *needs: object) -> None:
        assert pointer
        self._as_parameter_ = c_void_p(pointer)
        self._dispose = dispose
        self._needs = needs

    # Bound here: at exit this module's globals may have been set to None already.
    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if self._dispose and not is_finalizing():
            call(self._dispose, self)
