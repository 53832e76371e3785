"""A cache that machines share, behind the disk cache of each.

    kernels/<key>              a compiled kernel             (compiler.remote_kernels)
    leases/<key>.<generation>  who compiles that kernel now  (lease_protocol)
    timings/<name>/<writer>    timings of an autotuner       (runtime.tuning.timing_store)

`storage` opens a URL. `signed_objects` adds checksums and signatures; nothing that is read is
unpickled. `remote_tier` limits the time that a remote can cost. The protocol of leases does no
input or output itself, so a simulation runs the same code as a launch.

A process without a remote cache imports nothing of this.
"""

# pyright: reportUnusedImport=false

from .lease_protocol import Lease
from .remote_tier import RemoteTier, Unavailable, shared_secret, shared_tier
from .signed_objects import LARGEST, BadObject, Signer, Unsealed
from .storage import Storage, open_storage, shown_url
