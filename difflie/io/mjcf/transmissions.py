"""What the actuators of a MuJoCo model act through."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...forces import Adhesion, JointTransmission, SiteTransmission, SliderCrank, Transmission
from ...forces.transmissions.site import branching
from ...system import Free, Prismatic, Revolute, System
from ...system.frame import Frame
from ..robot_files import of_quaternion
from .joints import TYPES, gears
from .names import Names
from .tendons import tendon_transmission

# MuJoCo's mjtTrn.
JOINT, IN_PARENT, SLIDER_CRANK, TENDON, SITE, BODY = range(6)
_TOUCHING = 1e-6  # m, by which what rests may be off


def place_of(model: Any, a: int, names: Names, system: System) -> dict[str, Any]:
    """Where an actuator acts, as the fields of an `Actuator`."""
    kind, (first, second) = model.actuator_trntype[a], map(int, model.actuator_trnid[a])
    gear = gears(model)[a].copy()
    held: Transmission
    if kind in (JOINT, IN_PARENT):
        joint, joint_type = names.joints[first], TYPES[model.jnt_type[first]]
        if joint_type in (Prismatic, Revolute):
            reference = float(model.qpos0[model.jnt_qposadr[first]])
            if gear[0] == 1 and reference == 0:
                return {"joint": joint}
            return {"transmission": JointTransmission(joint, gear[:1], reference=reference)}
        # MuJoCo has the force of a free joint first.
        gear = np.concatenate((gear[3:], gear[:3])) if joint_type is Free else gear[:3]
        held = JointTransmission(joint, gear, in_parent=bool(kind == IN_PARENT))
    elif kind == TENDON:
        held = tendon_transmission(model, first, names.bodies, names.joints, gear[0])
    elif kind == BODY:
        held = Adhesion(names.bodies[first - 1], reach=_reach(model, first))
    elif kind == SLIDER_CRANK:
        pin = site_of(model, first, names)
        held = SliderCrank(
            [(pin.body, pin.position)],
            site_of(model, second, names),
            model.actuator_cranklength[a],
            gear=gear[0],
        )
    else:
        site = site_of(model, first, names)
        gear = np.concatenate((gear[3:], gear[:3]))
        if second < 0:
            held = SiteTransmission(site, gear)
        else:
            reference = site_of(model, second, names)
            common = branching(system, site.body, reference.body)
            held = SiteTransmission(site, gear, reference=reference, common=common)
    return {"transmission": held}


def _reach(model: Any, body: int) -> float:
    """Up to which gap in m of a contact adhesion acts: that of its geoms."""
    own = model.geom_bodyid == body
    each = (float(np.max(model.geom_gap[these], initial=0)) for these in (own, ~own))
    return max(sum(each), _TOUCHING)


def site_of(model: Any, site: int, names: Names) -> Frame:
    """The frame of a site, by its number, on its body."""
    body = int(model.site_bodyid[site])
    rotation = of_quaternion(model.site_quat[site])
    return Frame(names.bodies[body - 1] if body else None, model.site_pos[site].copy(), rotation)
