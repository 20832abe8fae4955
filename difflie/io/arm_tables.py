"""Tables of identification files for arms, of which all numbers are found.

Without [[parameter]] all bodies and joints of an arm are found, from measured torques, near the
numbers of its file, as `difflie.identify.identify_arm` does; all of these may be left out:

    [arm]                                 [nearness]                   # to the file's numbers
    offsets = true                        weight = 100.0               # else chosen on blocks of
    stribeck = false                      blocks = 5                   # rows that are held out
    load_friction = true                  distance = "geometric"       # or "entropic"
    bandwidth = 2.0                       # Hz, of the motion
                                          [[rate_coupling]]            # a motor that turns with
                                          joints = ["j5", "j6"]        # a sum of joint rates
                                          ratios = [1.0, 1.0]
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from ..system.fields import number


@dataclass(frozen=True)
class ArmTable:
    """[arm]: as of `difflie.identify.ArmSettings`."""

    offsets: bool = True
    stribeck: bool | None = None
    load_friction: bool = False
    bandwidth: Annotated[float, number(unit="Hz", positive=True)] | None = None


@dataclass(frozen=True)
class NearnessTable:
    """[nearness]: as of `difflie.identify.ArmSettings`; the weight as of `NominalPrior`, too."""

    weight: Annotated[float, number(positive=True)] | None = None
    distance: Literal["entropic", "geometric"] = "entropic"
    blocks: Annotated[int, number(least=2, most=100)] = 5


@dataclass(frozen=True)
class RateCouplingTable:
    """[[rate_coupling]]: as of `difflie.identify.RateCoupling`."""

    joints: list[str]
    ratios: list[float] = field(default_factory=list)
