"""A run shows how it was made, how it ended and what drifted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pages import Page

import difflie as dl


def arm():
    solid = {"mass": 1.0, "inertia": np.eye(3)}
    hinge = dl.Revolute(name="<hinge>", upper=1.0)
    base = dl.Body(name="base", joint=dl.Free(), **solid)
    return dl.chain([base, dl.Body(name="arm", joint=hinge, **solid)], name="arm")


def simulated(v=0.2, rate=30.0):
    system = arm()
    v = jnp.full(7, v).at[6].set(rate)
    return dl.simulate(system, system.neutral(), v, dt=0.01, steps=5)


@pytest.mark.slow
def test_a_run_says_how_it_ended():
    """With its times, its method, the joints beyond their limits, and the defect of quaternions."""
    lines = repr(simulated()).splitlines()
    assert lines[0].startswith("Trajectory of 'arm': t = 0 to 0.05 s, 6 saved rows, nq = 8, nv = 7")
    assert lines[1:3] == ["method: RKMK4, of order 4", "completed: 5 steps, 0.05 s"]
    assert lines[3] == "joint '<hinge>' left its position limit first at t = 0.04 s"
    assert lines[4].startswith("q is off its manifold by up to ")
    assert repr(simulated(rate=3.0)).splitlines()[3] == "no limit was exceeded"


@pytest.mark.slow
def test_its_html_is_text():
    page = simulated()._repr_html_()
    assert "&lt;hinge&gt;" in page and "<hinge>" not in page and "completed" in page


@pytest.mark.slow
def test_batches_and_what_is_not_finite_are_said():
    runs = jax.vmap(simulated)(jnp.array([0.1, jnp.nan]))
    text = repr(runs)
    assert text.startswith("Trajectory of 'arm', a batch of shape (2,): t = 0 to 0.05 s, 6 saved")
    assert "2 simulations, 1 failed: 1" in text and "runs beyond a limit: 1" in text
    assert "v is not finite from t = 0 s on, in 6 rows" in text


def test_traced_runs_and_masks_are_shown():
    shown = []
    jax.jit(lambda run: shown.append(repr(run)))(simulated())
    assert shown[0].endswith("traced") and "6 saved rows" in shown[0]
    mask = jax.tree.map(lambda _: True, simulated())
    assert repr(mask).startswith("Trajectory(\n") and mask._repr_html_() is None


def test_what_was_not_computed_is_not_drawn():
    """Rows after a step that failed are left out, and the title says why."""
    hinge = dl.Body(name="a", joint=dl.Revolute(name="hinge"), mass=1.0, inertia=np.eye(3))
    system = dl.chain([hinge])

    def lost(t, q, v):
        return jnp.where(t > 0.45, jnp.nan, 0 * v)

    run = dl.simulate(system, [0.0], [1.0], dt=0.1, steps=8, control=lost, save_every=2)
    assert len(run.t) == 5 and len(run.computed().t) == 3
    canvas = run.plot(system)
    assert "not finite" in canvas.get_suptitle()
    assert canvas.axes[0].lines[0].get_xdata().max() < 0.41
    whole = dl.simulate(system, [0.0], [1.0], dt=0.1, steps=8, save_every=2)
    assert whole.computed() is whole


@pytest.mark.slow
def test_a_run_reports_itself(tmp_path):
    """Guards `run.report` without a robot's file, and that it refuses batches."""
    page = Page(simulated().report(arm(), tmp_path / "page", about={"made by": "hand"}))
    assert page.sign == "!Worked, with warnings" and "made by hand" in page.text
    assert "arm was simulated by RKMK4: 5 steps of 0.01 s." in page.text
    titles = "Machine", "Motion", "Drift", "Limits", "State", "Where this comes from"
    assert [title for title in titles if f" {title} " in page.text] == list(titles)
    assert page.values("alt") == ["Machine", "Motion", "Drift"]
    runs = jax.vmap(simulated)(jnp.array([0.1, 0.2]))
    with pytest.raises(ValueError, match="take one, such as"):
        runs.report(arm(), tmp_path)
