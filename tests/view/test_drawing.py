"""Pictures of machines: what is drawn where, in which files, and what cannot be drawn."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from PIL import Image

import difflie as dl
from difflie.io.appearance.shape import Shape, box, ellipsoid
from difflie.io.files import OutputError
from difflie.view.animate import write_picture
from difflie.view.camera import Camera
from difflie.view.drawing import DrawOptions, Outline, Picture, camera_for, draw, encloses
from difflie.view.scenes import inertia_ellipsoids, scene, still

ROD = {"mass": 2.0, "com": (0.0, 0.0, -0.5), "inertia": np.diag([0.17, 0.17, 0.004])}


def pendulum(**gravity):
    hinge = dl.Revolute(axis=(0.0, 1.0, 0.0))
    system = dl.tree([dl.Body(name="rod", joint=hinge, **ROD)], name="pendulum", **gravity)
    return dl.attach(system, dl.Spring([(None, (1.0, 0, 0)), ("rod", (0, 0, -1.0))], 10.0, 1.0))


@pytest.fixture(scope="module")
def swinging():
    run = dl.simulate(pendulum(), jnp.array([1.0]), jnp.zeros(1), dt=0.02, steps=20)
    return scene(pendulum(), run)


def collection(canvas):
    (found,) = [c for c in canvas.axes[0].collections if isinstance(c, PolyCollection)]
    return found


def test_a_scene_is_the_motion(swinging):
    """Poses, spring, centre of mass and energy are those of the functions that compute them."""
    run = dl.simulate(pendulum(), jnp.array([1.0]), jnp.zeros(1), dt=0.02, steps=20)
    system, k = pendulum(), 7
    np.testing.assert_allclose(swinging.poses[k], dl.body_poses(system, run.q[k]), atol=1e-14)
    np.testing.assert_allclose(swinging.com[k], dl.center_of_mass(system, run.q[k]), atol=1e-14)
    np.testing.assert_allclose(swinging.momentum[k], dl.momentum(system, run.q[k], run.v[k]))
    (spring,) = swinging.springs
    length = np.linalg.norm(np.diff(spring.points[k], axis=0))
    np.testing.assert_allclose(spring.tension[k], 10.0 * (length - 1.0), rtol=1e-12)
    np.testing.assert_allclose(
        spring.points[k, 1], swinging.poses[k, 0] @ (0, 0, -1, 1) @ np.eye(4, 3)
    )
    np.testing.assert_allclose(swinging.energy.values[:, 2], sum(run.energy(system)), rtol=1e-12)


def test_forces_of_contacts_are_drawn_where_they_act():
    """A ball that rests on the ground is held by its weight at the contact point."""
    ball = dl.Body(name="ball", joint=dl.Translation(), mass=1.0)
    contact = dl.PlaneContact(
        [(None, (0, 0, 0)), ("ball", (0, 0, 0))], 981.0, (0, 0, 1.0), radius=0.1
    )
    system = dl.attach(dl.tree([ball], name="ball"), contact)
    view = still(system, jnp.array([0.3, 0.0, 0.09]))
    (arrows,) = view.contacts
    np.testing.assert_allclose(arrows.forces[0], [[0, 0, 9.81]], rtol=1e-6)
    np.testing.assert_allclose(arrows.points[0], [[0.3, 0, 0]], atol=0.02)


def test_ellipsoids_have_the_inertia_of_their_bodies():
    """A solid ellipsoid of the same mass, integrated over its tetrahedra, has the same inertia."""
    system = pendulum()
    shape = inertia_ellipsoids(system)["rod"][0]
    a, b, c = np.moveaxis(shape.vertices[shape.faces] - ROD["com"], 1, 0)
    volumes = np.sum(a * np.cross(b, c), axis=1) / 6
    total = a + b + c
    second = np.einsum("n,ni,nj->ij", volumes, total, total)
    second += sum(np.einsum("n,ni,nj->ij", volumes, x, x) for x in (a, b, c))
    second *= 2.0 / (20 * volumes.sum())
    inertia = np.trace(second) * np.eye(3) - second
    assert volumes.sum() > 0
    np.testing.assert_allclose(inertia[0, 0], 0.17, rtol=0.06)
    np.testing.assert_allclose(inertia[1, 1], 0.17, rtol=0.06)


def test_the_near_is_painted_over_the_far():
    """Of two boxes behind each other the nearer is painted last."""
    size = np.array([0.5, 0.5, 0.5])
    shapes = {
        None: (
            Shape(box(size)[0] + (0, 3, 0), box(size)[1], (1, 0, 0, 1)),
            Shape(box(size)[0] + (0, 6, 0), box(size)[1], (0, 0, 1, 1)),
        )
    }
    view = still(pendulum(gravity=(0, 0, 0)), appearance=shapes)
    camera = Camera.looking_at((0, 3, 0), (0, 0, 0))
    faces = collection(draw(view, camera, shown=DrawOptions(ground=False))).get_facecolors()
    red, blue = (np.flatnonzero((faces[:, c] > 0.1) & (faces[:, 2 - c] < 0.1)) for c in (0, 2))
    assert blue.max() < red.max()


def test_the_camera_holds_all_of_it(swinging):
    """A camera that is not given sees every corner, near the edges of the picture."""
    points = np.random.default_rng(0).normal(size=(50, 3)) * (3, 1, 0.2)
    seen = np.abs(np.asarray(camera_for(points).project(points)))
    assert 0.85 < seen.max() <= 0.9 + 1e-9
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw(swinging)


def test_the_ground_runs_to_its_vanishing_points():
    """Lines of the ground end at the horizon, where their directions vanish, and never above it."""
    view = still(pendulum())
    camera = Camera.looking_at((0, 0, -0.5), (0.5, -6.0, 1.0))
    lines = [p for p in collection(draw(view, camera)).get_paths() if len(p.vertices) == 2]
    l = np.asarray(camera.horizon(np.array([0, 0, 1.0])))  # noqa: E741
    # From (PX, PY) to the axes, whose y runs from -1 to 1.
    h = float(camera.half_height)
    heights = np.array([[l @ (*(h * v), 1.0) for v in p.vertices] for p in lines])
    at_the_end = heights[np.abs(heights).min(axis=1) < 1e-9]
    assert len(at_the_end) > 10
    # And the others are on one side of it, below.
    grid = heights[(np.abs(heights) > 1e-9).all(axis=1)][-50:]
    assert (np.sign(grid) == np.sign(grid[0, 0])).all()


def test_a_camera_that_cannot_see_says_why(swinging):
    """Inside of a body, behind, beside: one sentence each."""
    inside = Camera.looking_at((5, 0, 0), swinging.com[-1])
    with pytest.raises(ValueError, match="is inside of rod; move it away"):
        draw(swinging, inside)
    with pytest.raises(ValueError, match="in view: it is all behind the camera; look at"):
        draw(swinging, Camera.looking_at((9, 0, 0), (5, 0, 0)))
    with pytest.raises(ValueError, match="all beside the camera's view"):
        draw(swinging, Camera.looking_at((0, 0, 9), (5, 0, 0)))
    with pytest.raises(ValueError, match=r"it is all beyond far = 0.5 m"):
        draw(swinging, Camera.looking_at((0, 0, 0), (5, 0, 0), far=0.5))
    poses = np.stack([np.asarray(Camera.looking_at((0, 0, 0), (5, 0, 0)).pose)] * 2)
    with pytest.raises(ValueError, match=r"these are \(2,\) cameras"):
        draw(swinging, Camera(poses, *np.full((3, 2), 0.5)))
    with pytest.raises(ValueError, match=r"moments .* not all there"):
        draw(swinging, moments=[99])
    with pytest.raises(ValueError, match="no body 'hand'"):
        draw(swinging, shown=DrawOptions(traces=["hand"]))


def test_motions_that_cannot_be_drawn_are_refused_or_cut():
    """NaN: up to there, and said. Another machine, a batch, or nothing at all: one sentence."""
    t, q, v = np.arange(4.0), np.zeros((4, 1)), np.zeros((4, 1))
    q[2] = np.nan
    view = scene(pendulum(), SimpleNamespace(t=t, q=q, v=v))
    assert len(view.t) == 2
    assert view.remarks == ("not finite from t = 2 s on; drawn up to there",)
    assert "drawn up to there" in draw(view).axes[0].get_title(loc="left")
    with pytest.raises(ValueError, match="the first row of the motion is not finite"):
        scene(pendulum(), SimpleNamespace(t=t, q=np.nan * q, v=v))
    with pytest.raises(ValueError, match="the motion of another machine"):
        scene(pendulum(), SimpleNamespace(t=t, q=np.zeros((4, 3)), v=np.zeros((4, 3))))
    for wrong in ({"t": t[:2]}, {"q": q[0]}, {"t": 0.0}):
        with pytest.raises(ValueError, match=r"have the shapes .* those of a motion are \(m,\)"):
            scene(pendulum(), SimpleNamespace(**{"t": t, "q": v, "v": v, **wrong}))
    with pytest.raises(ValueError, match="the motion has no moment"):
        scene(pendulum(), SimpleNamespace(t=t[:0], q=v[:0], v=v[:0]))
    with pytest.raises(ValueError, match="has no body 'hand', to which the appearance gives"):
        still(pendulum(), appearance={"hand": (Shape(*box(np.ones(3))),)})
    many = jax.tree.map(lambda a: jnp.stack([a, a]), pendulum())
    with pytest.raises(ValueError, match=r"these are \(2,\) systems"):
        scene(many, SimpleNamespace(t=t, q=v, v=v), {"rod": (Shape(*box(np.ones(3))),)})
    with pytest.raises(ValueError, match=r"these are .* runs"):
        scene(pendulum(), SimpleNamespace(t=np.zeros((2, 4)), q=q, v=v))


@pytest.mark.slow
def test_pictures_are_written_in_every_format(swinging, tmp_path):
    """PNG, SVG, GIF and MP4, without a display; the frames move."""
    shown = DrawOptions(traces=["rod"], frames=True, center=True)
    for name in ("a.png", "a.svg", "a.gif", "a.mp4"):
        path = write_picture(swinging, tmp_path / name, shown=shown, rate=10.0)
        assert path.stat().st_size > 1000
    with Image.open(tmp_path / "a.gif") as gif:
        assert gif.n_frames == 5
        first = np.asarray(gif.convert("RGB"), int)
        gif.seek(4)
        assert (np.abs(np.asarray(gif.convert("RGB"), int) - first) > 40).any()
    assert b"ftyp" in (tmp_path / "a.mp4").read_bytes()[:32]
    assert (tmp_path / "a.svg").read_text().count("<path") > 20
    with pytest.raises(OutputError, match=r"a\.jpg: pictures are written as"):
        write_picture(swinging, tmp_path / "a.jpg")
    with pytest.raises(OutputError, match="are 4001 frames, at most"):
        write_picture(swinging, tmp_path / "a.mp4", rate=1e4)
    with pytest.raises(OutputError, match="a GIF shows at most 50 frames per second"):
        write_picture(swinging, tmp_path / "a.gif", rate=60.0)
    for wrong in ({"rate": 0.0}, {"speed": -1.0}):
        with pytest.raises(ValueError, match="it must be positive"):
            write_picture(swinging, tmp_path / "a.gif", **wrong)


def test_a_gif_keeps_colours_and_stores_what_moves(swinging, tmp_path):
    """Guards that thin lines keep their colours and the background is white, in small files."""
    path = write_picture(swinging, tmp_path / "a.gif", shown=DrawOptions(frames=True), rate=20.0)
    with Image.open(path) as gif:
        frames = [
            (gif.seek(k), np.asarray(gif.convert("RGB"), int))[1] for k in range(gif.n_frames)
        ]
    for frame in frames:
        red, green, blue = np.moveaxis(frame, -1, 0)
        assert (frame[-3:, :3] == 255).all()
        for one, others in ((red, (green, blue)), (blue, (red, green))):
            assert (one - np.maximum(*others) > 60).any()
    assert path.stat().st_size < 12_000 * len(frames)


def test_long_titles_leave_the_picture_its_size(swinging, tmp_path):
    """A name of many words, or of one, takes some lines."""
    for name in ("very long name " * 20, "long" * 60):
        path = write_picture(replace(swinging, name=name), tmp_path / "a.png")
        with Image.open(path) as image, Image.open(write_picture(swinging, path)) as other:
            assert image.width < 1.1 * other.width


def test_a_gif_lasts_as_long_as_its_motion(swinging, tmp_path):
    """Frames that are no whole hundredths of a second add up to the time of the motion."""
    path = write_picture(swinging, tmp_path / "a.gif", rate=30.0)
    with Image.open(path) as gif:
        lengths = [(gif.seek(k), gif.info["duration"])[1] for k in range(gif.n_frames)]
    assert set(lengths) == {30, 40}
    assert abs(sum(lengths) - 1000 * len(lengths) / 30) <= 5


def test_surfaces_know_what_they_enclose_and_their_outlines():
    """A point in a ball, beside it, and in a shell of another shape; edges of a cube."""
    vertices, faces = ellipsoid(np.array([1.0, 0.5, 0.5]))
    assert encloses(vertices, faces, np.array([0.9, 0, 0]))
    assert not encloses(vertices, faces, np.array([0.9, 0.4, 0]))
    assert not encloses(vertices, faces, np.array([1.1, 0, 0]))
    cube = Outline.of(Shape(*box(np.ones(3))))
    starts, _ = cube.visible_edges(cube.vertices, np.array([9.0, 8.0, 7.0]))
    assert len(starts) == 9  # of the twelve edges three are behind


@pytest.mark.slow
def test_impulses_of_hard_contacts_are_drawn():
    """A ball that rests on hard ground is carried by its weight times the step, at its foot."""
    ball = dl.Body(name="ball", joint=dl.Translation(), mass=1.0)
    ground = dl.constraints.SphereOnPlane(
        dl.Frame("ball"), dl.Frame(None), radius=0.1, friction=0.5
    )
    system = dl.constrain(dl.tree([ball], name="ball"), ground)
    start = jnp.array([0.0, 0.0, 0.1]), jnp.zeros(3)
    run = dl.simulate(system, *start, dt=0.01, steps=10, method=dl.Moreau())
    (arrows,) = scene(system, run).contacts
    assert arrows.unit == "N s"
    np.testing.assert_allclose(arrows.forces[-1], [[0, 0, 0.0981]], atol=1e-6)
    np.testing.assert_allclose(arrows.points[-1], [[0, 0, 0]], atol=1e-3)
    title = draw(scene(system, run)).axes[0].get_title(loc="left")
    assert "longest arrow: 0.0981 N s" in title


def test_attitudes_that_are_none_end_the_picture():
    """A quaternion that is zero has no pose: drawn up to there, as with a number that is NaN."""
    system = dl.tree([dl.Body(name="top", joint=dl.Free(), **ROD)], name="top")
    q = np.tile(np.asarray(system.neutral()), (3, 1))
    q[2] = 0.0
    view = scene(system, SimpleNamespace(t=np.arange(3.0), q=q, v=np.zeros((3, 6))))
    assert len(view.t) == len(view.poses) == len(view.com) == 2
    assert view.remarks == ("not finite from t = 2 s on; drawn up to there",)


def test_floors_neither_hide_a_machine_nor_make_it_small():
    """A large floor of the world is painted first, and the camera sees the machine."""
    floor = Shape(
        box(np.ones(3))[0] * (60, 60, 0.1) - (0, 0, 1.3), box(np.ones(3))[1], (0, 0, 1, 1)
    )
    rod = Shape(
        box(np.ones(3))[0] * (0.1, 0.1, 1.0) - (0, 0, 0.5), box(np.ones(3))[1], (1, 0, 0, 1)
    )
    view = still(pendulum(), appearance={None: (floor,), "rod": (rod,)})
    for camera in (None, Camera.looking_at((0, 0, -0.5), (25, 3, 0.2))):
        drawn = collection(draw(view, camera, shown=DrawOptions(ground=False)))
        faces = drawn.get_facecolors()
        red, blue = (np.flatnonzero((faces[:, c] > 0.1) & (faces[:, 3] == 1)) for c in (0, 2))
        blue = np.setdiff1d(blue, np.flatnonzero(faces[:, 0] > 0.1))
        assert blue.max() < red.min()
        if camera is None:
            at = np.concatenate([drawn.get_paths()[k].vertices for k in red])
            assert np.ptp(at, axis=0).max() > 0.5


def test_the_camera_is_not_put_into_a_wall():
    """Where a large block of the world is in its way it sees the block, too."""
    corners, faces = box(np.ones(3))
    wall = Shape(corners * 20 + (11.0, 0, 0), faces, (0, 0, 1, 1))
    view = still(pendulum(), appearance={None: (wall,), "rod": (Shape(corners, faces),)})
    assert np.asarray(camera_for(Picture(view, None, DrawOptions()).points).eye)[0] > 1.0
    draw(view)
    with pytest.raises(ValueError, match="is inside of a shape of the world; move it away"):
        draw(view, Camera.looking_at((0, 0, 0), (11.0, 0, 0)))


def test_a_machine_of_nothing_is_refused():
    """Bodies without mass and shape leave an empty picture: one sentence instead."""
    body = dl.Body(name="b", joint=dl.Fixed())
    with pytest.raises(ValueError, match="empty has nothing to draw: its bodies have no shapes"):
        draw(still(dl.tree([body], name="empty")))
