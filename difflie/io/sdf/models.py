"""The models of an SDF file, with those nested in them and included: links, joints and frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...system import ModelError
from ...system.validation import format_value
from ..robot_elements import Element
from .frames import MODEL, Frames, Placed, Scope
from .includes import Files

_RESERVED = "__"


@dataclass(frozen=True)
class Instance:
    """A model where it stands. element: of the model; included: the <include>, if any.

    files: that its file is included from, itself the last.
    """

    element: Element
    files: tuple[Path, ...]
    included: Element | None = None

    @property
    def source(self) -> Element:
        """The element that gives its place: the <include>, else the model."""
        return self.included or self.element

    @property
    def name(self) -> str:
        """Its name, which an <include> may change."""
        own = self.element.needed("name")
        given = None if self.included is None else self.included.words_in("name")
        return given or own

    @property
    def pose(self) -> Element | None:
        """Its <pose>, which an <include> may change."""
        given = None if self.included is None else self.included.leaf("pose")
        own = self.element.leaf("pose")
        if given is None or own is None:
            return given or own
        # That of the model is of no account then, and no motion is lost with it.
        own.waive()
        return given

    @property
    def placement(self) -> str | None:
        """The name of the frame inside it that its pose places; None for its own frame."""
        given = None if self.included is None else self.included.words_in("placement_frame")
        return given or self.element.get("placement_frame") or None

    @property
    def static(self) -> bool:
        """Whether it never moves."""
        own = self.element.flag_in("static")
        return own if self.included is None else self.included.flag_in("static", own)


@dataclass
class Machine:
    """The links, joints and explicit frames of a model, by key, in the order of the files.

    scopes: where the names hold that a link gives.
    """

    still: bool = False
    frames: Frames = field(default_factory=Frames)
    links: dict[str, Element] = field(default_factory=dict)
    joints: dict[str, tuple[Element, Scope]] = field(default_factory=dict)
    explicit: list[str] = field(default_factory=list)
    scopes: dict[str, Scope] = field(default_factory=dict)


def included(include: Element, files: Files, above: tuple[Path, ...]) -> Instance:
    """The model that an <include> names."""
    model, path = files.model(include, above)
    return Instance(model, (*above, path), include)


def machine(instances: Sequence[Instance], files: Files, still: bool = False) -> Machine:
    """All that a model consists of, or several, with their names before those of their parts.

    still: whether they are models that do not move.
    """
    found = Machine(still=still)
    if len(instances) == 1:
        _collect(found, instances[0], Scope(), "", files)
    else:
        for instance in instances:
            _nest(found, instance, Scope(), files)
    return found


def _collect(
    found: Machine,
    instance: Instance,
    outer: Scope,
    prefix: str,
    files: Files,
    merged: bool = False,
) -> None:
    """Adds a model; outer: the scope it stands in; prefix: of its names."""
    model = instance.element
    if instance.static and not found.still:
        raise ModelError(
            f"{instance.source.source}: the model is static, and nothing of it moves; take "
            '<static> out, or fix its base by base="fixed"'
        )
    own = f"{prefix}_merged__{instance.name}__model__" if merged else f"{prefix}{MODEL}"
    scope = Scope(prefix, own)
    name = instance.placement
    placement = None if name is None else (scope, name)
    frame = Placed(instance.source, outer, instance.pose, MODEL, placement=placement)
    found.frames.add(own, frame)
    first = len(found.links)
    for element in model.children:
        if element.tag in ("link", "joint", "frame"):
            _add(found, element, scope)
        elif element.tag == "model":
            model.asked.add("model")
            _nest(found, Instance(element, instance.files), scope, files)
        elif element.tag == "include":
            model.asked.add("include")
            inner = included(element, files, instance.files)
            _nest(found, inner, scope, files, element.get("merge") in ("true", "1"))
    if len(found.links) == first:
        raise ModelError(f'{model.source}: there is no link; add <link name="..."/>')
    canonical = model.get("canonical_link")
    frame.attached = (scope, canonical) if canonical else (Scope(), list(found.links)[first])


def _nest(
    found: Machine, inner: Instance, scope: Scope, files: Files, merged: bool = False
) -> None:
    """Adds a model to another, with names of its own, or merged: among those of the other."""
    name = _checked(inner.name, inner.source)
    prefix = scope.prefix if merged else f"{scope.prefix}{name}::"
    if not merged and f"{scope.prefix}{name}" in found.frames.placed:
        raise ModelError(
            f"{inner.source.source}: there is another link, joint or frame of this name; rename one"
        )
    _collect(found, inner, scope, prefix, files, merged)


def _add(found: Machine, element: Element, scope: Scope) -> None:
    """Adds a link, a joint or a frame."""
    assert element.above is not None
    element.above.asked.add(element.tag)
    name = _checked(element.needed("name"), element)
    key, pose = f"{scope.prefix}{name}", element.leaf("pose")
    if element.tag == "link":
        found.frames.add(key, Placed(element, scope, pose, MODEL))
        found.links[key], found.scopes[key] = element, scope
    elif element.tag == "joint":
        child = element.words_in("child")
        if not child:
            raise ModelError(f"{element.source}: the element <child> is missing; add <child>...")
        found.frames.add(key, Placed(element, scope, pose, child, (scope, child)))
        found.joints[key] = (element, scope)
    else:
        attached = element.get("attached_to") or MODEL
        found.frames.add(key, Placed(element, scope, pose, attached, (scope, attached)))
        found.explicit.append(key)


def _checked(name: str, element: Element) -> str:
    if not name or "::" in name or name == "world" or name.startswith(_RESERVED):
        raise ModelError(
            f"{element.source}: the name {format_value(name)} is reserved; choose one without "
            '"::", not "world", and not beginning with two underscores'
        )
    return name
