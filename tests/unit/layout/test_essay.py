"""The examples of docs/internals/layouts.md print what the page says."""

import doctest
from pathlib import Path

ESSAY = Path(__file__).parents[3] / "docs" / "internals" / "layouts.md"


def test_examples_of_the_essay():
    text = ESSAY.read_text(encoding="utf-8").replace("```", "")
    case = doctest.DocTestParser().get_doctest(text, {}, ESSAY.name, str(ESSAY), 0)
    assert len(case.examples) > 30
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(case, out=report.append)
    assert not report, "".join(report)
