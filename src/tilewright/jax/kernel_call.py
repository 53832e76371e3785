"""`call`: a kernel as a function of JAX arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from tilewright.jax.direct_launch import ALIGNED, DirectLaunch
from tilewright.jax.ffi_targets import PLAN, registered
from tilewright.jax.launch_plan import ArrayType, LaunchPlan
from tilewright.runtime import JITFunction, MockTensor
from tilewright.support import errors, grid_for, import_late, package_late, user_boundary


def call(kernel: Any, grid: object, out_shape: Any, /, *arguments: Any, **keywords: Any) -> Any:
    """Launch a kernel on JAX arrays, also inside `jit`, `vmap` and on several devices.

    kernel: a `jit` function, autotuned or with heuristics too; grid: as in a launch; out_shape: a
    `jax.ShapeDtypeStruct`, or anything with shape and dtype; or a sequence of these, for the
    parameters without argument, in order; or a dictionary by name; arguments, keywords: as in a
    launch, except that arrays are JAX's and numbers are Python's.

    Returns new arrays: one, a tuple or a dictionary, as `out_shape` is. A parameter that is in a
    dictionary `out_shape` and also has an argument is updated: the result starts as a copy of the
    argument, unless `jit` may reuse its memory. Other arguments must not be stored to.

    Errors: those of launches; MissingArgument for a parameter without argument and without
    `out_shape`; ReadOnlyArray for a kernel that stores to an argument that is not updated.
    """
    with user_boundary:
        plan, arrays = _plan(kernel, grid, out_shape, arguments, keywords)
        _check(plan)
        if not plan.outputs:
            raise errors.InvalidOption("out_shape", "at least one shape", out_shape)
        results = _ffi_call(plan)(*arrays, **{PLAN: plan.registered()})
    if isinstance(out_shape, Mapping):
        names = plan.parameters[len(plan.inputs) :]
        return dict(zip(names, results, strict=True))
    return tuple(results) if isinstance(out_shape, Sequence) else results[0]


def _plan(
    kernel: Any, grid: object, out_shape: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[LaunchPlan, list[Any]]:
    numpy: Any = package_late("jax.numpy", "pip install jax")
    names = cast("Sequence[str]", kernel.arg_names)
    if len(arguments) > len(names):
        raise errors.ArgumentCount(kernel.__name__, len(names), len(arguments))
    given = {**dict(zip(names, arguments, strict=False)), **keywords}
    outputs = _outputs(kernel, out_shape, [name for name in names if name not in given])
    arrays = {name: value for name, value in given.items() if _is_array(value)}
    values = {name: value for name, value in given.items() if name not in arrays}
    inputs = [_type(array) for array in arrays.values()]
    plan = LaunchPlan(
        kernel, grid, inputs, [*outputs.values()], (*arrays, *outputs), frozenset(outputs), values
    )
    return plan, [numpy.asarray(array) for array in arrays.values()]


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _type(array: Any) -> ArrayType:
    numpy: Any = import_late("numpy")
    return ArrayType(tuple(map(int, array.shape)), numpy.dtype(array.dtype))


def _outputs(kernel: Any, out_shape: Any, free: Sequence[str]) -> dict[str, ArrayType]:
    """The outputs by parameter. free: parameters without an argument"""
    if isinstance(out_shape, Mapping):
        shapes = cast("Mapping[str, Any]", out_shape)
        for name in shapes:
            if name not in kernel.arg_names:
                raise errors.UnknownArgument(kernel.__name__, name, kernel.arg_names)
        return {name: _type(shape) for name, shape in shapes.items()}
    several = cast("Sequence[Any]", out_shape if isinstance(out_shape, Sequence) else [out_shape])
    if len(several) > len(free):
        expected = f"at most {len(free)} shapes, for {errors.listed(free)}"
        raise errors.InvalidOption("out_shape", expected, len(several))
    return {name: _type(shape) for name, shape in zip(free, several, strict=False)}


def _check(plan: LaunchPlan) -> None:
    """Compile for the default device, to report errors where the program is traced, and to launch
    that variant directly."""
    kernel = plan.kernel
    if not isinstance(kernel, JITFunction) or kernel.interpreted:
        return  # the configuration of others is not known before a launch
    types = dict(zip(plan.parameters, (*plan.inputs, *plan.outputs), strict=True))
    stand_ins = {name: MockTensor(type_.dtype, type_.shape) for name, type_ in types.items()}
    compiled = kernel.warmup(grid=plan.grid, **stand_ins, **plan.values)
    if compiled is None:
        return
    run_time = compiled.metadata.names
    for position in compiled.stored:
        name = run_time[position]
        if name in types and name not in plan.written:
            raise errors.ReadOnlyArray(name, kernel.__name__, _UPDATE.format(name=name))
    grid = grid_for(plan.grid, kernel.bind(**stand_ins, **plan.values).named)
    # of equal names, the output, which is the last, has the buffer
    places = {name: place for place, name in enumerate(plan.parameters)}
    plan.direct = DirectLaunch.of(kernel, compiled, grid, places, plan.values)


_UPDATE = "JAX's arrays are immutable: give the result's shape as out_shape={{'{name}': ...}}"


def _ffi_call(plan: LaunchPlan) -> Any:
    jax: Any = import_late("jax")
    names = plan.parameters[: len(plan.inputs)]
    aliases = {
        names.index(name): place
        for place, name in enumerate(plan.parameters[len(plan.inputs) :])
        if name in names
    }
    # one call launches for each element, where all elements are as aligned as the array
    types = (*plan.inputs, *plan.outputs)
    at_once = all(type_.bytes % ALIGNED == 0 for type_ in types)
    shared = "broadcast_all" if aliases else "expand_dims"
    return jax.ffi.ffi_call(
        registered(),
        [jax.ShapeDtypeStruct(type_.shape, type_.dtype) for type_ in plan.outputs],
        vmap_method=shared if at_once else "sequential",
        input_output_aliases=aliases,
    )
