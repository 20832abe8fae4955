"""Systems from tables of screws and of Denavit-Hartenberg parameters."""

import functools

import jax
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

import difflie as dl

PI = np.pi
# Rows (a, alpha, d, theta[, type]) in the standard convention.
PUMA = [
    (0.0, PI / 2, 0.0, 0.0),
    (0.4318, 0.0, 0.0, 0.0),
    (0.0203, -PI / 2, 0.15005, 0.0),
    (0.0, PI / 2, 0.4318, 0.0),
    (0.0, -PI / 2, 0.0, 0.0),
    (0.0, 0.0, 0.0, 0.0),
]
SLIDING = [
    (0.1, -PI / 2, 0.412, 0.3),
    (-0.2, 0.7, 0.154, -2.0),
    (0.02, -0.4, 0.3, 1.2, "prismatic"),
    (0.05, 1.1, -0.1, 0.5),
]
ARMS = {"six axes": PUMA, "with a sliding axis": SLIDING}


def pose(rotation=None, position=(0.0, 0.0, 0.0)):
    result = np.eye(4)
    result[:3, :3] = np.eye(3) if rotation is None else rotation.as_matrix()
    result[:3, 3] = position
    return result


def about(axis, angle, length):
    """A screw displacement along and about a coordinate axis, as an exponential."""
    unit = np.eye(3)["xyz".index(axis)]
    return pose(Rotation.from_rotvec(angle * unit), length * unit)


def exponential(twist, q):
    x = np.zeros((4, 4))
    x[:3, :3] = np.cross(np.eye(3), twist[:3])
    x[:3, 3] = twist[3:]
    return expm(q * x)


def inertial(n, rng):
    """mass (n,), com (n, 3) and inertia (n, 3, 3) that bodies can have."""
    roots = rng.normal(size=(n, 3, 3))
    second = 0.01 * roots @ roots.transpose(0, 2, 1)
    inertia = np.trace(second, axis1=1, axis2=2)[:, None, None] * np.eye(3) - second
    return rng.uniform(0.5, 2.0, n), rng.normal(size=(n, 3)), inertia


def change_frame(frames, mass, com, inertia):
    """World coordinates in those of frames (n, 4, 4)."""
    turns, origins = frames[:, :3, :3], frames[:, :3, 3]
    return {
        "mass": mass,
        "com": np.einsum("nji,nj->ni", turns, com - origins),
        "inertia": np.einsum("nji,njk,nkl->nil", turns, inertia, turns),
    }


def urdf(places, tool, kinds, numbers):
    """The text of a file with links at the given places (n, 4, 4) in their parents' frames."""

    def written(values):
        return " ".join(repr(float(x)) for x in values)

    def joint(name, kind, parent, place, inside=""):
        rpy = Rotation.from_matrix(place[:3, :3]).as_euler("xyz")
        return (
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{name}"/>'
            f'<origin xyz="{written(place[:3, 3])}" rpy="{written(rpy)}"/>{inside}</joint>'
        )

    lines, parent = ['<robot name="robot"><difflie world="base"/><link name="base"/>'], "base"
    moving = '<axis xyz="0 0 1"/><limit lower="-9" upper="9" velocity="9" effort="9"/>'
    for i, (place, kind) in enumerate(zip(places, kinds, strict=True)):
        mass, com, j = numbers["mass"][i], numbers["com"][i], numbers["inertia"][i]
        entries = {f"i{'xyz'[r]}{'xyz'[c]}": j[r, c] for r in range(3) for c in range(r, 3)}
        attributes = " ".join(f'{key}="{float(value)!r}"' for key, value in entries.items())
        lines += [
            f'<link name="link{i + 1}"><inertial><origin xyz="{written(com)}"/>'
            f'<mass value="{float(mass)!r}"/><inertia {attributes}/></inertial></link>',
            joint(f"link{i + 1}", kind, parent, place, moving),
        ]
        parent = f"link{i + 1}"
    lines += ['<link name="tool"/>', joint("tool", "fixed", parent, tool), "</robot>"]
    return "\n".join(lines)


@functools.cache
def compiled():
    """Poses (nb, 4, 4), the mass matrix and inverse dynamics, in one program for a structure."""

    def quantities(system, q, v, a):
        tau = dl.inverse_dynamics(system, q, v, a)
        return dl.body_poses(system, q), dl.mass_matrix(system, q), tau

    return jax.jit(quantities)


