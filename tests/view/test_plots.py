"""Pictures say what they show: names of joints, and units."""

import jax
import numpy as np
import pytest
from trees import zoo

import difflie as dl
from difflie.cli.demo_pictures import draw_descent
from difflie.quantities import Curve
from difflie.view import plots


def texts(axes):
    return axes.get_ylabel(), axes.get_legend_handles_labels()[1]


def test_motions_are_named_by_joints_and_units():
    """One label for each coordinate and velocity, the unit at the line where there are several."""
    bodies = [
        dl.Body(name="a", joint=dl.Free(name="base")),
        dl.Body(name="b", joint=dl.Planar(name="table"), parent="a"),
        dl.Body(name="c", joint=dl.Revolute(name="$elbow"), parent="b"),
        dl.Body(name="d", joint=dl.Prismatic(mimic=dl.Mimic("$elbow", 1.0, 0.0)), parent="c"),
    ]
    moving = [dl.Body(**{**vars(b), "mass": 1.0, "inertia": np.eye(3)}) for b in bodies]
    t = dl.tree(moving).topology
    labels = t.coordinate_labels, t.velocity_labels
    assert [unit for _, unit in labels[0]] == [*"1111", *"mmm", "m", "m", "rad", "rad"]
    names = [f"base.{c}" for c in "wijkxyz"] + [f"table[{i}]" for i in range(3)]
    assert [name for name, _ in labels[0]] == [*names, "$elbow"]
    energies = tuple((part, "J") for part in ("kinetic", "potential", "total"))
    curves = [
        Curve(name, np.arange(2.0), np.zeros((2, len(named))), named)
        for name, named in zip(("q", "v", "energy"), (*labels, energies), strict=True)
    ]
    canvas = plots.curve_figure(curves)
    canvas.draw_without_rendering()
    top, middle, bottom = canvas.axes
    assert texts(top)[0] == "q [1, m, rad]" and texts(top)[1][7] == "table[0] [m]"
    assert texts(middle)[0] == "v [rad/s, m/s]"
    assert texts(middle)[1][0] == "base[0] [rad/s]" and texts(middle)[1][8] == "table[2] [rad/s]"
    assert texts(bottom)[0] == "energy [J]"


def test_what_is_infinite_is_not_drawn():
    """Such as what is left of limits that are none; and its unit is not named at the lines."""
    values = np.stack((np.arange(3.0), np.full(3, np.inf)), axis=1)
    limits = Curve("limit left", np.arange(3.0), values, (("elbow", "rad"), ("base", "m")))
    (axes,) = plots.curve_figure([limits]).axes
    assert texts(axes) == ("limit left [rad]", ["elbow"])


def test_runs_are_plotted():
    """q and v by the names of joints; with the system also its energy and the forces that act."""
    arm = dl.Body(name="arm", joint=dl.Revolute(name="hinge", damping=0.1), mass=1.0, com=(1, 0, 0))
    system = dl.chain([arm])
    run = dl.simulate(system, [0.1], [0.2], dt=0.01, steps=5)
    assert [texts(a) for a in run.plot().axes] == [("q [rad]", ["hinge"]), ("v [rad/s]", ["hinge"])]
    names = [a.get_ylabel() for a in run.plot(system).axes]
    assert names == ["q [rad]", "v [rad/s]", "passive [N m]", "energy [J]"]
    runs = jax.vmap(lambda q: dl.simulate(system, q, [0.2], dt=0.01, steps=5))(np.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"these are \(3,\) runs, and a picture is of one"):
        runs.plot()


def test_every_joint_has_labels():
    t = dl.tree(zoo()).topology
    assert len(t.coordinate_labels) == t.nq and len(t.velocity_labels) == t.nv


def test_the_payloads_mass_and_height_have_axes_of_their_own(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr("difflie.cli.demo_pictures.save", lambda canvas, path: drawn.append(canvas))
    angles = np.zeros((3, 7))
    draw_descent(tmp_path, np.arange(3), angles, angles, np.zeros((3, 2)), (1.0, 0.1))
    assert [a.get_ylabel() for a in drawn[0].axes] == ["q [rad]", "mass [kg]", "height [m]"]
