"""Stands in for the two functions of the CUDA driver that a launch calls: it writes down what it
got, and answers as told."""

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.backends.nvidia.driver.launch_entry import (
    Entry,
    Handlers,
    LaunchLog,
    LaunchShape,
    PageTable,
    make_entry,
)

FIRST_DEVICE_ADDRESS = 1 << 44
FOREIGN_ADDRESS = 1 << 45
FUNCTION = 0xF00D
DEVICE = 3
INVALID_VALUE = 1
MULTIPROCESSORS = 10

_LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)
_ATTRIBUTE = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.POINTER(ctypes.c_int32), ctypes.c_int32, ctypes.c_uint64
)
_CONFIG_BYTES, _ATTRIBUTE_BYTES, _DEVICE_ORDINAL = 56, 72, 9


@dataclass(frozen=True)
class Launched:
    """What the driver got."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    stream: int
    attributes: list[bytes]
    function: int
    slots: list[int]
    maps: list[bytes] = field(default_factory=list[bytes])


class FakeDriver:
    """launch, pointer_attribute: addresses of its cuLaunchKernelEx and cuPointerGetAttribute;
    calls, every: launches so far; queries: how often it was asked about an address."""

    def __init__(self) -> None:
        self._functions = (_LAUNCH(self._launch), _ATTRIBUTE(self._attribute))
        self.launch, self.pointer_attribute = (
            ctypes.cast(function, ctypes.c_void_p).value or 0 for function in self._functions
        )
        self.calls = self.queries = 0
        self._parameters = self._maps = 0
        self._statuses: list[int] = []
        self._status = 0
        self._launched: Launched | None = None
        self.every: list[Launched] = []

    def _launch(self, config: int, function: int | None, params: int, extra: int | None) -> int:
        self.calls += 1
        fields = struct.unpack("<7I4xQQI4x", ctypes.string_at(config, _CONFIG_BYTES))
        *sizes, shared_bytes, stream, list_, count = fields
        self._launched = Launched(
            (sizes[0], sizes[1], sizes[2]),
            (sizes[3], sizes[4], sizes[5]),
            shared_bytes,
            stream,
            [
                ctypes.string_at(list_ + i * _ATTRIBUTE_BYTES, _ATTRIBUTE_BYTES)
                for i in range(count)
            ],
            function or 0,
            [_word(_word(params + 8 * i)) for i in range(self._parameters)],
            [self._map_at(_word(params + 8 * (self._parameters + i))) for i in range(self._maps)],
        )
        self.every.append(self._launched)
        return self._statuses.pop() if self._statuses else self._status

    def _map_at(self, address: int) -> bytes:
        assert address % 64 == 0
        return ctypes.string_at(address, 128)

    def _attribute(self, out: "ctypes._Pointer[ctypes.c_int32]", kind: int, address: int) -> int:
        self.queries += 1
        if kind != _DEVICE_ORDINAL or address < FIRST_DEVICE_ADDRESS:
            return INVALID_VALUE
        out[0] = DEVICE + 1 if address >= FOREIGN_ADDRESS else DEVICE
        return 0

    def expect(self, parameters: int, maps: int = 0) -> None:
        """How many slots to read, and tensor maps behind them."""
        self._parameters, self._maps = parameters, maps

    def answer(self, status: int) -> None:
        """Every launch from now on."""
        self._status = status

    def answer_once(self, status: int) -> None:
        """The next launch only."""
        self._statuses = [status]

    def launched(self) -> Launched:
        """The latest launch."""
        assert self._launched is not None
        return self._launched


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


class Refused(Exception):
    """Raised by the recording handlers."""


@dataclass
class RecordingHandlers:
    """Handlers that write down their calls and raise Refused, or answer as told."""

    converted: dict[int, int] = field(default_factory=dict[int, int])
    allowed: set[int] = field(default_factory=set[int])
    retries: int = 0
    words: list[int] = field(default_factory=list[int])
    unencodable: set[tuple[int, ...]] = field(default_factory=set[tuple[int, ...]])
    seen: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])

    def convert(self, index: int, value: object) -> int:
        self.seen.append(("convert", index, value))
        if index not in self.converted:
            raise Refused(f"argument {index}")
        return self.converted[index]

    def refuse(self, index: int, address: int) -> None:
        self.seen.append(("refuse", index, address))
        if address not in self.allowed:
            raise Refused(f"address {address:#x}")

    def regrid(self, x: object, y: object, z: object) -> None:
        self.seen.append(("regrid", x, y, z))
        raise Refused("grid")

    def failed(self, status: int, attempt: int, x: int, y: int, z: int, stream: int) -> None:
        self.seen.append(("failed", status, attempt, x, y, z, stream))
        if attempt >= self.retries:
            raise Refused(f"status {status}")

    def after(self, x: int, y: int, z: int, stream: int) -> None:
        self.seen.append(("after", x, y, z, stream))

    def encode(self, number: int, address: int) -> bytes:
        words = tuple((ctypes.c_uint64 * self.words[number]).from_address(address))
        self.seen.append(("encode", number, words))
        if words in self.unencodable:
            raise Refused(f"map {number}")
        return encoded(number, words)

    def handlers(self, blocking: bool = False) -> Handlers:
        after = self.after if blocking else None
        return Handlers(self.convert, self.refuse, self.regrid, self.failed, after, self.encode)


def encoded(number: int, words: tuple[int, ...]) -> bytes:
    """What stands for the tensor map of these words."""
    return struct.pack(f"<{1 + len(words)}Q", number, *words).ljust(128, b"m")


def entry_for(
    driver: FakeDriver,
    kinds: list[str],
    recording: RecordingHandlers | None = None,
    shape: LaunchShape | None = None,
    *,
    function: int = FUNCTION,
    blocking: bool = False,
    pages: PageTable | None = None,
    log: LaunchLog | None = None,
    maps: Sequence[Sequence[int]] = (),
) -> Entry:
    """An entry that launches through the fake driver."""
    recording = recording or RecordingHandlers()
    recording.words = [len(slots) for slots in maps]
    shape = shape or LaunchShape(128)
    passed = sum(kind != "constexpr" for kind in kinds) + (3 if shape.resident else 0)
    driver.expect(passed, len(maps))
    return make_entry(
        "kernel",
        kinds,
        shape,
        recording.handlers(blocking),
        function=function,
        device=DEVICE,
        launch=driver.launch,
        pointer_attribute=driver.pointer_attribute,
        pages=pages or PageTable(),
        log=log or LaunchLog(),
        maps=maps,
        multiprocessors=MULTIPROCESSORS,
    )