def quantities(system, q, v=None, a=None):
    zero = np.zeros(system.nv)
    rates = [zero if x is None else x for x in (v, a)]
    return [np.asarray(x) for x in compiled()(system, np.asarray(q, float), *rates)]


@pytest.mark.parametrize("arm", ARMS)
def test_one_arm_from_dh_tables_screws_twists_and_a_urdf_file(arm, tmp_path):
    """Guards every formula of both builders: the same motion, mass matrix and torques."""
    rows = [(*row, "revolute")[:5] for row in ARMS[arm]]
    a, alpha, d, theta, kinds = zip(*rows, strict=True)
    n, rng = len(rows), np.random.default_rng(1)
    # Joint i's axis is z of frame i of the modified table, whose a and alpha come one row later.
    before = [about("x", *x) for x in zip((0.0, *alpha), (0.0, *a), strict=True)]
    along = [about("z", *x) for x in zip(theta, d, strict=True)]
    places = [before[i] @ along[i] for i in range(n)]
    frames = np.stack([functools.reduce(np.matmul, places[: i + 1]) for i in range(n)])
    ends = np.stack([frames[i] @ before[i + 1] for i in range(n)])
    world = inertial(n, rng)
    axes, points = frames[:, :3, 2], frames[:, :3, 3]
    sliding = np.array([kind == "prismatic" for kind in kinds])
    twists = np.hstack([axes, np.cross(points, axes)])
    twists[sliding] = np.hstack([0 * axes, axes])[sliding]
    in_world = dict(zip(("mass", "com", "inertia"), world, strict=True)) | {"tool": ends[-1]}
    shifted = list(zip((0.0, *a), (0.0, *alpha), d, theta, kinds, strict=False))
    in_frames = change_frame(frames, *world)
    file = tmp_path / "robot.urdf"
    file.write_text(urdf(places, before[-1], kinds, in_frames))
    systems = {
        "standard": dl.from_dh(
            rows, convention="standard", tool=np.eye(4), **change_frame(ends, *world)
        ),
        "modified": dl.from_dh(shifted, convention="modified", tool=before[-1], **in_frames),
        "urdf": dl.load(file),
        "points": dl.from_screws(
            [(x, None if s else p) for x, p, s in zip(axes, points, sliding, strict=True)],
            **in_world,
        ),
        "twists": dl.from_screws(twists, **in_world),
    }
    at_zero = {name: quantities(system, np.zeros(n))[0] for name, system in systems.items()}
    for name in ("standard", "modified", "urdf"):
        np.testing.assert_allclose(at_zero[name][:-1], frames, atol=1e-12)
    for name in ("points", "twists"):
        np.testing.assert_allclose(at_zero[name][:-1, :3, :3], n * [np.eye(3)], atol=1e-12)
    for q, v, acceleration in rng.normal(size=(3, 3, n)):
        moved = [exponential(*x) for x in zip(twists, q, strict=True)]
        motions = [functools.reduce(np.matmul, moved[: i + 1]) for i in range(n)]
        _, mass_matrix, tau = quantities(systems["urdf"], q, v, acceleration)
        for name, system in systems.items():
            found = quantities(system, q, v, acceleration)
            expected = np.stack([*motions, motions[-1]]) @ at_zero[name]
            np.testing.assert_allclose(found[0], expected, atol=1e-12)
            np.testing.assert_allclose(found[0][-1], motions[-1] @ ends[-1], atol=1e-12)
            np.testing.assert_allclose(found[1], mass_matrix, atol=1e-12 * mass_matrix.max())
            np.testing.assert_allclose(found[2], tau, atol=1e-12 * np.abs(tau).max())


