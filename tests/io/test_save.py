"""Systems written as URDF and read back equal."""

import dataclasses
import importlib.metadata
import re
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from trees import random_tree, zoo

import difflie as dl
from difflie.io.urdf.written_shapes import unwritten

ROBOTS = (
    "panda_description/urdf/panda.urdf",
    "ur_description/urdf/ur5_robot.urdf",
    "kinova_description/robots/kinova.urdf",
    "baxter_description/urdf/baxter.urdf",
    "tiago_description/robots/tiago_no_hand.urdf",
    "allegro_hand_description/urdf/allegro_right_hand.urdf",
    "solo_description/robots/solo12.urdf",
    "anymal_b_simple_description/robots/anymal.urdf",
    "hyq_description/robots/hyq_no_sensors.urdf",
    "talos_data/robots/talos_reduced.urdf",
    "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "icub_description/robots/icub.urdf",
)


def quietly(function, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # masses and inertias of some files are doubtful
        return function(*args, **options)


def again(system, tmp_path):
    """The system, saved and loaded, with its shapes.

    The only remarks are on doubtful masses and inertias, and that shapes do not touch.
    """
    path = tmp_path / "saved.urdf"
    dl.save(system, path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = dl.load(path)
    remarks = [str(w.message) for w in caught]
    warned = ("no rigid body has", "moves no mass")
    idle = re.compile(r".*: not used: link/collision \(\d+, first line \d+\)")
    assert not [m for m in remarks if not (any(d in m for d in warned) or idle.fullmatch(m))]
    assert loaded.shapes.keys() == system.shapes.keys() - set(unwritten(system))
    return loaded


def normalised(axes):
    return axes / np.linalg.norm(axes, axis=1, keepdims=True)


def matrices(rotations):
    angle = np.linalg.norm(rotations, axis=1)[:, None, None]
    x, y, z = (rotations / np.where(angle[:, 0] == 0, 1, angle[:, 0])).T
    o = np.zeros_like(x)
    hat = np.array([[o, -z, y], [z, o, -x], [-y, x, o]]).transpose(2, 0, 1)
    return np.eye(3) + np.sin(angle) * hat + 2 * np.sin(angle / 2) ** 2 * hat @ hat


def check_equal(loaded, system):
    assert loaded.topology == system.topology
    for part in ("bodies", "joints"):
        for name in getattr(system, part).__dataclass_fields__:
            new, old = (np.asarray(getattr(getattr(s, part), name)) for s in (loaded, system))
            if name == "axis" and len(old):
                np.testing.assert_allclose(normalised(new), normalised(old), rtol=0, atol=3e-16)
            elif name == "rotation":
                np.testing.assert_allclose(matrices(new), matrices(old), rtol=0, atol=2e-15)
            elif name == "inertia":
                np.testing.assert_array_equal(new, (old + old.swapaxes(1, 2)) / 2)
            else:
                np.testing.assert_array_equal(new, old, err_msg=name)
    np.testing.assert_array_equal(loaded.gravity, system.gravity)


@pytest.mark.slow
@pytest.mark.thorough(
    "baxter*", "anymal*fixed", "allegro*", "g1*fixed", "talos*", "tiago*", "icub*"
)
@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("name", ROBOTS)
def test_robots(tmp_path, name, base):
    try:
        package = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("needs example-robot-data")
    path = package.locate_file(f"cmeel.prefix/share/example-robot-data/robots/{name}")
    system = quietly(dl.load, path, base=base, gravity=(0.1, 0.2, -3.7))
    check_equal(again(system, tmp_path), system)


@pytest.mark.parametrize("seed", range(4))
def test_random_trees(tmp_path, seed):
    """Every joint type, every number changed."""
    bodies = zoo() if seed == 0 else random_tree(seed)
    system, rng = dl.tree(bodies, name='a <"&"> b'), np.random.default_rng(seed)
    rows = system.topology.n_dofs
    changed = {
        name: rng.uniform(0.1, 2, rows)
        for name in (
            "damping",
            "friction",
            "friction_velocity",
            "spring_reference",
            "upper",
            "max_velocity",
        )
    }
    group = np.repeat(
        [not space.plain for space in system.topology.manifolds], np.diff(system.topology.dof_start)
    )
    system = system.replace(
        **changed,
        mass=rng.uniform(1, 2, len(bodies)),
        stiffness=np.where(group, 0, rng.uniform(size=rows)),
        lower=-rng.uniform(size=rows),
        gravity=rng.normal(size=3),
    )
    check_equal(again(system, tmp_path), system)


@pytest.mark.parametrize(
    "rotation",
    [(0.3, np.pi / 2, -1.0), (1e-9, np.pi / 2, 0), (np.pi, 1e-3, 0), (2.0, 2.0, -5.0), (0, 0, 4.0)],
)
def test_rotations_of_any_angle(tmp_path, rotation):
    arm = dl.Body(name="a", mass=1.0, inertia=np.eye(3), joint=dl.Revolute(), rotation=rotation)
    system = dl.chain([arm])
    check_equal(again(system, tmp_path), system)


def test_mimic_joints_and_single_precision(tmp_path):
    bodies = [
        dl.Body(name="a", mass=1.0, inertia=np.eye(3), joint=dl.Revolute()),
        dl.Body(
            name="b",
            mass=1.0,
            inertia=np.eye(3),
            joint=dl.Prismatic(mimic=dl.Mimic("a", 1 / 3, 0.1)),
            parent="a",
        ),
    ]
    system = dl.tree(bodies)
    check_equal(again(system, tmp_path), system)
    single = system.astype(jnp.float32)
    check_equal(again(single, tmp_path).astype(jnp.float32), single)


def test_other_programs_read_it(tmp_path):
    pin = pytest.importorskip("pinocchio")
    joint = dl.Revolute(stiffness=2.0, armature=0.1)
    system = dl.chain([dl.Body(name="a", mass=1.0, inertia=np.eye(3), joint=joint)])
    dl.save(system, tmp_path / "x.urdf")
    model = pin.buildModelFromUrdf(str(tmp_path / "x.urdf"))
    assert list(model.names) == ["universe", "a"]


SHAPES = """<robot name="r"><material name="red"/>
<link name="w"/><link name="b"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1"
 iyz="0" izz="1"/></inertial><visual><geometry><mesh filename="a.stl"/></geometry></visual></link>
<joint name="j" type="continuous"><parent link="w"/><child link="b"/>
 <safety_controller k_velocity="3"/></joint>
<transmission name="t"><type>simple</type><joint name="j"/></transmission></robot>"""


def test_shapes_and_transmissions_are_named_or_kept(tmp_path):
    """One warning where they are lost, and none where the file they stand in is given."""
    old, new = tmp_path / "old.urdf", tmp_path / "new.urdf"
    old.write_text(SHAPES)
    system = quietly(dl.load, old).replace(mass=jnp.asarray([0.0, 7.0]))
    lost = "new.urdf: not written, as no part of a system: (?=.*link/visual)(?=.*transmission)"
    with pytest.warns(UserWarning, match=lost) as caught:
        dl.save(system, new)
    assert len(caught) == 1 and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dl.save(system, new, original=old)
        dl.save(system, old, original=old)
    text = new.read_text()
    assert text == old.read_text() and '<mass value="7.0"' in text and text.count("<inertial>") == 1
    for kept in (
        'filename="a.stl"',
        'k_velocity="3"',
        "<type>simple</type>",
        'material name="red"',
    ):
        assert text.count(kept) == 1
    check_equal(quietly(dl.load, new), system)
    new.write_text(SHAPES.replace('"b"', '"c"'))
    with pytest.raises(dl.ModelError, match=r"new\.urdf: there is no link 'b', which the"):
        dl.save(system, old, original=new)


def test_armature_is_ours_alone_and_said_to_be(tmp_path):
    """MuJoCo and Pinocchio read the file and have no armature from it."""
    mujoco = pytest.importorskip("mujoco")
    joint = dl.Revolute(lower=-1.0, upper=1.0, armature=0.1, damping=0.2)
    system = dl.chain([dl.Body(name="a", mass=1.0, inertia=np.eye(3), joint=joint)])
    with pytest.warns(UserWarning, match="armature is written for difflie only; other programs"):
        dl.save(system, tmp_path / "x.urdf")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "x.urdf"))
    assert model.dof_damping.tolist() == [0.2] and model.dof_armature.tolist() == [0]
    assert dl.load(tmp_path / "x.urdf").joints.armature.tolist() == [0.1]


