"""The HTML of the inspector: one file without requests, which a policy forbids as well.

The script and the style are allowed by their hashes; data is JSON in an element that no browser
runs.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Any

__all__ = ["page_text"]

_FOLDER = Path(__file__).parent


def page_text(data: Mapping[str, Any], schedules: Sequence[str], roofline: str) -> str:
    """The whole page. schedules: a figure for each loop; roofline: SVG, or empty"""
    script, style = (_text(f"inspector.{suffix}") for suffix in ("js", "css"))
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"script-src '{_hash(script)}'; style-src '{_hash(style)}'"
    )
    return Template(_text("inspector.html")).substitute(
        policy=escape(policy, quote=True),
        title=escape(str(data["kernel"])),
        style=style,
        script=script,
        # `</script>` and `<!--` in a text must not end the element
        data=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        schedules="".join(schedules),
        roofline=roofline,
    )


def _text(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
