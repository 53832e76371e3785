from .checked_launch import launch_checked
from .dispatch_entry import Entry, Source
from .interpreted_launch import run_interpreted
from .native_dispatch import Dispatcher, DispatchTable, identities, is_constant

__all__ = [
    "DispatchTable",
    "Dispatcher",
    "Entry",
    "Source",
    "identities",
    "is_constant",
    "launch_checked",
    "run_interpreted",
]
