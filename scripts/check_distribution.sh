#!/usr/bin/env bash
# Build the wheel and the source archive, check their metadata, and run the demo from the wheel in a
# new environment outside of the checkout.
#
#   scripts/check_distribution.sh          # needs `pip install build twine`; writes dist/
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
rm -rf dist
python -m build --outdir dist .
python -m twine check --strict dist/*

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python -m venv "$folder/venv"
wheel=$(realpath dist/*.whl)
cd "$folder"
unset PYTHONPATH
venv/bin/pip install --quiet "$wheel"
venv/bin/tilewright demo
