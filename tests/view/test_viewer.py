"""The viewer without a browser: sliders, time, live simulation, the server."""

import socket
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import difflie as dl
from difflie.cli.view import Stepper
from difflie.view.scenes import scene, still
from difflie.view.viewer import LAYERS, Machine, Pull, Settings, opened, record, show
from difflie.view.viewer.clock import Clock, row_at
from difflie.view.viewer.drawn import Drawn
from difflie.view.viewer.live import FRAME, LiveMachine
from difflie.view.viewer.playback import readable, together
from difflie.view.viewer.posing import closed_at, gizmos, moved, sliders, unset
from difflie.view.viewer.server import started, stop
from difflie.view.viewer.stage import bounds, extent
from difflie.view.viewer.viewer import as_html

CONFIGS = Path(__file__).parent.parent.parent / "configs"
DOWN = Settings("RKMK4", 2e-3, (0.0, 0.0, -9.81))


class Rows(NamedTuple):
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    u: None = None


def pendulum() -> dl.System:
    return dl.load(CONFIGS / "double_pendulum.urdf")


def arm(*joints: dl.Joint) -> dl.System:
    """Bodies of 1 kg, each on a joint of the one before, whose frame is moved and turned."""
    placed = {"position": (0.1, 0.2, 0.3), "rotation": (0.3, -0.2, 0.1)}
    mass = {"mass": 1.0, "com": (0, 0, -0.2), "inertia": np.eye(3) / 50}
    bodies = [dl.Body(name=f"body{k}", joint=j, **placed, **mass) for k, j in enumerate(joints)]
    return dl.chain(bodies)


def machine(system: dl.System, q, **settings) -> Machine:
    start = Settings(**{**vars(DOWN), **settings})
    return Machine(system, np.array(q), np.zeros(system.nv), None, Stepper(system, start))


def frames(live: LiveMachine, count: int) -> None:
    for _ in range(count):
        live.tick(1.1 * FRAME)


def test_sliders_keep_within_limits(tmp_path):
    """Without limits they turn by a half; mimic joints have none; half open ranges are wide."""
    file = tmp_path / "arm.urdf"
    link = '<link name="{}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'  # noqa: E501
    joint = '<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/><axis xyz="0 0 1"/>{4}</joint>'  # noqa: E501
    limit = '<limit lower="{}" upper="{}" effort="1" velocity="1"/>'
    file.write_text(
        "<robot name='r'>"
        + "".join(map(link.format, "abcde"))
        + joint.format("turn", "revolute", "a", "b", limit.format(-0.5, 1.5))
        + joint.format("slide", "prismatic", "b", "c", limit.format(0.0, 0.2))
        + joint.format("wheel", "continuous", "c", "d", "")
        + joint.format("follower", "continuous", "d", "e", '<mimic joint="wheel"/>')
        + "</robot>"
    )
    made = {s.name: (s.unit, s.lower, s.upper) for s in sliders(dl.load(file))}
    assert made == {
        "turn": ("rad", -0.5, 1.5),
        "slide": ("m", 0.0, 0.2),
        "wheel": ("rad", -np.pi, np.pi),
    }


@pytest.mark.parametrize("k", [0, 1])
def test_a_gizmo_puts_its_body_at_its_pose(k):
    """Guards the frames of the joint: a placement of its own, and a parent that moves."""
    system = arm(dl.Free(), dl.Spherical())
    rng = np.random.default_rng(1)
    q, aim = (
        np.asarray(dl.integrate(system, system.neutral(), rng.normal(size=system.nv)))
        for _ in range(2)
    )
    gizmo = gizmos(system)[k]
    poses = np.asarray(dl.body_poses(system, q))
    pose = np.asarray(dl.body_poses(system, aim))[gizmo.body]
    new = np.asarray(dl.body_poses(system, moved(system, gizmo, q, poses, pose)))[gizmo.body]
    assert np.allclose(new[:3, :3], pose[:3, :3], atol=1e-12)
    assert gizmo.turns or np.allclose(new, pose, atol=1e-12)
    assert unset(system) == []


@pytest.mark.slow
def test_posing_closes_loops():
    """A slider of a machine with loops moves the others along; where it cannot, nothing moves."""
    system = dl.load(CONFIGS / "fourbar_leg.urdf", loops=CONFIGS / "fourbar_leg.loops.toml")
    start, _ = dl.assemble(system, np.zeros(system.nq))
    live = LiveMachine(Machine(system, np.array(start), np.zeros(system.nv)))
    wanted = np.array(start)
    wanted[0] += 0.2
    live.pose(wanted)
    live.tick(0.0)
    q, _ = closed_at(system, wanted, np.zeros(system.nv))
    assert np.allclose(live.q, q)
    live.pose(np.full(system.nq, 40.0))
    live.tick(0.0)
    assert np.allclose(live.q, q) == bool(live.message)


