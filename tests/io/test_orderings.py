"""States in Pinocchio's ordering: its own numbers, and back again. MuJoCo's: `test_mjcf`."""

import importlib.metadata
import warnings
from functools import partial

import jax
import numpy as np
import pytest
from trees import error, random_states

import difflie as dl

INERTIAL = (
    '<inertial><origin xyz="0.1 -0.2 0.3"/><mass value="2"/>'
    '<inertia ixx="1" ixy="0.1" ixz="0" iyy="1.2" iyz="0.2" izz="1.5"/></inertial>'
)


def joint(name, kind, parent, child, inside=""):
    ends = f'<parent link="{parent}"/><child link="{child}"/><origin xyz="0 0.3 1" rpy="1 2 3"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{inside}</joint>'


LIMIT = '<axis xyz="0 0.6 0.8"/><limit lower="-9" upper="9" velocity="9" effort="9"/>'
# Joints in neither the alphabetical order nor that of a search.
MACHINE = "".join(
    (
        '<robot name="r">',
        *(f'<link name="{name}">{INERTIAL}</link>' for name in "abcdefg"),
        joint("wheel", "continuous", "a", "b", '<axis xyz="0 0.6 0.8"/>'),
        joint("sled", "planar", "b", "c", '<axis xyz="0 0 1"/>'),
        joint("drone", "floating", "a", "d"),
        joint("arm", "revolute", "d", "e", LIMIT),
        joint("boom", "prismatic", "a", "f", LIMIT),
        joint(
            "crane",
            "revolute",
            "f",
            "g",
            '<mimic joint="arm" multiplier="-2" offset="0.5"/>' + LIMIT,
        ),
        "</robot>",
    )
)


@pytest.fixture(scope="module")
def pin():
    return pytest.importorskip("pinocchio")


def check(pin, system, model):
    """Accelerations and forces through Pinocchio's algorithms are ours, and back is the same."""
    data, ordering = model.createData(), dl.PinocchioOrdering(system, model)
    q, v, a, tau, _ = random_states(system, 3, seed=1)

    @jax.jit
    @jax.vmap
    def there(q, v, a, tau):
        theirs = ordering.q(q), ordering.v(q, v), ordering.a(q, v, a), ordering.tau(q, tau)
        power = ordering.tau(q, tau) @ ordering.v(q, v)
        return theirs, dl.inverse_dynamics(system, q, v, a), power

    @jax.jit
    @jax.vmap
    def back(x, rate, change, effort):
        q, v = ordering.from_q(x), ordering.from_v(x, rate)
        return q, v, ordering.from_a(x, rate, change), ordering.from_tau(x, effort)

    theirs, forces, power = there(q, v, a, tau)
    assert theirs[0].shape[1:] == (model.nq,) and theirs[1].shape[1:] == (model.nv,)
    np.testing.assert_allclose(power, np.sum(tau * v, axis=1), rtol=1e-12)
    samples = zip(*map(np.asarray, theirs[:3]), strict=True)
    efforts = np.array([pin.rnea(model, data, *sample) for sample in samples])
    assert error(back(*theirs[:3], efforts)[3], forces) < 1e-12
    found = back(*theirs)
    difference = jax.vmap(partial(dl.difference, system))(q, found[0])
    whole_turns = np.round(difference / (2 * np.pi)) * 2 * np.pi
    np.testing.assert_allclose(difference, whole_turns, atol=1e-13)
    for again, given in zip(found[1:], (v, a, tau), strict=True):
        np.testing.assert_allclose(again, given, atol=1e-12)


def read(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dl.load(path, **options)


@pytest.mark.slow
def test_all_joint_types(pin, tmp_path):
    path = tmp_path / "r.urdf"
    path.write_text(MACHINE)
    check(pin, read(path), pin.buildModelFromUrdf(str(path)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tiago_description/robots/tiago_no_hand.urdf"])
def test_a_robot_on_a_free_base(pin, name):
    try:
        package = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("needs example-robot-data")
    path = package.locate_file(f"cmeel.prefix/share/example-robot-data/robots/{name}")
    check(
        pin, read(path, base="free"), pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    )


def test_models_of_another_machine(pin, tmp_path):
    path = tmp_path / "r.urdf"
    path.write_text(MACHINE)
    system, model = read(path), pin.buildModelFromUrdf(str(path))
    path.write_text(MACHINE.replace('"boom"', '"bloom"'))
    with pytest.raises(
        ValueError, match="Pinocchio's model has no joint 'bloom'; did you mean 'bo"
    ):
        dl.PinocchioOrdering(read(path), model)
    path.write_text(MACHINE.replace('name="boom" type="prismatic"', 'name="boom" type="fixed"'))
    with pytest.raises(ValueError, match="it has no joint 'boom', which Pinocchio's model has"):
        dl.PinocchioOrdering(read(path), model)
    path.write_text(MACHINE.replace("floating", "planar"))
    with pytest.raises(ValueError, match="'drone' has 7 coordinates and 6 velocities, and 4 and 3"):
        dl.PinocchioOrdering(system, pin.buildModelFromUrdf(str(path)))
