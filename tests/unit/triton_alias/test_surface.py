"""Triton's public names, 3.6 to 3.9: those that kernels use are there, rare ones say why not."""

from __future__ import annotations

import importlib
from collections.abc import Generator
from types import ModuleType

import pytest

from tests.unit.triton_alias.alias_fixture import triton_alias
from tilewright.support import TilewrightWarning, errors

USED = """
triton.language: PropagateNan TRITON_MAX_TENSOR_NUMEL abs add advance arange argmax argmin
    associative_scan assume atomic_add atomic_and atomic_cas atomic_load atomic_max atomic_min
    atomic_or atomic_poll atomic_store atomic_xchg atomic_xor bfloat16 bitonic_merge block_type
    broadcast broadcast_to cast cat cdiv ceil clamp condition const constexpr cos cumprod cumsum
    debug_barrier device_assert device_print div_rn dot dot_scaled dtype erf exp exp2
    expand_dims expect_zero fdiv flip float16 float32 float64 float8e4b15 float8e4b8 float8e4nv
    float8e5 float8e5b16 floor fma full gather histogram inline_asm_elementwise int1 int16 int32
    int64 int8 interleave join load load_tensor_descriptor log log2 make_block_ptr
    make_tensor_descriptor map_elementwise math max max_constancy max_contiguous maximum min
    minimum mul multiple_of num_programs pair_uniform_to_normal permute philox philox_impl
    pointer_type program_id rand rand4x randint randint4x randn randn4x range ravel reduce
    reduce_or reshape rsqrt sigmoid sin slice softmax sort split sqrt sqrt_rn squeeze static_assert
    static_print static_range store store_tensor_descriptor str_to_ty sub sum swizzle2d
    target_info tensor tensor_descriptor to_tensor topk trans tuple tuple_type uint16 uint32
    uint64 uint8 uint_to_uniform_float umulhi unsqueeze view void where xor_sum zeros zeros_like
triton.language.core: _aggregate _unwrap_if_constexpr builtin constexpr dtype extern_elementwise
    get_int_dtype tensor tensor_descriptor_base view
triton.language.tensor: T abs advance argmax argmin associative_scan atomic_add atomic_and
    atomic_cas atomic_load atomic_max atomic_min atomic_or atomic_poll atomic_store atomic_xchg
    atomic_xor broadcast_to cast cdiv ceil cos cumprod cumsum dtype erf exp exp2 expand_dims
    flip floor gather histogram item log log2 logical_and logical_or max min numel permute ravel
    reduce reduce_or reshape rsqrt shape sigmoid sin softmax sort split sqrt sqrt_rn store sum
    to trans type view xor_sum
triton.language.dtype: FP_TYPES OTHER_TYPES SINT_TYPES STANDARD_FP_TYPES UINT_TYPES
    cache_key_part codegen_name exponent_bias fp_mantissa_width get_int_max_value get_int_min_value
    int_signedness is_bf16 is_floating is_fp16 is_fp32 is_fp64 is_fp8 is_int is_int1 is_int16
    is_int32 is_int64 is_int8 is_int_signed is_int_unsigned is_ptr is_uint16 is_uint32 is_uint64
    is_uint8 itemsize kind primitive_bitwidth
triton.language.PropagateNan: ALL NONE
triton.language.math: abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt
    sqrt_rn umulhi
triton.language.extra.libdevice: acos acosh add_rn asin asinh atan atan2 atanh brev byte_perm
    cbrt clz copysign cosh cyl_bessel_i0 cyl_bessel_i1 div_rn div_rz erf erfc erfcx erfinv exp
    exp2 expm1 fast_cosf fast_dividef fast_expf fast_log2f fast_logf fast_sinf fast_tanhf fdim
    ffs finitef float_as_int fma fmod hadd hypot ilogb int2float_rn isfinited isinf isnan j0 j1
    jn ldexp lgamma llrint log log10 log1p log2 logb mul24 mul_rn mulhi nearbyint nextafter
    norm3d norm4d normcdf popc pow remainder rint round rsqrt sad signbit sinh sqrt tan tanh
    tgamma trunc y0 y1 yn
triton.language.standard: _is_power_of_two _log2
triton.language.tensor_descriptor: atomic_add atomic_and atomic_max atomic_min atomic_or
    atomic_xor gather load scatter store
triton.language.extra.cuda: gdc_launch_dependents gdc_wait globaltimer libdevice num_threads
    num_warps smid
triton.language.target_info: cuda_capability_geq current_target is_cuda is_hip is_hip_cdna3
    is_hip_cdna4
triton: AsyncCompileMode CompilationError Config FutureKernel InterpreterError MockTensor
    OutOfResources TensorWrapper TritonError __version__ aggregate autotune cdiv compile
    constexpr_function heuristics jit knobs next_power_of_2 reinterpret runtime set_allocator
    testing
triton.runtime.driver.active: clear_cache get_active_torch_device get_benchmarker
    get_current_device get_current_stream get_current_target get_device_interface
    get_empty_cache_for_benchmark utils
triton.compiler.errors: CompilationError CompileTimeAssertionFailure
    UnsupportedLanguageConstruct
triton.runtime.errors: AutotunerError OutOfResources PTXASError
triton.tools.compile: main
triton.tools.link: main
triton.tools.tensor_descriptor: TensorDescriptor
triton.tools.mxfp: MXFP4Tensor MXScaleTensor
triton.tools.disasm: extract get_sass parseCtrl path_to_cuobjdump
triton.tools.ragged_tma: atomic_add_ragged create_ragged_descriptor load_ragged store_ragged
    to_ragged_indices
triton.profiler: activate deactivate enter_scope exit_scope finalize scope start
triton.profiler.viewer: parse print_tree
triton.testing: Benchmark assert_close do_bench do_bench_cudagraph get_dram_gbps
    get_max_simd_tflops get_max_tensorcore_tflops nvsmi perf_report
triton.compiler: ASTSource CompiledKernel
triton.backends.compiler: GPUTarget
triton.runtime.cache: CacheManager FileCacheManager RedisRemoteCacheBackend RemoteCacheBackend
    RemoteCacheManager get_cache_key get_cache_manager get_dump_manager get_override_manager
    make_so_cache_key triton_key
triton.knobs: amd autotuning build cache compilation language nvidia proton redis runtime
triton.knobs.runtime: add_stages_inspection_hook jit_cache_hook jit_post_compile_hook
    kernel_load_end_hook kernel_load_start_hook kernel_unload_hook launch_enter_hook
    launch_exit_hook
triton.knobs.compilation: listener
triton.knobs.autotuning: listener
triton.runtime.JITFunction: add_pre_run_hook cache_key preload run warmup
triton.runtime.Autotuner: run warmup
"""
"""Of tiers A and B of the surface, by module or object."""

