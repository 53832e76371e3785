"""Sorts, scans, histograms and gathers for `gpu/language_functions.py`; Triton runs them too."""

# ruff: noqa: D103 -- each is what its name says

import tilewright.language as tl
from tilewright import jit


@jit
def sort_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.sort(tl.load(x_ptr + at)))


@jit
def cumsum_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), 0))


@jit
def then(a, b, c, d):
    return a * c, c * b + d


@jit
def recurrence_kernel(a_ptr, b_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    pair = (tl.load(a_ptr + at), tl.load(b_ptr + at))
    _, y = tl.associative_scan(pair, 0, then)
    tl.store(out_ptr + at, y)


@jit
def histogram_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr, BINS: tl.constexpr):
    row = tl.program_id(0)
    counts = tl.histogram(tl.load(x_ptr + row * BLOCK + tl.arange(0, BLOCK)), BINS)
    tl.store(out_ptr + row * BINS + tl.arange(0, BINS), counts.to(tl.float32))


@jit
def gather_kernel(x_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.gather(tl.load(x_ptr + at), tl.load(index_ptr + at), 0))


@jit
def rand_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    kept = tl.where(tl.rand(seed, at) > p, x / (1 - p), 0.0)
    tl.store(out_ptr + at, kept, mask=at < n)