def test_the_options_of_load_go_before_the_file(tmp_path):
    body = dl.Body(name="a", mass=1.0, inertia=np.eye(3), joint=dl.Free(name="root_joint"))
    path = tmp_path / "x.urdf"
    dl.save(dl.chain([body], gravity=(1, 2, 3)), path)
    assert dl.load(path).nv == 6 and dl.load(path).gravity.tolist() == [1, 2, 3]
    fixed = dl.load(path, base="fixed", gravity=(0, 0, 0))
    assert fixed.nv == 0 and not np.any(fixed.gravity)


def test_mistakes(tmp_path):
    body = dl.Body(name="a", mass=1.0, inertia=np.eye(3), joint=dl.Planar())
    system, path = dl.chain([body]), tmp_path / "x.urdf"
    with pytest.raises(ValueError, match=r"saved as URDF or MJCF; call it x\.urdf or x\.xml"):
        dl.save(system, tmp_path / "x.sdf")
    with pytest.raises(dl.ModelError, match=r"body 'a': mass is -1\.0 kg"):
        dl.save(eqx.tree_at(lambda s: s.bodies.mass, system, -system.bodies.mass), path)
    with pytest.raises(dl.ModelError, match="planar joint 'a' are not those of a plane"):
        dl.save(system.replace(axis=np.eye(3)[[2, 0, 1]] * [[1], [-1], [1]]), path)
    crane = dl.chain([dataclasses.replace(body, joint=dl.Translation())])
    with pytest.raises(dl.ModelError, match="translation joint 'a' are not those x, y, z"):
        dl.save(crane.replace(axis=np.eye(3)[::-1]), path)
    with pytest.raises(dl.ModelError, match="this is a batch of systems; take one"):
        dl.save(jax.tree.map(lambda a: a[None], system), path)
    body = system.body_names[0]
    spring = dl.Spring([(None, (0.0, 0.0, 0.0)), (body, (0.0, 0.0, 0.0))], 1.0, 0.0)
    with pytest.raises(dl.ModelError, match=r"couplings: Spring \(the world - '.*; save"):
        dl.save(dl.attach(system, spring), path)
    assert not path.exists()


