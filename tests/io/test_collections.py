"""Whole public collections of MJCF files move as in MuJoCo, or what differs is named at load."""

import warnings
from dataclasses import replace
from importlib import metadata

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import difflie as dl
from difflie import quantities as dq
from difflie.forces.actuators.acting import generalised, lengths, torques
from difflie.forces.passive import passive
from difflie.forces.transmissions import CoordinateTransmission, transmitted
from difflie.io.mjcf.names import actuator_names, body_names, command_names, joint_names
from difflie.io.mjcf.sensors import read_sensors
from difflie.io.mjcf.tendons import lost, tendon_transmission
from difflie.system.internal_states import with_states
from difflie.system.kinematic_tree import Tree

pytestmark = pytest.mark.slow

COLLECTIONS = "dm-control", "gymnasium", "gymnasium-robotics", "mujoco-mjx"
TOLERANCE = 3e-9
STATES = 3
STEP = 1e-4

# What MuJoCo has as constraints is compared elsewhere; they are soft there.
OFF = ("CONTACT", "LIMIT", "FRICTIONLOSS", "EQUALITY")

# What is named and acts in spite of these flags.
ACTING = (
    "actuators",
    "actearly",
    "nonlinear",
    "yield",
    "plugins",
    "flexes",
    "tendons around shapes",
    "limits of the sum",
)


def files():
    """The MJCF files of the collections that are installed; of the others one that is skipped."""
    found = []
    for name in COLLECTIONS:
        try:
            there = metadata.files(name) or []
        except metadata.PackageNotFoundError:
            why = f"{name} is not installed; it is in the extra collections"
            found.append(pytest.param(None, id=name, marks=pytest.mark.skip(reason=why)))
            continue
        for file in sorted(f for f in there if f.suffix == ".xml"):
            found.append(pytest.param(file.locate(), id=f"{name}/{file}"))
    return found


def mujoco_model(path):
    """MuJoCo's model of a file, without constraints."""
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        pytest.skip("a part of a file, or one that MuJoCo does not read")
    if not model.nv:
        pytest.skip("nothing moves")
    for flag in OFF:
        model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}"))
    return model


def read(path, model):
    """The system of a file, without friction and constraints, and which sensors are left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        system = dl.load(path, actuators=True)
    joints = replace(system.joints, friction=0 * system.joints.friction)
    couplings = [
        eqx.tree_at(lambda c: c.friction, c, 0 * c.friction) if hasattr(c, "friction") else c
        for c in system.couplings
    ]
    system = replace(system, joints=joints, couplings=tuple(couplings), constraints=())
    sensors, unread, _ = read_sensors(mujoco, model, system)
    return replace(system, sensors=sensors), unread


def states(system, model, seed=0):
    """Random states here, and MuJoCo's data in them with controls and activations in range."""
    ordering, rng = dl.MujocoOrdering(system, model), np.random.default_rng(seed)
    for _ in range(STATES):
        step = jnp.asarray(0.4 * rng.normal(size=system.nv))
        q = system.manifold.retract(system.neutral(), step)
        v = jnp.asarray(rng.normal(size=system.nv))
        data = mujoco.MjData(model)
        data.qpos, data.qvel = np.asarray(ordering.q(q)), np.asarray(ordering.v(q, v))
        data.ctrl[:] = drawn(rng, model.actuator_ctrllimited, model.actuator_ctrlrange, -1)
        for a in np.flatnonzero(model.actuator_actadr >= 0):
            first, count = model.actuator_actadr[a], model.actuator_actnum[a]
            limited, ends = model.actuator_actlimited[a], model.actuator_actrange[a]
            data.act[first : first + count] = drawn(rng, [limited] * count, [ends] * count, 0)
        mujoco.mj_forward(model, data)
        yield q, v, data