def test_puma_560_as_published():
    """Guards the meaning of a standard table by the figures of Corke's Robotics Toolbox."""
    principal = [
        *((0, 0.35, 0), (0.13, 0.524, 0.539), (0.066, 0.086, 0.0125)),
        *((1.8e-3, 1.3e-3, 1.8e-3), (0.3e-3, 0.4e-3, 0.3e-3), (0.15e-3, 0.15e-3, 0.04e-3)),
    ]
    with pytest.warns(UserWarning, match="triangle inequality"):
        puma = dl.from_dh(
            np.array(PUMA),
            convention="standard",
            mass=(0.0, 17.4, 4.8, 0.82, 0.34, 0.09),
            com=[
                *((0, 0, 0), (-0.3638, 0.006, 0.2275), (-0.0203, -0.0141, 0.07)),
                *((0, 0.019, 0), (0, 0, 0), (0, 0, 0.032)),
            ],
            inertia=[np.diag(x) for x in principal],
            tool=np.eye(4),
        )
    motors = np.array([200e-6, 200e-6, 200e-6, 33e-6, 33e-6, 33e-6])
    gears = np.array([-62.6111, 107.815, -53.7063, 76.0364, 71.923, 76.686])
    puma = puma.replace(armature=motors * gears**2)
    poses, mass_matrix, tau = quantities(puma, (0.0, PI / 4, PI, 0.0, PI / 4, 0.0))
    np.testing.assert_allclose(
        poses[-1],
        [(0, 0, 1, 0.5963), (0, 1, 0, -0.1501), (-1, 0, 0, -0.01435), (0, 0, 0, 1)],
        atol=5.1e-5,
    )
    printed = [
        (3.6594, -0.4044, 0.1006, -0.0025, 0.0, 0.0),
        (-0.4044, 4.4137, 0.3509, 0.0, 0.0024, 0.0),
        (0.1006, 0.3509, 0.9378, 0.0, 0.0015, 0.0),
        (-0.0025, 0.0, 0.0, 0.1925, 0.0, 0.0),
        (0.0, 0.0024, 0.0015, 0.0, 0.1713, 0.0),
        (0.0, 0.0, 0.0, 0.0, 0.0, 0.1941),
    ]
    np.testing.assert_allclose(mass_matrix, printed, atol=5.1e-5)
    np.testing.assert_allclose(tau, (0.0, 31.6399, 6.0351, 0.0, 0.0283, 0.0), atol=5.1e-5)


def test_ur5_as_published():
    """Guards twists and tool by Slist, M and a pose of Modern Robotics, example 4.5."""
    w1, w2, l1, l2, h1, h2 = 0.109, 0.082, 0.425, 0.392, 0.089, 0.095
    slist = np.array(
        [
            (0, 0, 1, 0, 0, 0),
            (0, 1, 0, -h1, 0, 0),
            (0, 1, 0, -h1, 0, l1),
            (0, 1, 0, -h1, 0, l1 + l2),
            (0, 0, -1, -w1, l1 + l2, 0),
            (0, 1, 0, h2 - h1, 0, l1 + l2),
        ]
    ).T
    home = [(-1, 0, 0, l1 + l2), (0, 0, 1, w1 + w2), (0, 1, 0, h1 - h2), (0, 0, 0, 1)]
    mass, com, inertia = inertial(6, np.random.default_rng(2))
    ur5 = dl.from_screws(slist.T, mass=mass, com=com, inertia=inertia, tool=home)
    poses, _, _ = quantities(ur5, (0, -PI / 2, 0, 0, PI / 2, 0))
    np.testing.assert_allclose(
        poses[-1],
        [(0, -1, 0, 0.095), (1, 0, 0, 0.109), (0, 0, 1, 0.988), (0, 0, 0, 1)],
        atol=1e-12,
    )