def test_the_clock_repeats_or_stops():
    """Time goes on with the speed while it plays, begins again, or ends."""
    clock = Clock(1.0, 3.0, speed=2.0)
    clock.advance(0.5)
    assert clock.time == 1.0
    clock.play(True)
    clock.advance(0.75)
    assert clock.time == 2.5
    clock.advance(0.5)
    assert clock.time == pytest.approx(1.5)
    clock.loop = False
    clock.advance(5.0)
    assert (clock.time, clock.playing) == (3.0, False)
    clock.play(True)
    assert (clock.time, clock.playing) == (1.0, True)


def test_a_row_is_the_nearest_time():
    """Also before the start, after the end, and in a motion of one row."""
    t = np.array([0.0, 1.0, 4.0])
    assert [row_at(t, x) for x in (-1, 0.4, 0.6, 2.4, 2.6, 9)] == [0, 0, 1, 1, 2, 2]
    assert row_at(t[:1], 3.0) == 0


def test_motions_of_different_lengths_have_their_energies_at_common_times():
    """A shorter motion has no energy where it has ended; one that ends in NaN is cut and said."""
    system = pendulum()
    run = dl.simulate(system, [0.5, 0.0], [0.0, 0.0], dt=0.01, steps=100)
    rows = Rows(*(np.array(a) for a in (run.t, run.q, run.v)))
    rows.q[51:] = np.nan
    long, short = scene(system, run), scene(system, rows)
    t, energies = together([long, short])
    assert t[-1] == pytest.approx(1.0)
    assert np.isfinite(energies[0]).all()
    assert np.array_equal(np.isnan(energies[1]), t > 0.5 + 1e-9)
    assert len(short.remarks) == 1 and extent(long) == extent(short)


@pytest.mark.parametrize(
    ("energies", "shown", "label"),
    [
        ([1.0, 2.5], [1.0, 2.5], "energy [J]"),
        ([0.0, 0.0], [0.0, 0.0], "energy [J]"),
        ([2e6, 3e6], [2.0, 3.0], "energy [1e6 J]"),
        ([10.0, 10.0 + 2**-20], [0.0, 2**-20 * 1e7], "E - E(0) [1e-7 J]"),
        ([7.0, 7.0], [0.0, 0.0], "E - E(0) [J]"),
    ],
)
def test_marks_of_the_energy_tell_apart(energies, shown, label):
    """Three decimals are enough for what is drawn, also of an energy that is nearly kept."""
    values, said = readable(np.array([[np.nan, *energies]]))
    np.testing.assert_allclose(values[0, 1:], shown)
    assert said == label


def test_names_are_no_markup():
    """What is written below the controls has the letters of its names, whatever they are."""
    assert "a &lt;b&gt; {c}" in as_html(["a <b> {c}"])


def test_springs_and_their_anchors_are_looked_at():
    """The first view holds an anchor far from all bodies."""
    system = dl.attach(pendulum(), dl.Spring([(None, (0, 0, 7.0)), ("upper", (0, 0, 0))], 1.0, 1.0))
    assert bounds(still(system))[1][2] == pytest.approx(7.0)


def test_live_simulation_is_the_simulation():
    """Frame by frame the same motion as in one run, within rounding."""
    system = pendulum()
    live = LiveMachine(machine(system, [1.0, 0.3]))
    live.run(True)
    frames(live, 21)
    steps = round(live.t / DOWN.dt)
    assert steps > 100
    run = dl.simulate(system, [1.0, 0.3], [0.0, 0.0], dt=DOWN.dt, steps=steps)
    assert np.allclose(live.q, run.q[-1], atol=1e-9)
    assert np.allclose(live.scene.poses[0], dl.body_poses(system, live.q))


def test_live_simulation_steps_pauses_and_starts_again():
    """One step is one time step; a pause holds the state; reset is the beginning."""
    live = LiveMachine(machine(pendulum(), [1.0, 0.3]))
    live.step()
    frames(live, 3)
    assert live.t == pytest.approx(DOWN.dt) and not live.running
    held = live.q
    frames(live, 2)
    assert live.q is held
    live.reset()
    frames(live, 1)
    assert live.t == 0 and np.array_equal(live.q, [1.0, 0.3])


