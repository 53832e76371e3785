# `just` lists the recipes. Each is one command, so that it can be typed without just as well.

python := env("PYTHON", "python")
export PYTHONPATH := justfile_directory() / "src"

# List the recipes.
default:
    @just --list

# Every gate, in about a minute.
check:
    {{python}} -m pytest -q tests/architecture

# Tidy imports and layout.
format:
    {{python}} -m ruff check --fix .
    {{python}} -m ruff format .

# The guard tier; arguments go to pytest: `just test tests/unit/ir -x`, `just test --all`.
test *arguments:
    {{python}} -m pytest {{arguments}}

# Tests that need an NVIDIA GPU.
test-gpu *arguments:
    {{python}} -m pytest -m gpu {{arguments}}

# Random kernels on several devices: `just fuzz --minutes 60 --processes 8 --devices cpu,emulated`.
fuzz *arguments:
    {{python}} -m tests.fuzz {{arguments}}

# Changed texts of tile IR or Triton-C: `just fuzz-text c --count 50000 --compiled 0.05`.
fuzz-text *arguments:
    {{python}} -m tests.fuzz_text.run {{arguments}}

# Rewrite the expected output of golden tests: `just bless tests/golden/canonicalize`.
bless *paths="tests/golden":
    {{python}} -m pytest --bless {{paths}}

# Write anew what the documents take from the code: settings, ops, the tile IR of the README's kernel, pictures.
docs:
    {{python}} scripts/generate_docs.py
    {{python}} scripts/draw_pictures.py

# Build the documentation site in site/; needs the extra `docs`.
site:
    {{python}} -m sphinx -n -W docs site

# Compile the C sources to the LLVM IR beside them; needs the extra `dev`.
native *arguments:
    {{python}} scripts/compile_native.py {{arguments}}

# Benchmarks of the CPU backend against NumPy and torch.
bench *arguments:
    {{python}} -m benchmarks.cpu {{arguments}}

# What CI does: a new environment, the installed package, the guard tier, gates, a slice, torch.
ci:
    .ci/run
