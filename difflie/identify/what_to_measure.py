"""Motions that tell numbers which the data at hand tells badly, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .statistics import listed

# The first kind whose words begin a number's last name is its.
_KINDS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("load_friction",),
        "motions to and fro with light and with heavy loads, so that friction is told apart from "
        "its growth with the load",
    ),
    (
        ("damping", "friction", "drag", "breakaway", "stribeck", "slip"),
        "motions to and fro at several constant speeds, slow and fast ones, so that friction is "
        "told apart from damping",
    ),
    (
        ("armature", "inertia", "I_", "second"),
        "motions that speed up and slow down hard, in several postures",
    ),
    (
        ("mass", "com", "moment"),
        "rest and slow motions in postures far apart, with and without a known load: of single "
        "masses motions tell little",
    ),
    (
        ("torque_scale", "kp", "kd", "gain", "constant"),
        "motions with a known load, as all torques scale alike without one",
    ),
    (("torque_bias", "position_bias", "bias"), "rest in several postures far apart"),
    (("delay",), "commands that change fast, logged at a high rate"),
    (("stiffness", "spring", "rest"), "rest and slow motion over the whole range"),
)
_OTHERS = "motions that differ more in posture, speed and acceleration"


def advice(names: Sequence[str]) -> Iterator[str]:
    """A sentence for each kind among numbers that the data tells badly: what would tell them."""
    kinds: dict[str, list[str]] = {}
    for name in names:
        leaf = name.rpartition("/")[2]
        told = (motion for words, motion in _KINDS if leaf.startswith(words))
        kinds.setdefault(next(told, _OTHERS), []).append(name)
    for motion, several in kinds.items():
        yield f"to tell {listed(several)}: {motion}"
    if kinds:
        yield "motions that tell most within a robot's limits: difflie.identify.excitation"
