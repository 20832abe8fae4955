"""Examples of docstrings as blocks of code: in Markdown, `>>>` would be quotations."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\n).*)*", re.MULTILINE)


class ExamplesInDocstrings(griffe.Extension):
    """Fences every example of every docstring."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            text = obj.docstring.value
            obj.docstring.value = EXAMPLE.sub(lambda m: f"```pycon\n{m[0]}\n```", text)
