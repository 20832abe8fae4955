"""Trees of rigid bodies on joints of all types, drawn at random with fixed seeds."""

from dataclasses import replace

import numpy as np

import difflie as dl

KINDS = (
    *("Fixed", "Revolute", "Continuous", "Prismatic", "Helical"),
    *("Universal", "Planar", "Translation", "Spherical", "Free"),
)


def random_joint(rng, kind, **fields):
    """A joint with axes of any length and direction, half of them with a negative z."""
    joint = getattr(dl, kind)(**fields)
    for name in ("axis", "second_axis", "normal"):
        if hasattr(joint, name):
            joint = replace(joint, **{name: tuple(rng.normal(size=3) * rng.uniform(0.3, 3))})
    if kind == "Helical":
        joint = replace(joint, pitch=rng.normal())
    count = len(joint.dofs())
    return replace(joint, armature=tuple(rng.uniform(0, 0.3, count)) if count else 0.0)


def random_body(rng, name, joint, parent=None, **fields):
    """A body made of six points of mass."""
    points, masses = rng.normal(size=(6, 3)) * 0.4, rng.uniform(0.1, 0.6, 6)
    com = masses @ points / masses.sum()
    x = points - com
    second = np.einsum("i,ij,ik->jk", masses, x, x)
    return dl.Body(
        name=name,
        joint=joint,
        parent=parent,
        mass=float(masses.sum()),
        com=tuple(com),
        inertia=np.trace(second) * np.eye(3) - second,
        **{"position": rng.normal(size=3) * 0.4, "rotation": rng.normal(size=3), **fields},
    )


def zoo():
    """Every joint type in one tree, with what is special about each.

    Two bodies fixed to the world, one on the other; two fixed bodies in a row on a moving one;
    free joints at the root and deep in the tree; axes along z, against z and across it; a
    placement given as a matrix; branches, and a body listed before its parent.
    """
    rng = np.random.default_rng(7)
    turn = np.array([[0.0, 0.0, 1.0], [0.6, 0.8, 0.0], [-0.8, 0.6, 0.0]])
    made = [
        ("drone", dl.Free(armature=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6)), "screw", {}),
        ("floor", dl.Fixed(), None, {}),
        ("wall", dl.Fixed(), "floor", {}),
        ("mast", random_joint(rng, "Revolute"), "wall", {}),
        ("bracket", dl.Fixed(), "mast", {"rotation": turn}),
        ("lid", dl.Fixed(), "bracket", {}),
        ("slider", random_joint(rng, "Prismatic"), "lid", {}),
        ("screw", dl.Helical(axis=(0.0, 0.0, -2.0), pitch=-0.3), "slider", {}),
        ("arm", dl.Revolute(axis=(0.0, 3.0, 0.0), armature=0.2), "drone", {}),
        ("ball", dl.Spherical(armature=(0.3, 0.1, 0.2)), "arm", {}),
        ("drum", random_joint(rng, "Continuous"), "mast", {"rotation": (0.0, 0.0, np.pi)}),
        ("puck", random_joint(rng, "Planar"), "drum", {}),
        ("cross", random_joint(rng, "Universal"), "puck", {}),
        ("satellite", dl.Free(), None, {}),
        ("sled", dl.Planar(normal=(1.0, 0.0, 0.0)), "satellite", {}),
        ("crane", random_joint(rng, "Translation"), "cross", {}),
    ]
    return [random_body(rng, name, joint, parent, **kw) for name, joint, parent, kw in made]


def random_tree(seed):
    """A tree with every joint type, in any order and on any parent."""
    rng = np.random.default_rng(seed)
    kinds = [*rng.permutation(KINDS), *rng.choice(KINDS, 3)]
    bodies = []
    for i, kind in enumerate(kinds):
        parent = f"b{i - 1}" if i else None
        if i and rng.uniform() < 0.35:
            above = int(rng.integers(-1, i))
            parent = None if above < 0 else f"b{above}"
        bodies.append(random_body(rng, f"b{i}", random_joint(rng, str(kind)), parent))
    return [bodies[i] for i in rng.permutation(len(bodies))]


def random_states(system, count, seed):
    """q, v, a, tau and wrenches, `count` of each; also for the topology of a slow system."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-2.5, 2.5, (count, system.nq))
    t = system.topology
    for b, space in enumerate(t.manifolds):
        if not space.plain:
            quaternion = slice(t.coordinate_start[b], t.coordinate_start[b] + 4)
            q[:, quaternion] /= np.linalg.norm(q[:, quaternion], axis=1, keepdims=True)
    v, a, tau = rng.normal(size=(3, count, system.nv)) * 2
    return q, v, a, tau, rng.normal(size=(count, len(system.body_names), 6)) * 3


def error(found, expected):
    """The largest difference as a fraction of the largest entry, sample by sample."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    axes = tuple(range(1, found.ndim))
    size = np.max(np.abs(expected), axis=axes, initial=1e-300)
    return float(np.max(np.max(np.abs(found - expected), axis=axes, initial=0) / size, initial=0))
