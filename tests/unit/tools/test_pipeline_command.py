"""`tilewright pipeline`: what is listed is what runs."""

import json
import re

from tilewright.backends import backend_named
from tilewright.tools.cli import main


def test_every_pass_has_a_reason(capsys):
    assert main(["pipeline", "--target", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    backend = backend_named("cpu")
    assert [line for line in lines if line.startswith("stage ")] == [
        f"stage {stage.extension}" for stage in backend.stages
    ]
    first = backend.stages[0]
    assert first.pipeline is not None
    steps = first.pipeline(backend.target()).steps
    numbered = [line.split(maxsplit=1)[1] for line in lines if line.lstrip()[:1].isdigit()]
    # Options may hold single spaces.
    shown = [re.split(r" {2,}", line, maxsplit=1) for line in numbered]
    assert shown == [[str(step.work), step.does] for step in steps]


def test_the_default_is_this_machine(capsys):
    assert main(["pipeline"]) == 0
    assert "canonicalize" in capsys.readouterr().out


def test_unknown_target(capsys):
    assert main(["pipeline", "--target", "abacus"]) == 1
    assert "no backend serves the target 'abacus'" in capsys.readouterr().err


def test_programs_get_json(capsys):
    assert main(["pipeline", "--json", "--target", "sm_90"]) == 0
    stages = json.loads(capsys.readouterr().out)
    assert [stage["stage"] for stage in stages] == ["ttir", "ttgir", "llir", "ptx", "cubin"]
    assert all(step["pass"] and step["does"] for stage in stages for step in stage["passes"])
    assert sum(len(stage["passes"]) for stage in stages) > 10
