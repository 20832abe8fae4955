"""Quaternions that are not of unit length: what is rounding, what is mended, what is refused."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl
from difflie import identify as di
from difflie.integrators import by_name
from difflie.io.config import read_config
from difflie.io.loading import load_system, state_of
from difflie.io.motions import read_motion

SYSTEM = dl.chain(
    [dl.Body(name="box", joint=dl.Free(name="free"), mass=1.0, inertia=np.eye(3), com=(1.0, 0, 0))]
)
UNIT = np.array([0.6, 0.0, 0.8, 0.0, 1.0, 2.0, 3.0])
LONG = UNIT * [*4 * [1.0005], 1, 1, 1]
SAID = r"q0?\[0:4\] of joint 'free' has length 1.0005; divide it by its length.*as is done here"
V = np.array([0.1, 0.2, 0.3, 0.0, 0.0, 0.0])


@pytest.mark.slow
def test_a_start_is_brought_to_unit_length_with_a_word():
    """Guards motions, steps and functions of a configuration: as of the unit quaternion."""
    how = {"dt": 1e-2, "steps": 3}
    right = dl.simulate(SYSTEM, UNIT, V, **how)
    with pytest.warns(UserWarning, match=SAID):
        run = dl.simulate(SYSTEM, LONG, V, **how)
    np.testing.assert_allclose(run.q, right.q, atol=1e-14)
    with pytest.warns(UserWarning, match=SAID):
        q, _ = dl.step(SYSTEM, LONG, V, dt=1e-2, method=by_name("RKMK4"))[:2]
    np.testing.assert_allclose(q, right.q[1], atol=1e-14)
    with pytest.warns(UserWarning, match=SAID):
        pose = dl.body_poses(SYSTEM, LONG)
    np.testing.assert_allclose(pose, dl.body_poses(SYSTEM, UNIT), atol=1e-14)


@pytest.mark.parametrize("factor", [1 + 1e-6, 1 - 1e-6])
def test_rounding_needs_no_word(factor):
    """Guards numbers that were written with six digits."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dl.body_poses(SYSTEM, UNIT * factor)


def test_a_traced_start_off_unit_length_fails():
    """Guards starts whose numbers are not known before the run."""
    run = jax.jit(lambda q: dl.simulate(SYSTEM, q, jnp.asarray(V), dt=1e-2, steps=2).result)
    assert run(jnp.asarray(UNIT)).ok and not run(jnp.asarray(LONG)).ok
    assert "divided by its length" in run(jnp.asarray(LONG)).messages()[0]


def test_a_start_in_a_file_is_brought_to_unit_length(tmp_path):
    """Guards [initial], whose warning names the file."""
    file = tmp_path / "start.toml"
    numbers = [*map(float, LONG), *7 * [0.0]]
    file.write_text(f'[system]\nfile = "package:arm7"\nbase = "free"\n[initial]\nq = {numbers}\n')
    config = read_config(file)
    arm = load_system(config)
    with pytest.warns(UserWarning, match=r"start.toml: initial.q: arm7.*has length 1.0005"):
        q, _ = state_of(arm, config.initial, f"{file}: initial")
    np.testing.assert_allclose(q[:7], UNIT, atol=1e-15)


def test_a_motion_in_a_file_is_brought_to_unit_length(tmp_path):
    """Guards what is drawn, and that gaps and infinities stay."""
    file, t = tmp_path / "trajectory.npz", np.arange(3.0)
    q = np.stack([UNIT, LONG, np.full(7, np.inf)])
    np.savez(file, t=t, q=q, v=np.zeros((3, 6)), joints=np.array(SYSTEM.joint_names))
    with pytest.warns(UserWarning, match=f"trajectory.npz.*{SAID}"):
        found = read_motion(file, SYSTEM)
    np.testing.assert_allclose(found.q[:2], [UNIT, UNIT], atol=1e-15)


def test_measured_quaternions_are_brought_to_unit_length():
    """Guards logs, which are not exact, and refuses what is no attitude."""

    def log(factor):
        q = np.tile(UNIT * [*4 * [factor], 1, 1, 1], (40, 1))
        return di.Recording("log", 0.01 * np.arange(40), q, *np.zeros((3, 40, 6)))

    with pytest.warns(UserWarning, match=r"log: the quaternion q\[0:4\] of joint 'free'.*is done"):
        found = di.InverseDynamics.of(SYSTEM, [log(1.05)])
    np.testing.assert_allclose(found.q[0], UNIT, atol=1e-15)
    with pytest.raises(di.DataError, match=r"log: the quaternion q\[0:4\].*has length 1.2"):
        di.InverseDynamics.of(SYSTEM, [log(1.2)])
