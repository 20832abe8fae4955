"""The installed package: its optional dependencies, and how they are installed."""

from __future__ import annotations

import importlib.metadata
import re


def extra(name: str) -> str:
    """How an extra of difflie is installed, for messages: from its sources, or by its packages.

    name: as in pyproject.toml, such as "mjcf".
    """
    packages = _packages(name)
    directly = f", or its packages by pip install {' '.join(map(repr, packages))}"
    return (
        f"install the extra {name!r} by pip install '.[{name}]' in the folder of difflie's sources"
        f"{directly if packages else ''}"
    )


def _packages(name: str) -> list[str]:
    """The requirements of an extra, also by way of others; none where difflie is not installed."""
    try:
        required = importlib.metadata.requires("difflie") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    found: dict[str, None] = {}
    for line in required:
        package, _, marker = line.partition(";")
        if re.search(rf"extra == ['\"]{re.escape(name)}['\"]", marker):
            other = re.fullmatch(r"difflie\[(.+)\]", package.strip())
            found |= dict.fromkeys(_packages(other[1]) if other else [package.strip()])
    return list(found)
