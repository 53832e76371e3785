"""The catalogue of mistakes: one class each, with its code, its message and what to try.

    TW1xx  in a kernel, found while it is compiled     (`CompilationError`)
    TW2xx  in a launch or a setting                    (`LaunchError`)
    TW3xx  a backend or tool cannot do what is asked   (`BackendError`)
    TW4xx  found while a kernel runs                   (`KernelRunError`)
    TW5xx  autotuning                                  (`AutotunerError`)
    TW9xx  a bug in the compiler                       (`InternalCompilerError`)

Raise with the mistake's fields, and the place if it is known; a caller that knows the place better
adds it by `with_loc`::

    raise errors.ShapeMismatch("add", (128,), (64,), loc=loc)

An error that means what a builtin exception means derives from it too: `except TypeError` works.
"""

from .base import (
    TilewrightError,
    TilewrightWarning,
    did_you_mean,
    listed,
)
from .host import (
    AutotunerError,
    BackendError,
    BackendUnavailable,
    BadGrid,
    BadSetting,
    ChangedGlobal,
    DeviceAssertionFailure,
    DeviceMismatch,
    InternalCompilerError,
    InterpreterError,
    InvalidOption,
    KernelRunError,
    LaunchError,
    LoweringMissing,
    OutOfBounds,
    OutOfResources,
    PTXASError,
    ReadOnlyArray,
    RefusedKeyword,
    ToolMissing,
    UnknownTarget,
    UnsupportedArgument,
)
from .kernel import (
    ArgumentCount,
    BlockTooLarge,
    CompilationError,
    CompileTimeAssertionFailure,
    DTypeMismatch,
    InconsistentBranches,
    InconsistentType,
    InvalidOperation,
    InvalidTileIR,
    InvalidValue,
    LiteralOutOfRange,
    MissingArgument,
    NonPowerOfTwo,
    NotConstexpr,
    PossiblyUndefined,
    RecursionNotSupported,
    RepeatedArgument,
    ShapeMismatch,
    SourceNotAvailable,
    StoreToConst,
    TileIRSyntaxError,
    UndefinedName,
    UnknownArgument,
    UnknownAttribute,
    UnsupportedGlobal,
    UnsupportedLanguageConstruct,
)

__all__ = [
    "ArgumentCount",
    "AutotunerError",
    "BackendError",
    "BackendUnavailable",
    "BadGrid",
    "BadSetting",
    "BlockTooLarge",
    "ChangedGlobal",
    "CompilationError",
    "CompileTimeAssertionFailure",
    "DTypeMismatch",
    "DeviceAssertionFailure",
    "DeviceMismatch",
    "InconsistentBranches",
    "InconsistentType",
    "InternalCompilerError",
    "InterpreterError",
    "InvalidOperation",
    "InvalidOption",
    "InvalidTileIR",
    "InvalidValue",
    "KernelRunError",
    "LaunchError",
    "LiteralOutOfRange",
    "LoweringMissing",
    "MissingArgument",
    "NonPowerOfTwo",
    "NotConstexpr",
    "OutOfBounds",
    "OutOfResources",
    "PTXASError",
    "PossiblyUndefined",
    "ReadOnlyArray",
    "RefusedKeyword",
    "RecursionNotSupported",
    "RepeatedArgument",
    "ShapeMismatch",
    "SourceNotAvailable",
    "StoreToConst",
    "TileIRSyntaxError",
    "TilewrightError",
    "TilewrightWarning",
    "ToolMissing",
    "UndefinedName",
    "UnknownArgument",
    "UnknownAttribute",
    "UnknownTarget",
    "UnsupportedArgument",
    "UnsupportedGlobal",
    "UnsupportedLanguageConstruct",
    "did_you_mean",
    "listed",
]
