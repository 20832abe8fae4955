"""Cameras: a pose in SE(3), and a frustum transformation of homogeneous points.

In the camera's own frame the eye is at the origin and looks along z; x points to the right and y
down, as rows and columns of pictures are counted. The truncated pyramid of what is seen is

    |x| <= a z,   |y| <= b z,   n s <= z <= f s

with a and b the tangents of half the angles of view, n and f the near and far distances. The
frustum transformation takes it to the cube |x'|, |y'|, |z'| <= s' with s' = z, so that it is
clipped before any division. Reuss 2002, section 3.1.

*The architect's perspective* divides: PX = x/z, PY = y/z and, with the scale kept, PT = s/z (3.2,
(16)). *The painter's* stays with homogeneous points of the picture, (x, y, z) for PX = x/z and PY =
y/z, and constructs with those at infinity in space, s = 0: their images are the vanishing points
(3.3).
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from ..groups import se3
from ..system.validation import in_precision, real_numbers
from .projective import Place, directions, points, transformed


class Camera(eqx.Module):
    """A camera; every number is a leaf, so that it can be fitted, moved and batched.

    pose (4, 4): camera to world, in SE(3). half_width a and half_height b (): the tangents of half
    the angles of view; a / b is the shape of the picture. near, far (): in m, far may be infinite.
    """

    pose: Float[Array, "4 4"]
    half_width: Float[Array, ""]
    half_height: Float[Array, ""]
    near: Float[Array, ""]
    far: Float[Array, ""]

    def __init__(
        self,
        pose: ArrayLike,
        half_width: ArrayLike = 0.64,
        half_height: ArrayLike = 0.36,
        near: ArrayLike = 0.01,
        far: ArrayLike = np.inf,
    ) -> None:
        """Raises ValueError for a pose that is none, angles and distances that are not positive."""
        self.pose = real_numbers("Camera", "pose", pose)
        if not jnp.issubdtype(self.pose.dtype, jnp.floating):
            self.pose = in_precision(self.pose, jnp.result_type(float))
        dtype = self.pose.dtype
        self.half_width, self.half_height, self.near, self.far = (
            in_precision(real_numbers("Camera", name, a), dtype)
            for name, a in (
                ("half_width", half_width),
                ("half_height", half_height),
                ("near", near),
                ("far", far),
            )
        )
        _check(self)

    @classmethod
    def looking_at(
        cls,
        target: Place,
        eye: Place,
        up: Place = (0.0, 0.0, 1.0),
        **angles: Any,
    ) -> Camera:
        """A camera at the eye (3,) that looks at the target (3,), in m, world; up (3,) is upward.

        angles: half_width, half_height, near and far. Where up is along the view, another direction
        is taken. Raises ValueError where eye and target are one point, for points that are not
        finite, and for an up that is zero.
        """
        places = ("target", target), ("eye", eye), ("up", up)
        default = jnp.result_type(float)
        target, eye, up = (in_precision(real_numbers("Camera", *p), default) for p in places)
        _check_view(target, eye, up)
        return cls(_looking(target, eye, up), **angles)

    @property
    def eye(self) -> Float[Array, "3"]:
        """Where the camera is (3,), in m, world."""
        return self.pose[:3, 3]

    def seen(self, X: ArrayLike) -> Float[Array, "*n 4"]:
        """Homogeneous points (..., 4) of the world in the camera's frame: f^-1 X."""
        return transformed(se3.inverse(self.pose), X)

    def frustum(self) -> Float[Array, "4 4"]:
        """The frustum transformation (4, 4): the first one, on points in the camera's frame.

        It takes the truncated pyramid to the cube |x'|, |y'|, |z'| <= s', near to z' = -s', far to
        z' = s', and the eye to infinity.
        """
        n, f = self.near, self.far
        ratio = jnp.where(jnp.isinf(f), 0.0, n / jnp.where(jnp.isinf(f), 1.0, f))
        depth, shift = (1 + ratio) / (1 - ratio), -2 * n / (1 - ratio)
        zero, one = jnp.zeros_like(n), jnp.ones_like(n)
        rows = (
            (1 / self.half_width, zero, zero, zero),
            (zero, 1 / self.half_height, zero, zero),
            (zero, zero, depth, shift),
            (zero, zero, one, zero),
        )
        return jnp.stack([jnp.stack(row) for row in rows])

    def clip_coordinates(self, X: ArrayLike) -> Float[Array, "*n 4"]:
        """Homogeneous points (..., 4) of the world after the frustum transformation."""
        return transformed(self.frustum() @ se3.inverse(self.pose), X)

    def architect(self, X: ArrayLike) -> Float[Array, "*n 3"]:
        """The architect's perspective (PX, PY, PT) (..., 3) of homogeneous points (..., 4), world.

        PX = x/z, PY = y/z, PT = s/z: PT is the scale of the picture, 1/m, and zero at infinity.
        Points in the plane of the eye, z = 0, have infinite or no images.
        """
        x, y, z, s = jnp.moveaxis(self.seen(X), -1, 0)
        return jnp.stack((x / z, y / z, s / z), axis=-1)

    def painter(self, X: ArrayLike) -> Float[Array, "*n 3"]:
        """The painter's perspective: homogeneous points of the picture (..., 3), undivided.

        (x, y, z) of homogeneous points (..., 4), world; of points at infinity they are the
        vanishing points.
        """
        return self.seen(X)[..., :3]

    def project(self, x: ArrayLike) -> Float[Array, "*n 2"]:
        """Where points (..., 3) in m, world, are in the picture (..., 2): from -1 to 1, y down."""
        X = self.clip_coordinates(points(x))
        return X[..., :2] / X[..., 3:]

    def pixels(self, x: ArrayLike, width: int, height: int) -> Float[Array, "*n 2"]:
        """Columns and rows (..., 2) of points (..., 3) in a picture of so many pixels.

        The corner of the picture, not the centre of the first pixel, is (0, 0).
        """
        half = jnp.array([width, height], self.pose.dtype) / 2
        return (self.project(x) + 1) * half

    def vanishing_point(self, d: ArrayLike) -> Float[Array, "*n 3"]:
        """The image (x, y, t) (..., 3) of the point at infinity in directions (..., 3), world.

        All lines in this direction end there: at x/t, y/t, or, parallel to the picture, t = 0.
        """
        return self.painter(directions(d))

    def horizon(self, normal: ArrayLike) -> Float[Array, "*n 3"]:
        """The line l (..., 3) in which all planes with this normal (..., 3), world, vanish.

        l^T (PX, PY, 1) = 0 for the vanishing points of all directions in such planes.
        """
        return self.seen(directions(normal))[..., :3]

    def ray(self, at: ArrayLike) -> Float[Array, "*n 3"]:
        """The direction (..., 3), world, of what is seen at (PX, PY) (..., 2); of depth 1."""
        at = jnp.asarray(at, self.pose.dtype)
        return points(at) @ self.pose[:3, :3].T


