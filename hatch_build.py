"""What is made when a distribution is built: addresses, a README whose links are whole, and pages.

The address of the project stands in pyproject.toml, under [tool.hatch.metadata.hooks.custom].
"""

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

# A picture or a link in Markdown whose target is a file of the project.
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)]+)\)")


class Addresses(MetadataHookInterface):
    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        address, tag = self.config["address"], f"v{metadata['version']}"
        metadata["urls"] = {
            "Homepage": address,
            "Documentation": f"{address}/tree/{tag}/docs",
            "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
            "Issues": f"{address}/issues",
        }

        def whole(link: re.Match[str]) -> str:
            picture, text, target = link.groups()
            return f"{picture}[{text}]({address}/{'raw' if picture else 'blob'}/{tag}/{target})"

        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": LINK.sub(whole, readme)}


class Pages(BuildHookInterface):
    """The pages of docs/ as plain text in the wheel, for `difflie docs`; neither films nor code."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":  # else the package lies in its checkout
            docs = Path(self.root, "docs")
            build_data["force_include"] |= {
                str(page): f"difflie/docs/{page.relative_to(docs).as_posix()}"
                for page in docs.rglob("*.md")
            }
