"""Functions that are called around every launch, for profilers.

tilewright.runtime.launch_hooks.launch_enter.add(lambda metadata: print(metadata.get()["name"]))
"""

from __future__ import annotations

from tilewright.support import HookChain, LaunchMetadata

launch_enter: HookChain[[LaunchMetadata]] = HookChain()
launch_exit: HookChain[[LaunchMetadata]] = HookChain(reversed=True)
