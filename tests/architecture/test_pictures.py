"""Pictures of the book: what the scripts draw today, readable on light and dark pages, and used."""

import itertools
import re
import statistics
import xml.etree.ElementTree as ET
from collections import Counter

import pytest

from scripts import draw_chart, draw_pictures
from scripts.svg_picture import HUES, Picture, colours
from tests.architecture.gates import ROOT

NAMES = list(draw_pictures.PICTURES)
_SVG = "{http://www.w3.org/2000/svg}"


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", NAMES)
def test_the_checked_in_picture_is_what_the_script_draws(name: str):
    path = draw_pictures.FOLDER / f"{name}.svg"
    assert path.read_text("utf-8") == draw_pictures.PICTURES[name]().svg()


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_has_title_and_description_and_loads_nothing(name: str):
    text = draw_pictures.PICTURES[name]().svg()
    root = ET.fromstring(text)
    assert len(root.findtext(f"{_SVG}title") or "") > 20
    assert len(root.findtext(f"{_SVG}desc") or "") > 40
    assert re.findall(r"https?://", text) == ["http://"]  # the name space of SVG
    assert "prefers-color-scheme:dark" in text


@pytest.mark.parametrize("name", NAMES)
def test_texts_are_inside_of_the_picture(name: str):
    picture = draw_pictures.PICTURES[name]()
    assert [
        t for t in ET.fromstring(picture.svg()).iter(f"{_SVG}text") if outside(t, picture)
    ] == []


def outside(text: ET.Element, picture: Picture) -> bool:
    """Whether a text may reach over an edge, by a width that no font here exceeds."""
    classes = text.get("class", "").split()
    sizes = {"tiny": 9, "small": 11, "head": 15}
    size = next((sizes[c] for c in classes if c in sizes), 13)
    width = len(text.text or "") * size * (0.62 if "code" in classes else 0.6)
    left = float(text.get("x", "0")) - width * (0.5 * ("middle" in classes) + ("end" in classes))
    return not (
        0 <= left
        and left + width <= picture.width
        and 0 < float(text.get("y", "0")) < picture.height
    )


@pytest.mark.parametrize("dark", [False, True])
def test_texts_contrast_with_each_background(dark: bool):
    table = colours(dark=dark)
    backgrounds = ["back", *(f"c{n}" for n in range(HUES))]
    assert [b for b in backgrounds if contrast(table["ink"], table[b]) < 7] == []
    assert contrast(table["soft"], table["back"]) > 4.5
    assert len({table[b] for b in backgrounds}) == len(backgrounds)


def test_every_picture_is_in_a_page():
    pages = "".join(p.read_text("utf-8") for p in (ROOT / "docs").rglob("*.md"))
    used = set(re.findall(r"!\[[^\]]{20,}\]\((?:\.\./)*images/([\w-]+)\.svg\)", pages))
    assert used == set(NAMES)
    kept = {path.stem for path in draw_pictures.FOLDER.glob("*.svg")}
    assert kept == {*NAMES, "speed"}  # by draw_chart.py, for the README


def test_numpy_moves_a_matrix_eight_times_and_the_kernel_twice():
    operations = draw_pictures.numpy_operations()
    assert [(o.name, o.reads, o.writes) for o in operations] == [
        ("maximum", 1, 0), ("subtract", 1, 1), ("exp", 1, 1), ("add", 1, 0), ("divide", 1, 1)
    ]  # fmt: skip
    fused = draw_pictures.fused_operation()
    assert (fused.reads, fused.writes) == (1, 1)


def test_the_grouped_order_visits_each_tile_once():
    orders = {group: draw_pictures.order(group) for group in (1, 4)}
    everything = list(itertools.product(range(draw_pictures.SIDE), repeat=2))
    assert orders[1] == everything
    assert sorted(orders[4]) == everything
    assert [draw_pictures.strips(tiles) for tiles in orders.values()] == [14, 8]


def test_owners_of_a_fragment_are_those_of_the_layout():
    layout = draw_pictures.FRAGMENTS["m16n8k16.b16"].c
    places = draw_pictures.owners(layout)
    assert len(places) == 16 * 8
    assert Counter(p["lane"] for found in places.values() for p in found) == dict.fromkeys(
        range(32), 4
    )
    inverse = layout.invert()
    assert all(
        inverse.apply(dim0=r, dim1=c) == (found[0]["register"], found[0]["lane"])
        for (r, c), found in places.items()
    )


def test_the_chart_shows_the_means_date_and_commit_of_the_results():
    chart = draw_chart.CHART.read_text("utf-8")
    assert f"<!-- {draw_chart.caption()} -->" in chart
    for group in draw_chart.GROUPS:
        mean = statistics.geometric_mean(draw_chart.ratios(group))
        assert f"<!-- {mean:.2f} -->" in chart, group.label


# ---- that these tests can fail -------------------------------------------------------------------


def test_a_text_that_reaches_over_the_edge_is_found():
    picture = Picture(100, 50, "title", "description")
    picture.text(10, 20, "short")
    picture.text(60, 20, "much too long")
    found = [outside(t, picture) for t in ET.fromstring(picture.svg()).iter(f"{_SVG}text")]
    assert found == [False, True]


def test_a_picture_that_is_not_current_is_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(draw_pictures, "FOLDER", tmp_path)
    monkeypatch.setattr(draw_pictures, "ROOT", tmp_path)
    monkeypatch.setattr(draw_pictures, "PICTURES", {"grid": draw_pictures.grid})
    assert draw_pictures.main(["--check"]) == 1
    assert "grid.svg differs" in capsys.readouterr().out
    assert draw_pictures.main([]) == draw_pictures.main(["--check"]) == 0
