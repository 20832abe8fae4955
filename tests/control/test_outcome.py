"""What plans say of themselves: missed goals, active bounds, and what to try."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from machines import pendulum, swing
from pages import Page

import difflie as dl
from difflie import control as dc
from difflie.control.outcome import outcome

WEAK = dc.Limits(u_lower=-0.01, u_upper=0.01)


@pytest.fixture(scope="module")
def weak():
    """A problem whose plan converges and leaves the pendulum hanging, and the plan."""
    problem = swing(limits=WEAK, running=[dc.Effort(1e-2)])
    return problem, dc.solve(problem)


def test_a_goal_that_is_missed_is_on_the_first_screen(weak, tmp_path):
    """A search that converged is no motion that arrived: print and page say how far it is."""
    problem, plan = weak
    first, goal, control = str(plan).splitlines()
    assert first.startswith("Plan(cost 49") and len(first.split()[1]) <= 8
    assert "converged after" in first
    assert goal.startswith("at the end 3.1") and "rad ('q rod')" in goal
    assert goal.endswith("rad/s ('rod') from the goal of State")
    assert control.startswith("the largest control is ") and "its bound " in control
    assert "0.01 N m ('rod')" in control and control.endswith("is active at 30 of 30 steps")
    assert repr(plan) == str(plan)
    text = Page(plan.report(problem, tmp_path)).text
    assert "At the end 3.1" in text and "active at 30 of 30 steps." in text


@pytest.mark.slow
def test_every_kind_of_goal_is_measured_in_its_units():
    """Terms measure themselves; entries of weight zero, and terms without a goal, do not count."""
    system = pendulum()
    tip = dl.Frame("rod", position=(0.0, 0.0, -1.0))
    final = [
        dc.Pose(tip, jnp.eye(4), 1.0),
        dc.Point(tip, [0.0, 0.3, 1.0], [1.0, 0.0, 1.0]),
        dc.Point(tip, [0.0, 0.3, -1.0], [0.0, 1.0, 0.0]),
        dc.Configuration([1.0]),
        dc.Velocity(1.0, [2.0]),
        dc.Velocity(1.0),
        dc.Energy(3.0),
        dc.Reach("rod", [0.0, 0.0, 0.0]),
        dc.Cost(lambda system, q, v, u, t: q, goal=0.5),
    ]
    problem = swing(system, final=final, limits=dc.Limits())
    rest = jnp.zeros((31, 1))
    plan = dc.solve(problem, guess=jnp.zeros((30, 1)), seconds=0.0)
    still = outcome(problem, replace(plan, q=rest, v=rest, u=jnp.full((30, 1), -2.0)))
    assert still == [
        "at the end 0 rad ('turn x') and 1 m ('z') from the goal of Pose",
        "at the end 2 m ('z') from the goal of Point (deviation of origin of 'rod')",
        "at the end 0.3 m ('y') from the goal of Point (deviation of origin of 'rod')",
        "at the end 1 rad ('rod') from the goal of Configuration",
        "at the end 2 rad/s ('rod') from the goal of Velocity",
        "at the end 7.91 J ('total') from the goal of Energy",
        "at the end 0 m ('x') from the goal of Reach",
        "at the end 0.5 ('[0]') from the goal of Cost",
        "the largest control is -2 N m ('rod'), without bounds",
    ]


@pytest.mark.slow
def test_what_is_left_of_a_search_says_what_to_try(tmp_path):
    """Nearly optimal is not failed, and `converged` stays what it was."""
    problem = swing()
    whole = dc.solve(problem)
    few = dc.solve(problem, dc.FDDP(iterations=2))
    assert "try more, iterations=4 of the solver, another guess" in str(few.result)
    assert not few.result.nearly_optimal and whole.result.nearly_optimal
    left = jnp.maximum(few.result.kkt.stationarity, few.result.kkt.gap)
    near = replace(few, result=replace(few.result, tolerance=left / 50))
    assert not near.result.converged and near.result.nearly_optimal
    assert "the plan is nearly optimal" in str(near.result)
    assert Page(near.report(problem, tmp_path)).sign == "!Worked, with warnings"


def test_plans_under_transformations_and_masks_are_printed(weak):
    """What they were made from is lost there, and nothing that is printed raises."""
    plan = weak[1]
    assert str(jax.tree.map(lambda a: a, plan)) == str(plan).splitlines()[0]
    assert "status=True" in str(jax.tree.map(lambda a: True, plan))
    assert "a batch of them" in repr(jax.tree.map(lambda a: jnp.stack((a, a)), plan))
    jax.jit(lambda plan: (repr(plan), plan.cost)[1])(plan)
