"""Names of the release before still work, with a warning that names the new ones."""

import importlib
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pendulums import pendulum

import difflie as dl
import difflie.control as dc
from difflie import deprecated
from difflie.identify.arm_equations import HeldOut
from difflie.identify.assessment import JointScore
from difflie.integrators import RKMK4
from difflie.io.results import save_json

ARM = pendulum(0.5, "link")


@pytest.mark.parametrize(
    ("package", "old"),
    [(p, old) for p, names in deprecated.NAMES.items() if p.startswith("difflie") for old in names],
)
def test_old_names_are_the_new_ones(package, old):
    """A program of the release before finds what it imports."""
    new = deprecated.NAMES[package][old]
    with pytest.warns(DeprecationWarning, match=rf"{old} is now .*{new}"):
        found = getattr(importlib.import_module(package), old)
    assert found is getattr(importlib.import_module(package), new)


def test_old_methods_are_called_by_their_new_names():
    """Methods that a program calls, and that its subclasses define."""
    with pytest.warns(DeprecationWarning, match="finer is now refined"):

        class Own(RKMK4):
            def finer(self, n):
                return f"{n} times"

    assert Own().refined(3) == "3 times"
    with pytest.warns(DeprecationWarning, match=r"Method\.finer is now refined"):
        assert RKMK4().finer(2) == RKMK4()

    with pytest.warns(DeprecationWarning, match="faults is now problems"):

        class Winch(dl.Actuator):
            def torque(self, command, q, v, memory):
                return command, memory

            def faults(self):
                return ["it has no rope"]

    with pytest.raises(dl.ModelError, match="it has no rope"):
        dl.attach(ARM, Winch(joint="link"))
    motor = dl.Motor(joint="link", max_torque=1.0)
    with pytest.warns(DeprecationWarning, match="remembers is now has_state"):
        assert motor.remembers is False
    with pytest.warns(DeprecationWarning, match="misfits is now incompatibilities"):
        assert motor.misfits(ARM, ()) == []


def test_old_methods_of_objects():
    free = dl.Parameters(ARM, ["link/mass"])
    with pytest.warns(DeprecationWarning, match="machine is now system_at"):
        system = free.machine(free.start)
    assert jnp.allclose(system.bodies.mass, ARM.bodies.mass)
    cost = dc.Configuration(jnp.zeros(1), 1.0)
    with pytest.warns(DeprecationWarning, match="aimed is now with_goal"):
        assert jax.tree.leaves(cost.aimed(jnp.ones(1)))[0] is not None
    blocks = HeldOut(*(np.ones(1),) * 2, 1.0, *(np.ones((1, 1)),) * 2, 0)
    with pytest.warns(DeprecationWarning, match="floor is now baseline"):
        assert blocks.floor is blocks.baseline


def test_old_keys_of_json(tmp_path):
    """Guards programs that read JSON results."""
    score = JointScore("run", "validation", "joint", "N m", 0.9, 0.1, 0.2, 0.95, 0.5)
    save_json(tmp_path / "x.json", {"joints": [score]})
    (found,) = json.loads((tmp_path / "x.json").read_text())["joints"]
    assert found["floor_r2"] == found["baseline_r2"] == 0.95
    assert found["file_r2"] == found["nominal_r2"] == 0.5


def test_old_types_of_tables():
    """Configurations of the release before are read."""
    for old, new in deprecated.TYPES.items():
        with pytest.warns(DeprecationWarning, match=new):
            assert deprecated.type_of(old) == new
    assert deprecated.type_of("Reach") == "Reach"


@pytest.mark.parametrize(("old", "new"), deprecated.MODULES.items())
def test_old_modules_have_the_names_of_the_new_ones(old, new):
    """A program of the release before imports the readers of identification files."""
    with pytest.warns(DeprecationWarning, match=rf"{old}\.read_study is now {new}\.read_study"):
        found = importlib.import_module(old).read_study
    assert found is importlib.import_module(new).read_study
