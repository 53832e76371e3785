from .peer_tables import Peers, peers
from .rank_groups import FolderGroup, Group, ThreadGroup, group_of
from .rank_signals import Signals, barrier, signal, wait
from .shared_arrays import zeros

__all__ = [
    "FolderGroup",
    "Group",
    "Peers",
    "Signals",
    "ThreadGroup",
    "barrier",
    "group_of",
    "peers",
    "signal",
    "wait",
    "zeros",
]
