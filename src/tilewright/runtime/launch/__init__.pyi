from .dispatch_entry import Entry, Source
from .native_dispatch import Dispatcher, DispatchTable, identities, is_constant
from .native_dispatch_structures import CONSTEXPR, LAYOUT

__all__ = [
    "CONSTEXPR",
    "LAYOUT",
    "DispatchTable",
    "Dispatcher",
    "Entry",
    "Source",
    "identities",
    "is_constant",
]
