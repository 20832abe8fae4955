"""Bodies fastened to each other."""

from __future__ import annotations

from dataclasses import dataclass

from .joint import Dof
from .series import Series


@dataclass(frozen=True, kw_only=True)
class Fixed(Series):
    """No motion: the body is fixed to its parent; no entries in q and v.

    Arguments as of `Joint`; only name and source have a meaning.
    """

    def dofs(self) -> tuple[Dof, ...]:
        return ()
