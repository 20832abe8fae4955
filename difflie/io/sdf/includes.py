"""Files that an SDF file includes: local ones, found beside it, and read once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ...system import ModelError
from ...system.validation import format_value
from ..files import existing, present
from ..robot_elements import Element, root_element

# No robot has more models; files that include each other twice over would fill the memory.
_MOST = 1000
_OLDEST = [1, 5]


@dataclass
class Files:
    """The <sdf> elements of the files that were read, by path."""

    roots: dict[Path, Element] = field(default_factory=dict)
    included: int = 0

    def root(self, path: Path) -> Element:
        """The <sdf> element of a file."""
        if path not in self.roots:
            data = existing(path, "SDF").read_bytes()
            if not data.strip():
                raise ModelError(f"{path}:1: the file is empty; an SDF has an <sdf> element")
            root = root_element(data, path)
            if root.tag != "sdf":
                raise ModelError(
                    f"{root.source}: the root element is {root.label}; what is read is SDF, whose "
                    "root element is <sdf>"
                )
            if not _OLDEST <= _numbers(root.needed("version")) < [2]:
                raise ModelError(
                    f"{root.source}: version {root.attributes['version']} is not read, but 1.5 and "
                    "later ones of 1; convert it: gz sdf --print FILE > new.sdf"
                )
            self.roots[path] = root
        return self.roots[path]

    def model(self, include: Element, above: tuple[Path, ...]) -> tuple[Element, Path]:
        """The model that an <include> names, and its file; above: the files that include it."""
        self.included += 1
        path = _found(include)
        if path in above or self.included > _MOST:
            why = "includes itself" if path in above else f"has more than {_MOST} includes"
            raise ModelError(f"{include.source}: the file {path.name} {why}; take it out")
        models = self.root(path).all("model")
        if len(models) != 1:
            raise ModelError(
                f"{include.source}: the file {path.name} has {len(models)} models; it must have "
                "one: take the <include> out, or name another file"
            )
        return models[0], path


def _found(include: Element) -> Path:
    """The path of the file that an <include> names."""
    uri = include.leaf("uri")
    place = "" if uri is None else uri.words()
    if uri is None or not place:
        raise ModelError(f"{include.source}: the element <uri> is missing; add <uri>...</uri>")
    scheme, there, rest = place.rpartition("://")
    folder = include.path.absolute().parent
    if there and scheme not in ("model", "file", "package"):
        raise ModelError(
            f"{uri.source}: {format_value(place)} is not fetched; put the model beside this file "
            "and name it by model://NAME"
        )
    folders = [folder] if scheme in ("", "file") else [folder, *folder.parents]
    found = next(filter(present, (above / rest for above in folders)), None)
    if found is None:
        raise ModelError(
            f"{uri.source}: {format_value(place)} is not there; put it beside this file, or in a "
            "folder above it for model://"
        )
    return (_of_folder(found, uri) if found.is_dir() else found).resolve()


def _of_folder(folder: Path, uri: Element) -> Path:
    """The file of a model's folder: of the newest version in its model.config, else model.sdf."""
    config = folder / "model.config"
    names = ["model.sdf"]
    if config.is_file():
        listed = root_element(config.read_bytes(), config).leaves("sdf")
        newest = sorted(listed, key=lambda e: _numbers(e.attributes.get("version", "")))
        names = [e.words() for e in reversed(newest)] + names
    found = next((folder / name for name in names if (folder / name).is_file()), None)
    if found is None:
        raise ModelError(
            f"{uri.source}: the folder {folder} has no {' or '.join(names)}; add one of them"
        )
    return found


def _numbers(version: str) -> list[int]:
    """The numbers of a version, of which 1.11 is newer than 1.9; [0] for what is none."""
    parts = version.split(".")
    return [int(n) for n in parts] if all(n.isdecimal() for n in parts) else [0]