def test_a_tree_from_a_table_of_khalil_and_kleinfinger_and_from_screws():
    """Guards gamma, b and parents: two arms on a turning column, in any order of rows."""
    rng = np.random.default_rng(3)
    names = ["left", "column", "right", "hand"]
    parents = ["column", None, "column", "left"]
    rows = [
        (0.2, 0.9, 0.1, 0.4),
        (0.0, 0.0, 0.5, 0.0),
        (0.3, -1.2, 0.2, -0.5, "prismatic"),
        (0.4, 0.3, 0.0, 0.8),
    ]
    gamma, b = np.array([0.7, 0.0, -1.9, 0.0]), np.array([0.15, 0.0, -0.25, 0.0])
    places = [
        about("z", gamma[i], b[i]) @ about("x", rows[i][1], rows[i][0])
        @ about("z", rows[i][3], rows[i][2])
        for i in range(4)
    ]  # fmt: skip
    column = places[1]
    left, right = column @ places[0], column @ places[2]
    frames = np.stack([left, column, right, left @ places[3]])
    world = inertial(4, rng)
    axes, points = frames[:, :3, 2], frames[:, :3, 3]
    khalil = dl.from_dh(
        rows,
        convention="modified",
        parents=parents,
        gamma=gamma,
        b=b,
        names=names,
        **change_frame(frames, *world),
    )
    screws = dl.from_screws(
        [(x, None if i == 2 else p) for i, (x, p) in enumerate(zip(axes, points, strict=True))],
        parents=parents,
        names=names,
        **dict(zip(("mass", "com", "inertia"), world, strict=True)),
    )
    order = [1, 0, 2, 3]
    assert khalil.body_names == screws.body_names == tuple(names[i] for i in order)
    at_zero, _, _ = quantities(khalil, np.zeros(4))
    np.testing.assert_allclose(at_zero, frames[order], atol=1e-12)
    start, _, _ = quantities(screws, np.zeros(4))
    q, v, a = rng.normal(size=(3, 4))
    first, second = quantities(khalil, q, v, a), quantities(screws, q, v, a)
    motions = [x @ np.linalg.inv(zero) for x, zero in ((first[0], at_zero), (second[0], start))]
    np.testing.assert_allclose(*motions, atol=1e-12)
    np.testing.assert_allclose(first[1], second[1], atol=1e-12 * first[1].max())
    np.testing.assert_allclose(first[2], second[2], atol=1e-12 * np.abs(first[2]).max())


def test_a_helical_joint_is_the_exponential_of_its_twist():
    """Guards the pitch and the origin that are read from a twist."""
    axis, point, pitch = np.array([0.6, 0.0, 0.8]), np.array([0.3, -0.2, 0.5]), 0.07
    twist = np.concatenate([axis, np.cross(point, axis) + pitch * axis])
    system = dl.from_screws(
        [twist], mass=[1.0], com=[(0.1, 0.2, 0.3)], inertia=[np.eye(3)], tool=np.eye(4)
    )
    assert [type(j) for j in system.topology.types] == [dl.Helical, dl.Fixed]
    poses, _, _ = quantities(system, [1.3])
    np.testing.assert_allclose(poses[1], exponential(twist, 1.3), atol=1e-14)


def test_bodies_without_numbers_are_doubtful_as_in_a_tree():
    """Guards that geometry alone makes a system, with the warning of the other builders."""
    with pytest.warns(UserWarning, match="joint 'link1' moves no mass"):
        system = dl.from_dh([(0.0, 0.0, 0.0, 0.0)], convention="modified")
    assert not np.any(system.bodies.mass)
    with pytest.warns(UserWarning, match="joint 'link1' moves no mass"):
        dl.from_screws([((0, 0, 1), (0, 0, 0))])


