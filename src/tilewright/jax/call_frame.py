"""The binary interface of XLA's foreign functions, as far as a launch needs it.

Layouts are facts of XLA's `xla/ffi/api/c_api.h`, major version 0. Each structure states its size,
and later versions only add fields at the end.
"""

from __future__ import annotations

import ctypes
from typing import Any, cast

from tilewright.support.data_class import dataclass

_Field = tuple[str, Any]
_HEAD: tuple[_Field, ...] = (("size", ctypes.c_size_t), ("extension", ctypes.c_void_p))
"""The first fields of almost every structure: its size, and a list of extensions."""
_METADATA_EXTENSION = 1
_INTERNAL = 13
"""XLA_FFI_Error_Code_INTERNAL."""


class _Version(ctypes.Structure):
    _fields_ = (*_HEAD, ("major", ctypes.c_int), ("minor", ctypes.c_int))


class _Api(ctypes.Structure):
    """The functions that XLA offers, up to the last one used here."""

    _fields_ = (
        *_HEAD,
        ("version", _Version),
        ("internal", ctypes.c_void_p),
        ("create_error", ctypes.c_void_p),
        ("error_message", ctypes.c_void_p),
        ("destroy_error", ctypes.c_void_p),
        ("register", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    )


class _Buffers(ctypes.Structure):
    """The arguments, or the results."""

    _fields_ = (
        *_HEAD,
        ("count", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("items", ctypes.POINTER(ctypes.c_void_p)),
    )


class _Attributes(ctypes.Structure):
    _fields_ = (
        *_HEAD,
        ("count", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("names", ctypes.POINTER(ctypes.c_void_p)),
        ("items", ctypes.POINTER(ctypes.c_void_p)),
    )


class _Frame(ctypes.Structure):
    _fields_ = (
        *_HEAD,
        ("api", ctypes.POINTER(_Api)),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("arguments", _Buffers),
        ("results", _Buffers),
        ("attributes", _Attributes),
    )


class _Buffer(ctypes.Structure):
    _fields_ = (
        *_HEAD,
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
    )


class _Text(ctypes.Structure):
    _fields_ = (("start", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Extension(ctypes.Structure):
    _fields_ = (("size", ctypes.c_size_t), ("type", ctypes.c_int), ("next", ctypes.c_void_p))


class _Metadata(ctypes.Structure):
    _fields_ = (("size", ctypes.c_size_t), ("version", _Version), ("traits", ctypes.c_uint32))


class _MetadataExtension(ctypes.Structure):
    _fields_ = (("head", _Extension), ("metadata", ctypes.POINTER(_Metadata)))


class _StreamArguments(ctypes.Structure):
    _fields_ = (*_HEAD, ("context", ctypes.c_void_p), ("stream", ctypes.c_void_p))


class _ErrorArguments(ctypes.Structure):
    _fields_ = (*_HEAD, ("message", ctypes.c_char_p), ("code", ctypes.c_int))


Function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
"""A function of XLA or for it: takes the address of its arguments; returns an error or null."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array in the device's memory, contiguous. address: 0 where it has no elements"""

    address: int
    shape: tuple[int, ...]


class CallFrame:
    """One call of a foreign function. address: of XLA's structure"""

    def __init__(self, address: int) -> None:
        self._frame = _Frame.from_address(address)

    def answers_query(self) -> bool:
        """Answer a query for the version of the interface; whether the call was one."""
        if not self._frame.extension:
            return False
        head = _Extension.from_address(self._frame.extension)
        if head.type != _METADATA_EXTENSION:
            return False
        extension = _MetadataExtension.from_address(self._frame.extension)
        answer, own = extension.metadata.contents.version, self._frame.api.contents.version
        answer.major, answer.minor = own.major, own.minor
        return True

    def arguments(self) -> list[Buffer]:
        """The arrays that are passed."""
        return _buffers(self._frame.arguments)

    def results(self) -> list[Buffer]:
        """The arrays to write."""
        return _buffers(self._frame.results)

    def text(self, name: str) -> str:
        """The value of an attribute that is a string."""
        attributes = self._frame.attributes
        for place in range(attributes.count):
            if _text(attributes.names[place]) == name:
                return _text(attributes.items[place])
        raise KeyError(name)

    def stream(self) -> int:
        """The stream of the call, on a GPU."""
        arguments = _StreamArguments(ctypes.sizeof(_StreamArguments), None, self._frame.context, 0)
        problem = Function(self._frame.api.contents.stream)(ctypes.addressof(arguments))
        if problem:
            raise RuntimeError("XLA has no stream for this call")
        return int(arguments.stream or 0)

    def error(self, message: str) -> int:
        """An error, as the handler returns it."""
        text = message.encode()
        arguments = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, text, _INTERNAL)
        return cast(
            "int", Function(self._frame.api.contents.create_error)(ctypes.addressof(arguments))
        )


def _buffers(found: _Buffers) -> list[Buffer]:
    buffers = (_Buffer.from_address(found.items[place]) for place in range(found.count))
    return [Buffer(buffer.data or 0, tuple(buffer.shape[: buffer.rank])) for buffer in buffers]


def _text(address: int) -> str:
    text = _Text.from_address(address)
    return ctypes.string_at(text.start, text.length).decode()
