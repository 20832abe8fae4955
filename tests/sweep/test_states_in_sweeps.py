"""Sweeps over machines with internal states: their starts, and numbers of their parts."""

import importlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import quantities as dq
from difflie.cli.sweep import run_file
from difflie.sweep.files import design_of, function_of, read_sweep
from difflie.sweep.store import Store

MINE = '''
import equinox as eqx
import jax
import jax.numpy as jnp
import difflie as dl


class Maxwell(dl.StatefulJointForce):
    """A spring and a damper in series."""

    joint: str = eqx.field(static=True)
    stiffness: jax.Array = eqx.field(converter=dl.number(unit="N m/rad", positive=True))
    relaxation: jax.Array = eqx.field(converter=dl.number(unit="s", positive=True))
    states = (("stretch", "rad"),)

    def law(self, x, v, z):
        return -self.stiffness * z[0], v - z / self.relaxation


class Lag(dl.Stateful, dl.Actuator):
    """A torque that follows its command."""

    lag: jax.Array = eqx.field(converter=dl.number(unit="s", positive=True))
    states = (("torque", "N m"),)

    def torque(self, command, q, v, z):
        return z[0], (command - z) / self.lag
'''
FILE = """
[system]
file = "package:simple_pendulum"
[initial]
joints = {hinge = 0.6}
[simulation]
dt = 1e-3
steps = 20
save_every = 10
[sweep]
samples = 3
seed = 1
[[coupling]]
type = "parts_with_states:Maxwell"
joint = "hinge"
stiffness = 5.0
relaxation = 0.1
z0 = [0.05]
name = "rubber"
[[vary]]
path = "rubber/z0[0]"
uniform = [-0.1, 0.1]
[[vary]]
path = "rubber/relaxation"
values = [0.05, 0.2]
[[keep]]
quantity = "Passive"
reduction = "Final"
name = "torque"
"""


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """The module of the parts, in a folder of its own."""
    (tmp_path / "parts_with_states.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module("parts_with_states")


@pytest.mark.slow
def test_starts_and_numbers_by_name(parts):
    """Guards that rows of a sweep are the runs with these z0 and numbers, with derivatives."""
    hinge = dl.Revolute(axis=(1, 0, 0), name="hinge", armature=0.2)
    rod = dl.Body(name="rod", joint=hinge, mass=1.0)
    bare = dl.chain([rod])
    rubber = parts.Maxwell("hinge", 5.0, 0.1, name="rubber")
    system = dl.attach(bare, rubber, parts.Lag(0.05, joint="hinge"))
    given = {"dt": 1e-3, "steps": 20, "save_every": 10, "control": jnp.ones(1)}
    motions = dl.Motions(
        system, {"torque": dq.Final(dq.Passive())}, v0=[1.0], outputs=ends, **given
    )
    # Of the two parts at the joint one has a name of its own.
    names = "rubber/z0[0]", "rubber/stiffness", "hinge/lag", "hinge/z0[0]"
    values = (0.1, [0.0, 0.05]), (5.0, [9.0]), (0.05, [0.02]), (0.0, [0.3])
    grid = dl.Grid(
        {name: [first, *more] for name, (first, more) in zip(names, values, strict=True)}
    )
    found = dl.sweep(motions, grid)
    for row, numbers in enumerate(grid.rows(0, grid.size)):
        start, stiffness, lag, torque = numbers
        changed = eqx.tree_at(
            lambda s: (s.couplings[0].stiffness, s.actuators[0].lag), system, (stiffness, lag)
        )
        run = dl.simulate(changed, [0.0], [1.0], z0=[torque, start], **given)
        np.testing.assert_allclose(found["z"][row], run.z, rtol=1e-12)
        np.testing.assert_allclose(found["end 1"][row], run.z[-1, 1], rtol=1e-12)
        np.testing.assert_allclose(found["torque hinge"][row], -stiffness * run.z[-1, 1], rtol=1e-9)
    one = dict(zip(names, (0.1, 5.0, 0.05, 0.3), strict=True))
    slope = jax.grad(lambda x: motions(one | {"rubber/z0[0]": x})["end"][1])(0.1)
    ends_of = [motions(one | {"rubber/z0[0]": 0.1 + h})["end"][1] for h in (1e-4, -1e-4)]
    np.testing.assert_allclose(slope, (ends_of[0] - ends_of[1]) / 2e-4, rtol=1e-6)


def ends(system, run):
    """The internal states at the end."""
    return {"end": run.z[-1]}


def test_a_file_with_parts_of_states(parts, tmp_path):
    """Guards z0 and numbers of a part in a file: in its table, and varied by their paths."""
    (tmp_path / "sweep.toml").write_text(FILE)
    config = read_sweep(tmp_path / "sweep.toml", allow_code=True)
    motions, design = function_of(config), design_of(config)
    assert motions.system.nz == 1 and motions.unit("rubber/z0[0]") == ""
    np.testing.assert_array_equal(motions.system.couplings[0].z0, [0.05])
    results, _ = run_file(config, tmp_path / "out")
    assert results.rows == {"done": 6}
    store = Store.opened(tmp_path / "out" / "table").dataset()
    table = {name: np.asarray(column) for name, column in store.items()}
    part = lambda s: (s.couplings[0].z0, s.couplings[0].relaxation)  # noqa: E731
    order = [design.names.index(name) for name in ("rubber/z0[0]", "rubber/relaxation")]
    for row, (start, relaxation) in enumerate(design.rows(0, 6)[:, order]):
        changed = eqx.tree_at(part, motions.system, (jnp.array([start]), relaxation))
        run = dl.simulate(changed, [0.6], [0.0], dt=1e-3, steps=20, save_every=10)
        np.testing.assert_allclose(table["z"][row], run.z, rtol=1e-12)
        passive = run.passive(changed)[-1, 0]
        np.testing.assert_allclose(table["torque hinge"][row], passive, rtol=1e-9)
