"""Perspective: by hand, against pytransform3d, at infinity, and its derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import pytransform3d.camera as pc
import pytransform3d.transformations as pt

from difflie.groups import se3
from difflie.view import projective
from difflie.view.camera import Camera, along_line
from difflie.view.projective import clip_polygon, clip_segments, inside

STRAIGHT = Camera(np.eye(4), half_width=2.0, half_height=1.0, near=1.0, far=9.0)


def camera(seed=0, **numbers):
    rng = np.random.default_rng(seed)
    pose = np.asarray(se3.exp(jnp.array(rng.normal(size=6)) * 0.3))
    return Camera(pose, **{"half_width": 0.8, "half_height": 0.6, **numbers})


def cloud(seed=1, n=12):
    """Points in front of `camera`."""
    rng = np.random.default_rng(seed)
    inner = np.column_stack((rng.normal(size=(n, 2)), rng.uniform(3, 8, n)))
    pose = np.asarray(camera().pose)
    return inner @ pose[:3, :3].T + pose[:3, 3]


def test_the_architects_perspective_by_hand():
    """The perspective division (16) keeps the scale: PX = x/z, PY = y/z, PT = s/z."""
    X = jnp.array([[1.0, 2.0, 4.0, 1.0], [2.0, 4.0, 8.0, 2.0], [3.0, -6.0, 2.0, 0.0]])
    seen = [[0.25, 0.5, 0.25], [0.25, 0.5, 0.25], [1.5, -3.0, 0.0]]
    np.testing.assert_allclose(STRAIGHT.architect(X), seen, rtol=1e-15)
    # From a camera at (0, 0, 5) that looks down, x to the right, the world's y is up.
    down = Camera.looking_at((0, 0, 0), (0, 0, 5), up=(0, 1, 0))
    np.testing.assert_allclose(
        down.architect(projective.points([[1.0, 2.0, 0.0]])), [[0.2, -0.4, 0.2]], atol=1e-15
    )


def test_the_frustum_transformation_by_hand():
    """The corners of the truncated pyramid become those of the cube |x|, |y|, |z| <= s."""
    corners = jnp.array([[2.0, 1.0, 1.0, 1.0], [-18.0, 9.0, 9.0, 1.0], [0.0, 0.0, 9.0, 9.0]])
    seen = STRAIGHT.clip_coordinates(corners)
    np.testing.assert_allclose(seen[:, :3] / seen[:, 3:], [[1, 1, -1], [-1, 1, 1], [0, 0, -1]])
    endless = Camera(np.eye(4), 2.0, 1.0, near=1.0)
    far = endless.clip_coordinates(projective.directions(jnp.array([0.0, 0.0, 1.0])))
    np.testing.assert_allclose(far, [0, 0, 1, 1])


def test_reflection_shear_and_scale():
    """Each of them fixes what it should and composes from the right; (3.1)."""
    n, c = jnp.array([1.0, 2.0, 2.0]), jnp.array([0.5, 0.0, 1.0])
    mirror = projective.reflection(n, c)
    np.testing.assert_allclose(mirror @ mirror, np.eye(4), atol=1e-15)
    np.testing.assert_allclose(np.linalg.det(mirror[:3, :3]), -1)
    x = projective.points(c + jnp.array([1.0, 2.0, 2.0]))
    np.testing.assert_allclose(projective.transformed(mirror, x)[:3], c - n, atol=1e-15)
    d = jnp.array([2.0, -1.0, 0.0])  # in the plane
    shear = projective.shear(d, n, c)
    np.testing.assert_allclose(np.linalg.det(shear), 1.0)
    np.testing.assert_allclose(projective.transformed(shear, x)[:3], c + n + 9 * d, atol=1e-14)
    scale = projective.scaling(jnp.array([2.0, 3.0, 4.0]), c)
    np.testing.assert_allclose(projective.transformed(scale, projective.points(c))[:3], c)
    both = projective.transformed(shear @ scale, x)
    np.testing.assert_allclose(
        both, projective.transformed(shear, projective.transformed(scale, x)), atol=1e-13
    )


def test_the_projection_is_that_of_pytransform3d():
    """Places on the screen are those of its pinhole camera."""
    cam, x = camera(), cloud()
    size = np.array([2 * 0.8, 2 * 0.6])
    known = pc.world2image(
        pt.vectors_to_points(x), np.asarray(cam.pose), size, (2, 2), 1.0, kappa=0.0
    )
    np.testing.assert_allclose(cam.project(x) + 1, known, rtol=1e-12)


def test_vanishing_points_are_limits_and_lie_on_the_horizon():
    """Points ever farther along a line approach the image of its point at infinity."""
    cam, d = camera(), jnp.array([0.3, -0.2, 1.0])
    V = cam.vanishing_point(d)
    start = cam.pose[:3, 3] + 4 * cam.pose[:3, 2]
    for far, tolerance in ((1e3, 2e-3), (1e6, 2e-6), (1e9, 2e-9)):
        PX, PY, PT = cam.architect(projective.points(start + far * d))
        np.testing.assert_allclose((PX, PY), V[:2] / V[2], atol=tolerance)
        assert 0 < PT < 2 / far
    n = jnp.array([0.0, 0.0, 1.0])
    horizon = cam.horizon(n)
    for along in ((1.0, 0.0, 0.0), (0.3, -2.0, 0.0)):
        np.testing.assert_allclose(horizon @ cam.vanishing_point(jnp.array(along)), 0, atol=1e-15)
    # The horizon joins two vanishing points of the plane, up to its scale.
    joined = projective.join(*(cam.vanishing_point(jnp.array(a)) for a in np.eye(3)[:2]))
    np.testing.assert_allclose(np.cross(joined, horizon), 0, atol=1e-15)


def test_the_painters_construction_is_the_architects_picture():
    """A cube's edges, drawn towards three vanishing points, meet in its corners' images."""
    cam = camera()
    x0 = cam.pose[:3, 3] + cam.pose[:3, :3] @ jnp.array([0.2, -0.1, 4.0])
    first = cam.painter(projective.points(x0))
    vanishing = [cam.vanishing_point(jnp.array(e)) for e in np.eye(3)]
    for edge in range(3):
        painted = along_line(first, vanishing[edge], jnp.array(0.7))
        known = cam.architect(projective.points(x0 + 0.7 * jnp.eye(3)[edge]))
        np.testing.assert_allclose(painted[:2] / painted[2], known[:2], rtol=1e-14)
    # The fourth corner of a face, without measuring it: where two lines to vanishing points meet.
    a, b = (along_line(first, V, jnp.array(0.7)) for V in vanishing[:2])
    corner = projective.meet(projective.join(a, vanishing[1]), projective.join(b, vanishing[0]))
    known = cam.architect(projective.points(x0 + jnp.array([0.7, 0.7, 0.0])))
    np.testing.assert_allclose(corner[:2] / corner[2], known[:2], rtol=1e-12)
    # Lines parallel to the picture vanish at infinity.
    across = cam.vanishing_point(cam.pose[:3, 0])
    np.testing.assert_allclose(across, [1, 0, 0], atol=1e-15)


def test_clipping_is_exact_and_knows_infinity():
    """Parts of segments behind the eye, outside, and up to the vanishing point."""
    frustum = np.asarray(STRAIGHT.frustum())
    endless = np.asarray(Camera(np.eye(4), 2.0, 1.0, near=1.0).frustum())
    start, end = np.array([[0, 0, -5, 1.0]]) @ frustum.T, np.array([[0, 0, 5, 1.0]]) @ frustum.T
    first, last, seen = clip_segments(start, end)
    assert seen.all()
    np.testing.assert_allclose(first, np.array([[0, 0, 1, 1.0]]) @ frustum.T, atol=1e-14)
    np.testing.assert_allclose(last, end, rtol=1e-15)
    rays = np.array([[0.5, 0.5, 2, 1.0]]) @ endless.T, np.array([[0.3, 0.1, 1, 0.0]]) @ endless.T
    first, last, seen = clip_segments(*rays)
    assert seen.all()
    np.testing.assert_allclose(last[0, :2] / last[0, 3], (0.3 / 2, 0.1))
    beside = np.array([[9.0, 0, 2, 1], [9.0, 1, 2, 1]]) @ frustum.T
    assert not clip_segments(beside[:1], beside[1:])[2].any()


def test_clipped_polygons_have_the_seen_area():
    """A square over the edges of the picture keeps the part inside, in the square's plane."""
    cam = Camera(np.eye(4), 1.0, 1.0, near=0.5, far=10.0)
    square = np.array([[0, 0, 2, 1], [4, 0, 2, 1], [4, 4, 2, 1], [0, 4, 2, 1.0]])
    part = clip_polygon(square @ np.asarray(cam.frustum()).T)
    x, y = (part[:, :2] / part[:, 3:]).T
    area = abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))) / 2
    np.testing.assert_allclose(area, 1.0)
    assert (np.asarray(inside(part)) >= -1e-12).all()
    assert len(clip_polygon((square - (0, 0, 4, 0)) @ np.asarray(cam.frustum()).T)) == 0