def test_gravity_and_method_change_while_it_runs():
    """Without gravity a pendulum at rest stays; with it sideways it moves there."""
    live = LiveMachine(machine(pendulum(), [0.0, 0.0]))
    live.change(gravity=(0.0, 0.0, 0.0), method="SemiImplicitEuler")
    live.run(True)
    frames(live, 4)
    assert np.allclose(live.q, 0) and live.t > 0
    live.change(gravity=(9.81, 0.0, 0.0))
    frames(live, 12)
    assert live.scene.com[0, 0] > 0.05


def test_dragging_draws_a_body_to_the_mouse():
    """The body comes nearer to where it is drawn, and swings back after it."""
    live = LiveMachine(machine(pendulum(), [0.0, 0.0]))
    live.drag(Pull("lower", (0.0, 0.0, -0.3), (0.5, 0.0, -0.2)))
    live.run(True)
    frames(live, 30)
    point, target = live.pulled
    assert point[0] > 0.2 and target[0] == 0.5
    live.drag(None)
    frames(live, 60)
    assert live.pulled == (None, None)
    assert live.scene.com[0, 0] < 0.15


def test_what_cannot_be_simulated_is_told_and_pauses():
    """An unknown method and a state that is not finite end in a sentence, not in the thread."""
    live = LiveMachine(machine(pendulum(), [0.0, 0.0], method="RK5"))
    live.run(True)
    frames(live, 3)
    assert not live.running and "RK5" in live.message
    live = LiveMachine(machine(pendulum(), [3.0, 0.0], dt=0.05))
    live.change(gravity=(0.0, 0.0, -1e29))
    live.run(True)
    frames(live, 5)
    assert not live.running and "finite" in live.message
    assert np.isfinite(live.q).all()


def test_a_port_in_use_is_told_with_a_free_one():
    """The sentence names a port that can be used."""
    with socket.socket() as other:
        other.bind(("localhost", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {port} cannot be used: .*; port .* is free"):
            started("localhost", port)
    with pytest.raises(ValueError, match="the port is 70000"):
        started("localhost", 70000)


def test_without_viser_it_is_told_what_to_install(monkeypatch):
    """One sentence with the command."""
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[viewer\]'"):
        started("localhost", None)


def test_no_browser_is_opened_without_a_display(monkeypatch):
    """A browser for terminals would take over the terminal."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert not opened("http://localhost:1")


def test_nothing_to_show_is_told():
    """Rather than an empty page."""
    with pytest.raises(ValueError, match="nothing to show"):
        show([])


@pytest.mark.slow
def test_all_that_can_be_shown_is_drawn(tmp_path):
    """Springs, contact forces, momentum, frames and traces of a motion, side by side with another.

    Springs are red where they pull and blue where they push, in the strongest colour at the largest
    tension of the motion.
    """
    system = dl.attach(
        pendulum(),
        dl.Spring([(None, (0.2, 0, 0)), ("lower", (0, 0, -0.3))], stiffness=20.0, rest_length=0.4),
        dl.PlaneContact(
            [(None, (0, 0, -0.45)), ("lower", (0, 0, -0.3))], stiffness=1e3, normal=(0, 0, 1)
        ),
    )
    run = dl.simulate(system, [0.9, 0.2], [0.0, 0.0], dt=2e-3, steps=300, save_every=5)
    motion = scene(system, run)
    assert np.abs(motion.contacts[0].forces).max() > 0
    path = record([motion, motion], tmp_path / "all.html", shown=dict.fromkeys(LAYERS, True))
    assert path.stat().st_size > 5e5
    server = started("localhost", 0)
    try:
        drawn = Drawn(server, "/machine", motion, 1.0)
        drawn.choose(dict.fromkeys(LAYERS, True), 0)
        tension = motion.springs[0].tension
        for row in (int(np.argmax(tension)), int(np.argmin(tension))):
            drawn.show(motion, row)
            red, _, blue = server.scene.get_handle_by_name("/machine/springs").colors[0, 0].tolist()
            assert (red > blue) == (tension[row] > 0)
        touching = np.abs(motion.contacts[0].forces).max(axis=(1, 2)) > 1.0
        for row in (int(np.argmax(touching)), int(np.argmin(touching))):
            drawn.show(motion, row)
            seen = server.scene.get_handle_by_name("/machine/contact forces")
            assert (seen is not None and seen.visible) == touching[row]
    finally:
        stop(server)
