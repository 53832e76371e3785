from .peer_tables import Peers, peers
from .rank_agreement import Agreement, agree
from .rank_groups import FolderGroup, Group, ThreadGroup, group_of
from .rank_signals import Signals, barrier, keep_epoch, last_epoch, signal, wait
from .shared_arrays import zeros

__all__ = [
    "Agreement",
    "FolderGroup",
    "Group",
    "Peers",
    "Signals",
    "ThreadGroup",
    "agree",
    "barrier",
    "group_of",
    "keep_epoch",
    "last_epoch",
    "peers",
    "signal",
    "wait",
    "zeros",
]