def read_from(system, model):
    """Where in MuJoCo's `ctrl` and `act` the commands and activations of a system are."""
    commands = [name for own in command_names(model) for name in own]
    acts: list[int] = []
    for a in (a for _, a in owners(system, model) if model.actuator_actadr[a] >= 0):
        first = int(model.actuator_actadr[a])
        acts += range(first, first + int(model.actuator_actnum[a]))
    return [commands.index(name) for name in system.actuator_names], acts


def owners(system, model):
    """The actuators of a system, and MuJoCo's, that have one force of the same name."""
    there_are = actuator_names(model)
    pairs = enumerate(system.actuator_names)
    return [(i, there_are.index(name)) for i, name in pairs if name in there_are]


def drawn(rng, limited, ends, least):
    """Random numbers within their ranges, or from `least` to 1 without one."""
    known = np.asarray(limited, bool)[:, None]
    return rng.uniform(*np.where(known, np.reshape(ends, (-1, 2)), (least, 1.0)).T)


def relative(here, there):
    """The greatest difference, relative to the greatest number there where that is above 1e-6."""
    here, there = np.asarray(here), np.asarray(there)
    assert here.shape == there.shape and np.all(np.isfinite(here))
    return np.max(np.abs(here - there), initial=0) / max(np.max(np.abs(there), initial=0), 1e-6)


def differences(system, model, unread):
    """The relative differences of each quantity between the two, and by how many numbers."""
    bodies, joints = body_names(model), joint_names(model)
    pairs = owners(system, model)
    mine, ours = [i for i, _ in pairs], [int(model.actuator_outadr[a]) for _, a in pairs]
    first, acts = read_from(system, model)
    kept = [t for t in range(model.ntendon) if not lost(model, t)]
    tendons = [tendon_transmission(model, t, bodies, joints) for t in kept]

    @jax.jit
    @jax.vmap
    def of(q, v, u, z):
        with_z = with_states(system, z)
        tree = Tree.of(with_z)
        forces = torques(tree, u, q, v) if system.actuators else jnp.zeros(0)
        tau = generalised(tree, forces, q, v) if system.actuators else jnp.zeros_like(v)
        a = dl.forward_dynamics(with_z, q, v, tau + passive(tree, q, v))
        between = iter(transmitted(tree, [t for t in tendons if not along(t)], q, v))
        ends = [coordinate(t, tree, q, v) if along(t) else next(between) for t in tendons]
        length, rate = (jnp.array([end[i] for end in ends]) for i in (0, 1))
        x, speed = (jnp.array(values) for values in lengths(tree, q, v))
        given = u if system.actuators else None
        readings = [read_by(sensor, with_z, q, v, a, given) for sensor in system.sensors]
        return forces, tau, a, length, rate, x, speed, readings

    there = list(states(system, model))
    ordering = dl.MujocoOrdering(system, model)
    q, v = (jnp.stack([state[i] for state in there]) for i in (0, 1))
    u = jnp.asarray(np.array([d.ctrl[first] for *_, d in there]))
    z = jnp.asarray(np.array([d.act[acts] for *_, d in there]))
    found = {}

    def note(name, here, there):
        found[name] = max(found.get(name, 0.0), relative(here, there))

    results = of(q, v, u, z)
    for i, (q, v, data) in enumerate(there):
        ends = jax.tree.map(lambda r, i=i: r[i], results)
        forces, tau, a, length, rate, x, speed, readings = ends
        note("actuator_force", forces[np.array(mine, int)], data.actuator_force[ours])
        # Where a joint says so MuJoCo counts gravity compensation among the actuators' forces.
        compensation = data.qfrc_gravcomp * model.jnt_actgravcomp[model.dof_jntid]
        note("qfrc_actuator", ordering.tau(q, tau), data.qfrc_actuator - compensation)
        if not data.warning[mujoco.mjtWarning.mjWARN_INERTIA].number:
            note("qacc", ordering.a(q, v, a), data.qacc)
        note("ten_length", length, data.ten_length[kept])
        note("ten_velocity", rate, data.ten_velocity[kept])
        note("actuator_length", x[np.array(mine, int)], data.actuator_length[ours])
        note("actuator_velocity", speed[np.array(mine, int)], data.actuator_velocity[ours])
        pairs = iter(readings)
        for k in range(model.nsensor):
            if k not in unread:
                place = slice(model.sensor_adr[k], model.sensor_adr[k] + model.sensor_dim[k])
                kind = mujoco.mjtSensor(model.sensor_type[k]).name
                note(f"sensordata {kind}", next(pairs), data.sensordata[place])
    return found