NAN = float("nan")
Z, ORIGIN = (0, 0, 1), (0, 0, 0)
TURN = (Z, ORIGIN)
SCREWS = {
    "no rows": ({"screws": []}, r"screws is \[\]; give a row"),
    "no table": ({"screws": 3}, "screws is 3; give a row"),
    "a row": ({"screws": [TURN, (Z,)]}, r"screws\[1\] of joint 'link2' is .* give \(axis, point\)"),
    "text": ({"screws": [("z", ORIGIN)]}, "joint 'link1': the axis is 'z'; give numbers"),
    "shape": (
        {"screws": [(Z, (0, 0))]},
        r"the point has shape \(2,\); give .*\(3,\)",
    ),
    "nan": ({"screws": [(Z, (0, NAN, 0))]}, r"the point\[1\] is nan; it must be finite"),
    "nan in a twist": ({"screws": [(0, 0, 1, 0, 0, NAN)]}, r"'link1'\[5\] is nan"),
    "zero axis": ({"screws": [(ORIGIN, ORIGIN)]}, "the axis is zero; give it a direction"),
    "long axis": ({"screws": [((0, 0, 2), ORIGIN)]}, "the axis has length 2; divide it"),
    "long direction": ({"screws": [((0, 0, 2), None)]}, "the direction has length 2"),
    "long omega": ({"screws": [(0, 0, 3, 0, 0, 0)]}, "omega has length 3; divide it"),
    "zero twist": ({"screws": [(0,) * 6]}, "v, as omega is zero, is zero"),
    "masses": ({"screws": [TURN], "mass": (1, 2), "com": [ORIGIN]}, r"mass has shape \(2,\); give"),
    "mass": ({"screws": [TURN], "mass": [-1], "com": [ORIGIN]}, "body 'link1': mass is -1.0"),
    "no com": ({"screws": [TURN], "mass": [1]}, r"give com \(n, 3\)"),
    "com": ({"screws": [TURN], "com": [(0, 0, NAN)]}, r"com\[0, 2\] is nan"),
    "inertia": ({"screws": [TURN], "inertia": np.eye(3)}, r"of shape \(1, 3, 3\): one entry"),
    "names": ({"screws": [TURN], "names": ["a", "b"]}, "give 1 names, one for"),
    "parents": ({"screws": [TURN, TURN], "parents": [None]}, "give 2, one for the"),
    "parent": (
        {"screws": [TURN, TURN], "parents": [None, "link"]},
        r"parents\[1\], of body 'link2', is 'link'; .*did you mean",
    ),
    "number of a parent": ({"screws": [TURN, TURN], "parents": [None, 0]}, "is 0; give the name"),
    "cycle": ({"screws": [TURN, TURN], "parents": ["link2", "link1"]}, "form a cycle"),
    "tool": ({"screws": [TURN], "tool": np.eye(3)}, r"tool has shape \(3, 3\); give .*\(4, 4\)"),
    "row of the tool": ({"screws": [TURN], "tool": np.ones((4, 4))}, "last row"),
    "turn of the tool": ({"screws": [TURN], "tool": np.diag((2, 1, 1, 1))}, "no rotation matrix"),
}


@pytest.mark.parametrize("mistake", SCREWS)
def test_mistakes_in_screws(mistake):
    """Guards that each gets one sentence with the place and the fix."""
    options, words = SCREWS[mistake]
    with pytest.raises(dl.ModelError, match=words):
        dl.from_screws(**options)


ROW, MODIFIED = (0.0, 0.0, 0.0, 0.0), {"convention": "modified"}
TABLES = {
    "convention": ({"table": [ROW], "convention": "craig"}, "give 'standard' or 'modified'"),
    "no rows": ({"table": (), **MODIFIED}, r"table is \(\); give a row"),
    "a row": ({"table": [ROW, ROW[:3]], **MODIFIED}, r"table\[1\] of joint 'link2' is \(0.0"),
    "nan": ({"table": [(0, NAN, 0, 0)], **MODIFIED}, "joint 'link1': alpha is nan; it must be fin"),
    "text": ({"table": [(0, 0, "x", 0)], **MODIFIED}, "d is 'x'; give one number"),
    "type": ({"table": [(*ROW, "revolut")], **MODIFIED}, "type is 'revolut'; .*mean 'revolute'"),
    "masses": ({"table": [ROW], "mass": 1.0, **MODIFIED}, r"mass has shape \(\); give .*\(1,\)"),
    "mass": ({"table": [ROW], "mass": [-1.0], **MODIFIED}, "body 'link1': mass is -1.0 kg"),
    "inertia": ({"table": [ROW], "inertia": np.full((1, 3, 3), NAN), **MODIFIED}, r"\[0, 0, 0\]"),
    "gamma": ({"table": [ROW], "gamma": [0.0, 1.0], **MODIFIED}, r"gamma has shape \(2,\)"),
    "b": ({"table": [ROW], "b": [NAN], **MODIFIED}, r"b\[0\] is nan"),
    "branches": (
        {"table": [ROW], "convention": "standard", "gamma": [0.0]},
        "describes a chain; leave out parents, gamma and b",
    ),
    "gravity": (
        {"table": [ROW], "gravity": 9.81, "inertia": [np.eye(3)], **MODIFIED},
        "gravity must be three finite numbers",
    ),
}


@pytest.mark.parametrize("mistake", TABLES)
def test_mistakes_in_dh_tables(mistake):
    """Guards that each gets one sentence with the place and the fix."""
    options, words = TABLES[mistake]
    with pytest.raises(dl.ModelError, match=words):
        dl.from_dh(**options)
