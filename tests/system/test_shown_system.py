"""A system shows its tree: joints, masses, units and limits, also where its numbers are traced."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import difflie as dl


def arm(**joint):
    hinge = dl.Revolute(name="hinge", axis=(0, 1, 0), lower=-1.5, upper=2.0, max_effort=3, **joint)
    solid = {"mass": 1.5, "inertia": np.eye(3)}
    return dl.tree(
        [
            dl.Body(name="base", **solid),
            dl.Body(name="<arm>", joint=hinge, parent="base", **solid),
            dl.Body(name="tip", joint=dl.Prismatic(name="slide"), parent="<arm>", **solid),
            dl.Body(name="ball", joint=dl.Spherical(name="socket"), parent="base", **solid),
            dl.Body(name="rod", joint=dl.Revolute(mimic=dl.Mimic("hinge", 2.0, 0.1)),
                    parent="ball", **solid),
        ],
        name="machine",
    )  # fmt: skip


def test_a_system_shows_its_tree():
    """A line for each body; only branches are indented."""
    title, head, *rows = repr(arm()).splitlines()
    assert title.startswith("System 'machine': 5 bodies, nq = 6, nv = 5, 7.5 kg, gravity (0, 0, -9")
    assert head.split() == ["body", "joint", "type", "mass", "[kg]", "limits", "effort"]
    assert [row[:7].rstrip() for row in rows] == ["base", "├ <arm>", "│ tip", "└ ball", "  rod"]
    assert " ".join(rows[1].split()) == "├ <arm> hinge revolute y 1.5 -1.5 to 2 rad 3 N m"
    assert "revolute z, 2 * hinge + 0.1" in rows[4]
    assert str(arm()) == repr(arm())
    assert repr(arm().frozen()).startswith("FrozenSystem 'machine'")


def test_what_is_attached_is_listed():
    """By type and place, a line for each kind."""
    system = dl.attach(arm(), dl.JointStop(stiffness=1e3), dl.Drive("hinge"))
    *_, couplings, actuators = repr(system).splitlines()
    assert couplings == "couplings: JointStop (all joints)"
    assert actuators == "actuators: Drive ('hinge')"


def test_a_notebook_gets_a_table():
    """Names are text in it."""
    page = arm()._repr_html_()
    assert page.count("<tr>") == 6 and "&lt;arm&gt;" in page and "<arm>" not in page
    assert page.count("</tr>") == 6 and "-1.5 to 2 rad" in page


def test_traced_numbers_and_batches_are_shown():
    """Traced numbers are left out; of a batch its shape, the least and the greatest number."""
    shown = []

    def look(system):
        shown.append(repr(system))
        return system.replace(mass=2 * system.bodies.mass)

    jax.jit(look)(arm())
    scales = jnp.array([1.0, 2.0])
    batch = jax.vmap(lambda x: arm().replace(mass=x * arm().bodies.mass))(scales)
    jax.vmap(look)(batch)
    assert all("numbers are traced" in each and "hinge" in each for each in shown)
    assert not any("1.5" in each for each in shown)
    title, _, base, *_ = repr(batch).splitlines()
    assert "a batch of shape (2,)" in title and "7.5...15 kg" in title
    assert "1.5...3" in base


def test_large_machines_are_cut():
    links = [
        dl.Body(name=f"link {k}", joint=dl.Revolute(), com=(1, 0, 0), mass=1.0) for k in range(300)
    ]
    system = dl.chain(links)
    lines = repr(system).splitlines()
    assert len(lines) == 63 and lines[-1] == "... and 240 more bodies"
    assert system._repr_html_().count("<tr>") == 201


@pytest.mark.parametrize("leaf", [None, True, object()])
def test_other_leaves_are_shown_as_they_are(leaf):
    """Such as the axes of `jax.vmap` or the masks of a filter."""
    other = jax.tree.map(lambda _: leaf, arm())
    assert repr(other).startswith("System(\n") and other._repr_html_() is None