def along_line(start: ArrayLike, vanishing: ArrayLike, lengths: ArrayLike) -> Float[Array, "*n 3"]:
    """The painter's construction of points along a line: their images (x, y, t) (..., 3).

    start (..., 3): the image `Camera.painter` of its start, a point with s = 1. vanishing (..., 3):
    `Camera.vanishing_point` of its direction. lengths (...) in units of the direction's length. The
    images lie on the line that joins the two; equal lengths shrink towards the vanishing point.
    """
    start, vanishing, lengths = (jnp.asarray(a) for a in (start, vanishing, lengths))
    return start + lengths[..., None] * vanishing


def _check_view(target: jax.Array, eye: jax.Array, up: jax.Array) -> None:
    for name, a in (("target", target), ("eye", eye), ("up", up)):
        if a.shape != (3,):
            raise ValueError(
                f"{name} of the camera has shape {a.shape}; it is one point (3,), and a batch is "
                "made by jax.vmap"
            )
        if not isinstance(a, Tracer) and not np.isfinite(a).all():
            raise ValueError(f"{name} of the camera is {a.tolist()}; it must be finite")
    if not isinstance(up, Tracer) and not np.any(np.asarray(up)):
        raise ValueError("up of the camera is zero; give the direction that is upward")
    known = not any(isinstance(a, Tracer) for a in (target, eye))
    if known and not np.linalg.norm(np.asarray(target) - np.asarray(eye)) > 0:
        raise ValueError(f"the camera is at {eye.tolist()} m and looks at this point; move one")


def _check(camera: Camera) -> None:
    if any(isinstance(a, Tracer) for a in jax.tree.leaves(camera)):
        return
    if camera.pose.shape[-2:] != (4, 4):
        raise ValueError(f"pose has shape {camera.pose.shape}; a pose is a matrix (4, 4)")
    pose = np.asarray(camera.pose, float)
    rotation = pose[..., :3, :3]
    gram = np.swapaxes(rotation, -1, -2) @ rotation
    proper = np.abs(gram - np.eye(3)).max() < 1e-3 and np.all(np.linalg.det(rotation) > 0)
    if not (np.isfinite(pose).all() and proper and np.all(pose[..., 3, :] == (0, 0, 0, 1))):
        raise ValueError(
            "the pose of the camera is no element of SE(3); give a rotation, a place, and the last "
            "row 0 0 0 1, as Camera.looking_at does"
        )
    for name in ("half_width", "half_height", "near"):
        value = np.asarray(getattr(camera, name))
        if not (np.isfinite(value) & (value > 0)).all():
            raise ValueError(f"{name} of the camera is {value}; it must be positive and finite")
    if not np.all(np.asarray(camera.far) > np.asarray(camera.near)):
        raise ValueError(
            f"the camera sees from near = {camera.near} m to far = {camera.far} m; far must be "
            "beyond near"
        )


@jax.jit
def _looking(target: jax.Array, eye: jax.Array, up: jax.Array) -> jax.Array:
    """The pose (4, 4) of a camera at the eye (3,) that looks at the target (3,)."""
    forward = target - eye
    z = forward / jnp.linalg.norm(forward)
    x = jnp.cross(z, up)
    # Seen from above there is no upward direction in the picture; y is then as good as any.
    other = jnp.where(jnp.abs(z[1]) < 0.9, jnp.array([0.0, 1.0, 0.0]), jnp.array([1.0, 0, 0]))
    x = jnp.where(jnp.sum(x * x) < 1e-12 * jnp.sum(up * up), jnp.cross(z, other), x)
    x = x / jnp.linalg.norm(x)
    rotation = jnp.stack((x, jnp.cross(z, x), z), axis=1)
    return jnp.eye(4).at[:3, :3].set(rotation).at[:3, 3].set(eye)
