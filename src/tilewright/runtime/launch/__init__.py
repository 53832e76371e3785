"""From a call to a running grid: binding, variants, options, the native path of launches.

`launch_function` and `bound_call` are the first launch, `native_dispatch` every later one. May
import `runtime.arguments`; knows nothing of tuning.
"""