def test_mistakes_in_what_is_read(tmp_path):
    path = tmp_path / "x.urdf"
    moments = " ".join(f'i{a}="{int(a[0] == a[1])}"' for a in "xx xy xz yy yz zz".split())
    inertial = f'<inertial><mass value="1"/><inertia {moments}/></inertial>'
    text = (
        f'<robot name="r">\n<difflie {{}}/><link name="w"/><link name="b">{inertial}</link>'
        '<joint name="j" type="continuous"><parent link="w"/><child link="b"/>'
        "<difflie {}/></joint></robot>"
    )
    for own, joint, words in (
        ('world="b"', "", "the world is the link 'b', which is not the root; name the root"),
        ('base="fred"', "", "base is 'fred'; it must be 'fixed' or 'free'"),
        ('world="w" base="free"', "", "base is 'free' and the root link 'w' is the world"),
        ("", 'armature="1 2"', "armature needs one number"),
        (
            "",
            'friction_velocity="0"',
            r"friction_velocity is \[0.0\] rad/s or m/s; it must be positive",
        ),
    ):
        path.write_text(text.format(own, joint))
        with pytest.raises(dl.ModelError, match=words):
            dl.load(path)
    path.write_text(text.format("", 'inertia="1"'))
    with pytest.warns(UserWarning, match="not used: joint/difflie/@inertia"):
        dl.load(path)
