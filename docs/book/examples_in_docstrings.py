"""Docstrings in Markdown: examples are blocks of code, and tags of files are code.

Otherwise `>>>` would be quotations, and <mimic> would be taken for HTML, and vanish.
"""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\n).*)*", re.MULTILINE)
# What is code already: an example, an indented line, a name in backticks; else a tag.
_TAG = re.compile(rf"({EXAMPLE.pattern}|^    .*|`[^`]*`)|</?[A-Za-z][^<>\n]*>", re.MULTILINE)


def with_tags(text: str) -> str:
    """A docstring whose tags are code."""
    return _TAG.sub(lambda found: found[0] if found[1] else f"`{found[0]}`", text)


class ExamplesInDocstrings(griffe.Extension):
    """Fences every example of every docstring, and makes code of tags."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            text = with_tags(obj.docstring.value)
            obj.docstring.value = EXAMPLE.sub(lambda m: f"```pycon\n{m[0]}\n```", text)