def read_by(sensor, system, q, v, a, u):
    """What a sensor reads, within its cutoff.

    MuJoCo leaves the medium, tendons and actuators at points out of forces and torques at sites.
    """
    of = getattr(sensor.quantity, "of", None)
    if isinstance(of, dq.JointWrench):
        bare = replace(system, couplings=(), actuators=())
        reading = of.at(bare, q, v, a, None, 0.0)[jnp.array(sensor.quantity.entries)]
    else:
        reading = sensor.predicted(system, q, v, None, u, 0.0)
    return jnp.clip(reading, -sensor.cutoff, sensor.cutoff) if sensor.cutoff else reading


def along(transmission):
    return isinstance(transmission, CoordinateTransmission)


def coordinate(transmission, tree, q, v):
    length, arm = transmission.lever(tree, q)
    return length, jnp.sum(arm * tree.rates(v))


@pytest.mark.parametrize("path", files())
def test_accelerations_forces_and_sensors(path):
    """Each quantity is MuJoCo's, unless a feature that changes it was named."""
    model = mujoco_model(path)
    system, unread = read(path, model)
    sizes = differences(system, model, unread)
    found = {what: size for what, size in sizes.items() if size > TOLERANCE}
    named = [said for said in system.not_modelled if any(word in said for word in ACTING)]
    assert not found or named


@pytest.mark.parametrize("path", files())
def test_activations(path):
    """A thousand steps of RK4 take activations where MuJoCo's take them."""
    model = mujoco_model(path)
    if not model.na:
        pytest.skip("it has no activations")
    system, _ = read(path, model)
    if np.linalg.matrix_rank(dl.mass_matrix(system, system.neutral())) < system.nv:
        pytest.skip("its mass matrix is singular")
    model.opt.timestep, model.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_RK4
    q, v, data = next(states(system, model))
    first, acts = read_from(system, model)
    run = dl.simulate(
        *(system, q, v),
        z0=data.act[acts],
        control=data.ctrl[first],
        dt=STEP,
        steps=1000,
        save_every=1000,
    )
    for _ in range(1000):
        mujoco.mj_step(model, data)
    np.testing.assert_allclose(run.z[-1], data.act[acts], rtol=1e-8, atol=1e-8)


# Those whose way is not decided by how an impact goes; of others docs/contacts.md says how far off.
STANDING = "suite/cheetah.xml", "suite/ball_in_cup.xml"


@pytest.mark.parametrize("path", [p for p in files() if p.id.endswith(STANDING)])
def test_bodies_with_contacts_are_where_those_of_mujoco_are(path):
    """Within 2 cm after 2 s of a fall without actuators, with limits and contacts of the file."""
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        system = dl.load(path, contacts=True, limits=True)
    data = mujoco.MjData(model)
    q = dl.MujocoOrdering(system, model).from_q(data.qpos)
    while data.time < 2 - 1e-9:
        mujoco.mj_step(model, data)
    mujoco.mj_kinematics(model, data)
    run = dl.simulate(
        *(system, q, np.zeros(system.nv)),
        dt=1e-3,
        steps=2000,
        save_every=2000,
        method=dl.GeneralizedAlpha(),
    )
    assert run.result.ok
    poses, names = np.asarray(dl.body_poses(system, run.q[-1])), body_names(model)
    for pose, name in zip(poses, system.body_names, strict=True):
        if name in names:
            place = data.xpos[1 + names.index(name)]
            np.testing.assert_allclose(pose[:3, 3], place, atol=0.02, err_msg=name)
