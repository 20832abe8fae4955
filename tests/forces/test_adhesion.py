"""Adhesion: how its force is shared by contacts, beside MuJoCo, and what it holds."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from numpy.testing import assert_allclose

import difflie as dl
from difflie.system.kinematic_tree import Tree

CEILING = """
<mujoco><option cone="{cone}"/>
<worldbody>
 <geom name="ceiling" type="box" size=".5 .5 .1" pos="0 0 .6"/>
 <body name="box" pos="0 0 .4498"><freejoint/>
  <geom name="side" type="box" size=".1 .08 .05" mass="1"/>
  <body name="arm" pos=".3 0 0"><joint axis="0 1 0"/>
   <geom name="tip" type="sphere" size=".05" pos="0.05 0 0" mass=".2"/></body>
 </body>
</worldbody>
<actuator><{kind} name="glue" body="box" ctrlrange="0 40" {more}/></actuator>
</mujoco>
"""


def loaded(tmp_path, cone="elliptic", kind="adhesion", more='gain="1.5"'):
    path = tmp_path / "box.xml"
    path.write_text(CEILING.format(cone=cone, kind=kind, more=more))
    return path, dl.load(path, actuators=True, contacts=True)


@pytest.mark.slow
@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
@pytest.mark.parametrize(("kind", "more"), [("adhesion", 'gain="1.5"'), ("general", 'gear="2"')])
def test_the_force_is_shared_as_in_mujoco(tmp_path, cone, kind, more):
    """Guards the moment arm: equal parts at the contact points of the body itself."""
    path, system = loaded(tmp_path, cone, kind, more)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    # Tilted by less than what lifts the lower corners off.
    data.qpos[2] = 0.4505
    data.qpos[3:7] = np.array([1, 3e-5, -2e-5, 0.1])
    data.qpos[7] = -0.9
    data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])
    data.ctrl[0] = 20.0
    mujoco.mj_forward(model, data)
    assert data.ncon >= 3
    order = dl.MujocoOrdering(system, model)
    q = order.from_q(data.qpos)
    arm = system.actuators[0].transmission.lever(Tree.of(system), q)[1]
    force = {"adhesion": 1.5, "general": 1.0}[kind] * 20.0
    assert_allclose(order.tau(q, arm * force), data.qfrc_actuator, atol=1e-9)


def hanging():
    """A box of 1 kg below a ceiling, with one degree of freedom and four contact points."""
    body = dl.Body(name="box", joint=dl.Prismatic(axis=(0, 0, 1)), mass=1.0)
    top = dl.Box(dl.Frame(None, (0, 0, 0.15)), (0.5, 0.5, 0.1))
    system = dl.chain([body]).with_shapes({"top": top, "box": dl.Box("box", (0.05,) * 3)})
    system = dl.touching(system, "top", "box")
    return dl.attach(system, dl.Drive(transmission=dl.Adhesion("box")))


@pytest.mark.slow
@pytest.mark.parametrize(("method", "dt"), [("ConvexContact", 4e-3), ("RKMK4", 2e-4)])
def test_it_holds_what_is_lighter_than_its_force(method, dt):
    """Guards both laws: 12 N hold 9.81 N at rest, and the contact carries the rest; 9 N do not."""
    system = hanging()
    held, lost = (
        dl.simulate(system, [0.0], [0.0], dt=dt, duration=0.6, method=method, control=[force])
        for force in (12.0, 9.0)
    )
    assert abs(held.q[-1, 0]) < 1e-3
    assert abs(held.v[-1, 0]) < 1e-3
    assert_allclose(held.contacts(system).pressure[-1].sum(), 12 - 9.81, rtol=1e-2)
    assert lost.q[-1, 0] < -1.0

    def end(force):
        run = dl.simulate(
            *(system, [0.0], [0.0]), dt=dt, duration=0.04, method=method, control=force[None]
        )
        return run.q[-1, 0]

    force, d = jnp.array(12.0), 1e-5
    slope = (end(force + d) - end(force - d)) / (2 * d)
    assert slope > 0
    for mode in (jax.jacfwd, jax.jacrev):
        assert_allclose(jax.jit(mode(end))(force), slope, rtol=1e-5)


def test_files_keep_it(tmp_path):
    """Guards writing: what is read again is the same; a body that is not there is named."""
    _, system = loaded(tmp_path)
    dl.save(system, tmp_path / "again.xml")
    again = dl.load(tmp_path / "again.xml", actuators=True, contacts=True)
    (glue,) = again.actuators
    assert isinstance(glue.transmission, dl.Adhesion)
    assert glue.transmission.body == "box"
    with pytest.raises(ValueError, match="no body is named 'bx'"):
        dl.attach(hanging(), dl.Drive(name="other", transmission=dl.Adhesion("bx")))
