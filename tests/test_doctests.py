"""The examples in the docstrings of the most used names run and print what they say."""

import doctest
import inspect
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
from public_names import public

import difflie as dl

EXAMPLES = (
    *"load chain tree from_dh Body Revolute Prismatic Free Spherical System Frame".split(),
    *"attach Spring Damper Rope PlaneContact Motor Drive PositionServo constrain assemble".split(),
    *"GeneralActuator ExtraCommand JointTransmission EffortLimit PolynomialForce Inerter".split(),
    *"touching distance Adhesion smoothed".split(),
    *"forward_dynamics inverse_dynamics mass_matrix bias_force gravity_force passive_force".split(),
    *"body_poses body_twists body_jacobian geometric_jacobian center_of_mass energy".split(),
    *"integrate difference simulate step Trajectory Sampled linearize".split(),
    *"Parameters Parameter sweep Grid momentum so3.exp so3.log se3.exp".split(),
    *"quaternion.from_matrix control.Problem control.solve control.lqr quantities.Energy".split(),
    *"quantities.Touch".split(),
    *"identify.Recording identify.fit identify.identify_arm view.still examples.path".split(),
)


def parsed(thing: Any, name: str) -> doctest.DocTest:
    text = (vars(thing)["__doc__"] if inspect.isclass(thing) else thing.__doc__) or ""
    return doctest.DocTestParser().get_doctest(text, {"dl": dl, "np": np}, name, None, None)


@pytest.mark.slow("identify.identify_arm", "assemble", "quantities.Touch")
@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name):
    """Guards an example of at most five lines, in double precision."""
    example = parsed(attrgetter(name)(dl), name)
    assert 1 <= sum(len(part.source.splitlines()) for part in example.examples) <= 5
    said: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=said.append)
    assert not said, "".join(said)


def test_no_other_example():
    """Guards against examples that nothing runs."""
    rooms = ("control", "identify", "quantities", "view", "constraints", "integrators", "groups")
    listed = {id(attrgetter(name)(dl)) for name in EXAMPLES}
    others = [
        name
        for name, thing in public((*rooms, "parameters", "forces", "io", "simulate")).items()
        if id(thing) not in listed and parsed(thing, name).examples
    ]
    assert others == []
