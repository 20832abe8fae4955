"""What a page of results holds, read by a parser of its own."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(HTMLParser):
    """Its text, tags and sign; fails where a tag is not closed, or closed twice."""

    def __init__(self, path):
        super().__init__()
        self.open, self.texts, self.tags = [], [], []
        self.sign = ""
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)
            if "strong" in self.open:
                self.sign += data.strip()

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def values(self, name):
        """Those of an attribute, in the order of the page."""
        return [attributes[name] for _, attributes in self.tags if name in attributes]
