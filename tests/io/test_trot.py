"""Quadrupeds from their files trot on feet that touch the ground, by servos."""

import importlib
from importlib import metadata
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl

pytest.importorskip("mujoco")
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("ground", ["plane", pytest.param("hills", marks=pytest.mark.thorough)])
def test_the_worked_example_walks(ground, monkeypatch):
    """Guards experiments/trot.py: 10 s forwards on a plane and on a height field, upright."""
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    trot = importlib.import_module("trot")
    _, run, figures = trot.walk(trot.Options(ground=ground))
    assert run.result.ok, run.result
    assert figures["upright"] > 0.9 and figures["way"] > 2.5


def barkour(ground, tmp_path):
    """The file of barkour_v0 in the package mujoco-mjx, on its height field or on a plane."""
    try:
        files = metadata.files("mujoco-mjx") or []
    except metadata.PackageNotFoundError:
        pytest.skip("mujoco-mjx is not installed; it is in the extra collections")
    path = next(Path(f.locate()) for f in files if f.name == "barkour_v0_mjx.xml")
    if ground == "its height field":
        return path
    field = '<geom name="hfield_floor" type="hfield" hfield="rand_uniform" conaffinity="1"/>'
    text = path.read_text()
    assert field in text
    text = text.replace(field, '<geom type="plane" size="1 1 1" conaffinity="1"/>')
    text = text.replace('meshdir="."', f'meshdir="{path.parent}"')
    text = text.replace('file="hfield', f'file="{path.parent}/hfield')
    (tmp_path / "barkour.xml").write_text(text)
    return tmp_path / "barkour.xml"


def gait(t, q, v):
    """The commands (12,) of the servos, left front, left hind, right front, right hind."""
    phase = 4 * np.pi * t + np.pi * np.array([0.0, 1.0, 1.0, 0.0])
    begun = jnp.minimum(2 * t, 1)
    lift = 0.5 * begun * jnp.maximum(jnp.sin(phase), 0)
    swing = 0.15 * begun * jnp.cos(phase)
    return jnp.stack([0 * lift, 0.5 + 0.6 * lift + swing, 1 + lift], 1).ravel()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*not used")
@pytest.mark.parametrize("ground", ["plane", "its height field"])
def test_barkour_trots(ground, tmp_path):
    """Guards 10 s without falling of a robot from a file that others wrote."""
    system = dl.load(barkour(ground, tmp_path), actuators=True, contacts=True)
    q = system.state("standing").q.at[6].set(0.25)  # above the highest of its heights
    run = dl.simulate(
        *(system, q, np.zeros(system.nv)), dt=1.5e-4, steps=66_667, save_every=100, control=gait
    )
    assert run.result.ok, run.result
    assert (1 - 2 * (run.q[:, 1] ** 2 + run.q[:, 2] ** 2)).min() > 0.85
    assert run.q[:, 6].min() > 0.15
