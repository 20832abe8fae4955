"""Mueller's eight transition maps on a heavy top, and the joints that SE(3) keeps closed."""

import io
import json

import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from difflie.io.results import save_json
from difflie.reproduce import REPRODUCTIONS
from difflie.reproduce.mueller import bodies, comparison


@pytest.mark.slow
def test_the_chain_starts_with_closed_joints():
    machine = bodies.revolute_chain()
    poses, twists = machine.start
    for joint in machine.joints.values():
        assert np.max(bodies.violation(joint, poses[None], twists[None])) < 1e-15
        # Off the start, to see that the joints are those of the same machine.
        q = machine.free.manifold.retract(poses.ravel(), jnp.full(machine.free.nv, 1e-3))
        g, _ = bodies.violation(joint, q.reshape(poses.shape)[None], twists[None])
        assert 1e-5 < g < 1e-2


@pytest.mark.slow
def test_the_top_on_a_ball_joint_is_the_published_one():
    end, com = bodies.heavy_top().end, comparison.PRINTED["com"]
    np.testing.assert_allclose(end[0, 4:], com, rtol=0, atol=6e-11)


def test_mixed_twists_are_body_twists_turned_into_the_world():
    rng = np.random.default_rng(0)
    poses, twists = jnp.asarray(rng.normal(size=(3, 2, 7))), jnp.asarray(rng.normal(size=(3, 2, 6)))
    poses = poses.at[..., :4].divide(jnp.linalg.norm(poses[..., :4], axis=-1, keepdims=True))
    mixed = bodies.turned(poses[..., :4], twists)
    for p, V, mix in zip(
        poses.reshape(-1, 7), twists.reshape(-1, 6), mixed.reshape(-1, 6), strict=True
    ):
        w, x = p[0], p[1:4]
        turned = V[3:] + 2 * w * np.cross(x, V[3:]) + 2 * np.cross(x, np.cross(x, V[3:]))
        np.testing.assert_allclose(mix, np.concatenate((V[:3], turned)), atol=1e-14)
    np.testing.assert_allclose(
        bodies.turned(poses[..., :4] * bodies.CONJUGATED, mixed), twists, atol=1e-14
    )


def test_the_slope_of_errors():
    errors = 3.0 * comparison.STEPS**-4.0
    assert comparison.slope(errors) == pytest.approx(4)
    assert comparison.slope(np.full(len(errors), 1e-15)) is None


@pytest.mark.thorough
def test_orders_norms_and_joints(tmp_path):
    # One test, because the workers of a parallel run share no fixture.
    numbers = REPRODUCTIONS["mueller"].compute(tmp_path / "new")
    assert [r.map for r in numbers.rows] == ["1a", "1b", "1c", "1d", "2a", "2b", "2c", "2d"]
    for r in numbers.rows:
        assert abs(r.order - 4) < 0.1
        assert r.microseconds_per_step > 0
        assert r.norm_defect is None if r.map[0] == "2" else r.norm_defect < 1e-13
        on_se3 = r.group == "SE(3)"
        assert (r.constraint_error < 1e-13) == (r.velocity_error < 1e-12) == on_se3
    for r in numbers.comparison:
        closed = r.group == "SE(3)" and r.joint == "ground joint"
        if closed:
            assert r.constraint_order is None and r.velocity_order is None
            assert max(r.constraint_error) < 1e-13 and max(r.velocity_error) < 1e-12
        else:
            assert abs(r.constraint_order - 4) < 0.1 and abs(r.velocity_order - 4) < 0.1
        assert max(r.attitude_error[-1], r.position_error[-1]) < 1e-7
    np.testing.assert_allclose(numbers.com.computed, numbers.com.published, rtol=0, atol=6e-11)
    save_json(tmp_path / "numbers.json", numbers)
    found = json.loads((tmp_path / "numbers.json").read_text())
    assert list(found) == ["name", "rows", "comparison", "com"] and found["name"] == "mueller"
    names = ["constraints.png", "order.png", "report.html"]
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == names
    text = io.StringIO()
    REPRODUCTIONS["mueller"].show(numbers, Console(file=text, width=80))
    assert "…" not in text.getvalue() and "ext. Rodrigues, cay" in text.getvalue()