RARE = {
    "triton.language": "_experimental_descriptor_load _experimental_make_tensor_descriptor",
    "triton.language.extra.cuda": "convert_custom_float8_sm70 convert_custom_float8_sm80",
    "triton.language.extra.hip": "memrealtime",
    "triton.testing": "set_gpu_clock",
    "triton.tools": "build_extern",
    "triton.experimental": "gluon",
    "triton._filecheck": "run_parser",
    "triton.backends.amd": "compiler",
    "triton.profiler": "specs",
    "triton.profiler.viewer": "derive_metrics",
}
"""Of tier C: what asks for one of them is told what it belongs to."""


@pytest.fixture(scope="module")
def triton() -> Generator[ModuleType]:
    with triton_alias() as module:
        yield module


def lines() -> list[tuple[str, str]]:
    rows = USED.strip().replace("\n    ", " ").splitlines()
    return [(owner, names) for owner, _, names in (row.partition(": ") for row in rows)]


def object_of(path: str) -> object:
    """The longest beginning that is a module, and the attributes behind it."""
    module, attributes = path, list[str]()
    while True:
        try:
            found: object = importlib.import_module(module)
            break
        except ImportError:
            module, _, attribute = module.rpartition(".")
            attributes.insert(0, attribute)
    for attribute in attributes:
        found = getattr(found, attribute)
    return found


@pytest.mark.parametrize(("owner", "names"), lines(), ids=lambda part: part[:40])
def test_what_kernels_and_programs_use_is_there(triton: ModuleType, owner: str, names: str) -> None:
    found = object_of(owner)
    assert [name for name in names.split() if not hasattr(found, name)] == []


@pytest.mark.parametrize("module", RARE)
def test_what_is_rare_says_what_it_belongs_to(triton: ModuleType, module: str) -> None:
    for name in RARE[module].split():
        with pytest.raises(ImportError) as caught:
            exec(f"from {module} import {name}", {})
        problem = caught.value
        while problem.__cause__ is not None:
            problem = problem.__cause__
        assert isinstance(problem, errors.MissingInTriton)
        assert problem.wanted.startswith(module) and problem.reason


def test_the_viewer_of_profiles_says_that_there_are_none(
    triton: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    import triton.profiler.viewer as viewer  # type: ignore[import-not-found]

    with pytest.warns(TilewrightWarning, match="there is no profile 'matmul.hatchet'"):
        tree, metrics = viewer.parse(["tflop/s", "time/ms"], "matmul.hatchet")
    viewer.print_tree(tree, metrics)
    assert capsys.readouterr().out == "nothing was measured: tflop/s, time/ms\n"
