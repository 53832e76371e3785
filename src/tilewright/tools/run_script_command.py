"""`tilewright run-script`: run a Python script in which `import triton` imports Tilewright.

tilewright run-script train.py --steps 10
"""

from __future__ import annotations

import argparse

from tilewright.tools.user_script import add_script, check_script, join_after_file, run_script
from tilewright.triton_alias import as_triton

add_arguments = add_script
join_words = join_after_file


def run(chosen: argparse.Namespace) -> int:
    """Run the command."""
    check_script(chosen)
    as_triton()
    return run_script(chosen)