@pytest.mark.slow
def test_the_pose_of_a_camera_is_found_from_points():
    """Where a camera stands, from the pixels of known points, by gradients on SE(3)."""
    true, x = camera(), cloud()
    seen = true.project(x)
    start = se3.exp(jnp.array([0.1, -0.2, 0.15, 0.3, 0.2, -0.4])) @ true.pose

    def residual(twist):
        moved = Camera(start @ se3.exp(twist), 0.8, 0.6)
        return (moved.project(x) - seen).ravel()

    twist = jnp.zeros(6)
    for _ in range(8):
        J = jax.jacfwd(residual)(twist)
        twist = twist - jnp.linalg.lstsq(J, residual(twist))[0]
    np.testing.assert_allclose(start @ se3.exp(twist), true.pose, atol=1e-12)
    # First-order methods move it too.
    cost = lambda twist: jnp.sum(residual(twist) ** 2)  # noqa: E731
    adam = optax.adam(1e-2)
    state, guess = adam.init(jnp.zeros(6)), jnp.zeros(6)
    for _ in range(3):
        updates, state = adam.update(jax.grad(cost)(guess), state)
        guess = optax.apply_updates(guess, updates)
    assert cost(guess) < cost(jnp.zeros(6))


@pytest.mark.slow("float32")
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_derivatives_in_both_modes_and_precisions(dtype):
    """Forward, reverse and differences agree; single precision stays single; batches by vmap."""
    cam = jax.tree.map(lambda a: a.astype(dtype), camera())
    x = jnp.asarray(cloud(), dtype)
    f = lambda x: cam.project(x)  # noqa: E731
    assert f(x).dtype == dtype
    forward, reverse = jax.jacfwd(f)(x[0]), jax.jacrev(f)(x[0])
    np.testing.assert_allclose(forward, reverse, rtol=1e-4 if dtype == jnp.float32 else 1e-12)
    if dtype == jnp.float64:
        h = 1e-6
        columns = [(f(x[0] + h * e) - f(x[0] - h * e)) / (2 * h) for e in np.eye(3)]
        np.testing.assert_allclose(forward, np.stack(columns, 1), rtol=1e-7, atol=1e-9)
    many = jax.vmap(lambda eye: Camera.looking_at(x[0], eye).project(x))(x + 1)
    assert many.shape == (len(x), len(x), 2)
    # At the moment at which the eye looks straight down the derivative is finite.
    from_above = jax.jacrev(lambda eye: Camera.looking_at(jnp.zeros(3), eye).pose)
    assert np.isfinite(from_above(jnp.array([0.0, 0.0, 5.0]))).all()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Camera(np.zeros((4, 4))), "no element of SE"),
        (lambda: Camera(np.diag([1.0, 1.0, -1.0, 1.0])), "no element of SE"),
        (lambda: Camera(np.eye(3)), "a matrix"),
        (lambda: Camera(np.eye(4), half_width=-1.0), "half_width .* positive"),
        (lambda: Camera(np.eye(4), near=2.0, far=1.0), "far must be beyond near"),
        (lambda: Camera.looking_at((1, 2, 3), (1, 2, 3)), "looks at this point"),
        (lambda: Camera.looking_at((0, 0), (1, 0, 0)), "target of the camera has shape"),
        (lambda: Camera.looking_at((0, 0, 0), (np.nan, 0, 0)), "eye of the camera is .* finite"),
        (lambda: Camera.looking_at((0, 0, 0), (1, 0, 0), (0, 0, 0)), "up of the camera is zero"),
    ],
)
def test_impossible_cameras_are_refused(build, message):
    """One sentence each."""
    with pytest.raises(ValueError, match=message):
        build()


def test_a_pose_of_whole_numbers_is_one():
    """An identity written as integers has an infinite far distance, too."""
    camera = Camera(np.eye(4, dtype=int))
    np.testing.assert_allclose(camera.project([0.64, 0.0, 1.0]), (1.0, 0.0), rtol=1e-6)
