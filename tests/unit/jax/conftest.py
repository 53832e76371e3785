"""Two devices of the CPU for JAX, which reads these variables when it is imported."""

import os

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")
