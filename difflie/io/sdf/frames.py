"""The frames of an SDF model: which frame each is placed in, and which link it is attached to.

Every link, joint, frame and nested model is a frame. Names hold within their model; of a nested
model `arm` they are "arm::NAME" from outside. This follows the proposal "Pose frame semantics" of
SDFormat, as of version 1.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...system import ModelError
from ...system.validation import format_value, nearest
from ..robot_elements import Element
from .poses import inverse, matrix

WORLD = "world"
MODEL = "__model__"


@dataclass(frozen=True)
class Scope:
    """Where names hold: the prefix of all names of a model, and the key of its own frame."""

    prefix: str = ""
    model: str = WORLD


@dataclass
class Placed:
    """A frame. element: where it stands; scope: where the names it gives hold.

    pose: its <pose>; base: the frame it is placed in, unless the pose says another. attached: the
    frame it moves with, None for a link. placement: of a model, the frame inside it that is placed
    in its stead. Both are a name with the scope where it holds.
    """

    element: Element
    scope: Scope
    pose: Element | None
    base: str
    attached: tuple[Scope, str] | None = None
    placement: tuple[Scope, str] | None = None


@dataclass
class Frames:
    """The frames of a file by key, which is the name as the outermost model has it."""

    placed: dict[str, Placed] = field(default_factory=dict)

    def add(self, key: str, frame: Placed) -> None:
        """Adds a frame; raises `ModelError` where there is one of this name."""
        if key in self.placed or f"{key}::{MODEL}" in self.placed or key == WORLD:
            other = self.placed.get(key) or self.placed.get(f"{key}::{MODEL}")
            there = f"line {other.element.line} has" if other else "the world is"
            raise ModelError(
                f"{frame.element.source}: {there} a frame of this name too; rename one of them"
            )
        self.placed[key] = frame

    def key(self, name: str, scope: Scope, element: Element) -> str:
        """The key of a name; element: where it stands, for messages."""
        if name == WORLD:
            return WORLD
        if name in (MODEL, ""):
            return scope.model
        for key in (f"{scope.prefix}{name}", f"{scope.prefix}{name}::{MODEL}"):
            if key in self.placed:
                return key
        own = len(scope.prefix)
        known = [key[own:] for key in self.placed if key.startswith(scope.prefix)]
        raise ModelError(
            f"{element.source}: there is no link, joint, frame or model {format_value(name)}"
            f"{nearest(name, known) or '; add it or name another'}"
        )

    def pose(self, key: str, base: str = WORLD) -> NDArray:
        """The pose (4, 4) of a frame in another one."""
        if base in (chain := list(self._chain(key))):
            return self._along(chain[: chain.index(base)])
        if key in (chain := list(self._chain(base))):
            return inverse(self._along(chain[: chain.index(key)]))
        return inverse(self.pose(base)) @ self.pose(key)

    def link(self, key: str) -> str | None:
        """The key of the link that a frame moves with; None for the world."""
        passed = [key]
        while key != WORLD and (frame := self.placed[key]).attached is not None:
            scope, name = frame.attached
            key = self.key(name, scope, frame.element)
            if key in passed:
                raise self._cycle(passed, key, "attached to each other")
            passed.append(key)
        return None if key == WORLD else key

    def _base(self, key: str) -> str:
        frame = self.placed[key]
        given = None if frame.pose is None else frame.pose.get("relative_to")
        return self.key(given or frame.base, frame.scope, frame.pose or frame.element)

    def _chain(self, key: str) -> Iterator[str]:
        """The frame and those that it stands in, to the world."""
        passed = [key]
        yield key
        while key != WORLD:
            key = self._base(key)
            if key in passed:
                raise self._cycle(passed, key, "placed in each other")
            passed.append(key)
            yield key

    def _along(self, chain: list[str]) -> NDArray:
        """The pose (4, 4) of the first frame of a chain in what the last one stands in."""
        whole = np.eye(4)
        for key in chain:
            frame = self.placed[key]
            own = matrix(frame.pose)
            if frame.placement is not None:
                scope, name = frame.placement
                inner = self.key(name, scope, frame.element)
                if key not in self._chain(inner):
                    raise ModelError(
                        f"{frame.element.source}: its placement frame {format_value(name)} does "
                        "not stand in it; name another"
                    )
                own = own @ inverse(self.pose(inner, key))
            whole = own @ whole
        return whole

    def _cycle(self, passed: list[str], key: str, how: str) -> ModelError:
        loop = [*passed[passed.index(key) :], key]
        return ModelError(
            f"{self.placed[key].element.source}: the frames {' -> '.join(loop)} are {how}; let "
            "one of them stand in the model"
        )
