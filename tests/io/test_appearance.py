"""What bodies look like: visuals of URDF and geoms of MJCF, and files that are broken."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
import trimesh

import difflie as dl
from difflie.io.appearance import read_appearance
from difflie.io.appearance.shape import Shape, box, capsule, cylinder, ellipsoid
from difflie.io.meshes import read_mesh
from difflie.system import ModelError
from difflie.view.scenes import inertia_ellipsoids, shapes_of

LINK = """<robot name="r"><material name="red"><color rgba="1 0 0 1"/></material>
<link name="base"/><link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>{}</link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


def urdf(tmp_path, visuals):
    path = tmp_path / "r.urdf"
    path.write_text(LINK.format(visuals))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return path, dl.load(path)


def volume(shape):
    """Positive where the triangles are counter-clockwise seen from outside."""
    a, b, c = np.moveaxis(shape.vertices[shape.faces], 1, 0)
    return np.sum(a * np.cross(b, c)) / 6


@pytest.mark.parametrize(
    ("surface", "known"),
    [
        (box(np.array([1.0, 2.0, 3.0])), 6.0),
        (ellipsoid(np.array([1.0, 2.0, 0.5]), 60, 40), 4 / 3 * np.pi),
        (cylinder(0.5, 2.0, 200), np.pi / 2),
        (capsule(0.5, 2.0, 200), np.pi / 2 + np.pi / 6),
    ],
)
def test_primitives_enclose_their_volumes(surface, known):
    """Faces point outward, and the size is right."""
    np.testing.assert_allclose(volume(Shape(*surface)), known, rtol=0.02)


def test_visuals_of_urdf(tmp_path):
    """Origins, sizes, colours, by name and own; what trimesh wrote is read back, with its scale."""
    trimesh.creation.box((0.2, 0.4, 0.6)).export(tmp_path / "part.stl")
    path, system = urdf(
        tmp_path,
        """<visual><origin xyz="1 0 0" rpy="0 0 1.5707963267948966"/><geometry>
        <mesh filename="part.stl" scale="1 1 -2"/></geometry><material name="red"/></visual>
        <visual><geometry><sphere radius="0.5"/></geometry>
        <material name="m"><color rgba="0 0 1 0.5"/></material></visual>""",
    )
    shapes = read_appearance(path, system)
    mesh, ball = shapes["arm"]
    np.testing.assert_allclose(mesh.vertices.max(axis=0), (1.2, 0.1, 0.6), atol=1e-7)
    assert volume(mesh) > 0  # a mirror turns no surface inside out
    assert (mesh.colour, ball.colour) == ((1, 0, 0, 1), (0, 0, 1, 0.5))
    np.testing.assert_allclose(np.linalg.norm(ball.vertices, axis=1), 0.5)
    assert set(shapes) == {"arm"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.stl", None, "the mesh is missing"),
        ("packed.zip", b"PK\x03\x04 and so on", "this is an archive; unpack it"),
        ("text.stl", b"this is no mesh", "cannot be read as a mesh|no triangles"),
        ("empty.obj", b"", "cannot be read as a mesh|no triangles"),
        ("odd.xyz", b"0 0 0", "cannot be read as a mesh|no triangles"),
    ],
)
def test_broken_meshes_are_left_out_and_named(tmp_path, name, content, message):
    """One warning names the file; the other shapes are there."""
    if content is not None:
        (tmp_path / name).write_bytes(content)
    ball = "<visual><geometry><sphere radius='1'/></geometry></visual>"
    mesh = f"<visual><geometry><mesh filename='{name}'/></geometry></visual>"
    path, system = urdf(tmp_path, mesh + ball)
    with pytest.warns(UserWarning, match=f"not drawn: .*{name}: .*({message})"):
        shapes = read_appearance(path, system)
    assert len(shapes["arm"]) == 1


@pytest.mark.parametrize(
    ("geometry", "message"),
    [
        ("", "<geometry> .* is empty; add a box"),
        ("<sphere radius='0'/>", "radius must be positive, got '0'"),
        ("<box size='1 -1 1'/>", "size must be positive, got '1 -1 1'"),
        ("<torus radius='1'/>", "this is no box, cylinder, capsule, sphere or mesh"),
    ],
)
def test_broken_visuals_are_named(tmp_path, geometry, message):
    """Nothing that a file describes is left out without a word."""
    path, system = urdf(tmp_path, f"<visual><geometry>{geometry}</geometry></visual>")
    with pytest.warns(UserWarning, match=f"not drawn: .*{message}"):
        assert read_appearance(path, system) == {}


def test_a_machine_that_loses_most_of_its_meshes_is_not_drawn_in_pieces(tmp_path):
    """Two bodies without their meshes, and one ball: rather ellipsoids for all, and said."""
    link = "<link name='{0}'><visual><geometry>{1}</geometry></visual></link><joint name='{0}' "
    link += "type='floating'><parent link='base'/><child link='{0}'/></joint>"
    mesh = "<mesh filename='gone.stl'/>"
    links = "".join(map(link.format, "abc", (mesh, "<sphere radius='1'/>", mesh)))
    path = tmp_path / "r.urdf"
    path.write_text(f"<robot name='r'><link name='base'/>{links}</robot>")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        system = dl.load(path)
    with pytest.warns(UserWarning, match="gone.stl.*; the bodies are shown as their ellipsoids"):
        assert read_appearance(path, system) == {}


def test_a_link_that_loses_its_mesh_is_an_ellipsoid(tmp_path):
    """Among links that keep theirs, of URDF and MJCF, also where the robot stands on the world."""
    link = "<link name='{0}'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' "
    link += "ixz='0' iyz='0'/></inertial><visual><geometry>{1}</geometry></visual></link><joint "
    link += "name='{0}' type='floating'><parent link='base'/><child link='{0}'/></joint>"
    ball = "<sphere radius='1'/>"
    links = "".join(map(link.format, "abc", (ball, "<mesh filename='gone.stl'/>", ball)))
    (tmp_path / "r.urdf").write_text(f"<robot name='r'><link name='base'/>{links}</robot>")
    body = "<body name='{0}'><joint/><inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/>{1}</body>"
    geoms = "<geom size='1'/>", "<geom type='mesh' mesh='m'/>", "<geom size='1'/>"
    bodies = "".join(map(body.format, "abc", geoms))
    (tmp_path / "m.xml").write_text(
        "<mujoco><asset><mesh name='m' file='gone.stl'/></asset>"
        f"<worldbody>{bodies}</worldbody></mujoco>"
    )
    for name in ("r.urdf", "m.xml"):
        with pytest.warns(UserWarning, match=r"gone.stl"):
            system = dl.load(tmp_path / name)
        with pytest.warns(UserWarning, match="gone.stl.*; the bodies without any shape are shown"):
            appearance = read_appearance(tmp_path / name, system)
        assert [len(appearance[body]) for body in "abc"] == [1, 0, 1]
        shapes = shapes_of(system, appearance)
        expected = inertia_ellipsoids(system)["b"][0]
        np.testing.assert_array_equal(shapes["b"][0].vertices, expected.vertices)
        assert shapes["a"] is appearance["a"]


def test_capsules_of_newer_urdf(tmp_path):
    """The length is that of the cylinder between the half balls."""
    geometry = "<capsule radius='0.5' length='2'/>"
    path, system = urdf(tmp_path, f"<visual><geometry>{geometry}</geometry></visual>")
    (shape,) = read_appearance(path, system)["arm"]
    np.testing.assert_allclose(np.abs(shape.vertices).max(axis=0), [0.5, 0.5, 1.5], rtol=0.02)


def test_materials_hold_in_the_whole_file(tmp_path):
    """A name that one link defines colours another; a broken colour is named, the shape there."""
    ball = "<visual><geometry><sphere radius='1'/></geometry>{}</visual>"
    inline = "<material name='m'><color rgba='0 1 0 1'/></material>"
    path, system = urdf(tmp_path, ball.format("<material name='m'/>") + ball.format(inline))
    assert [shape.colour for shape in read_appearance(path, system)["arm"]] == [(0, 1, 0, 1)] * 2
    path, system = urdf(tmp_path, ball.format("<material name='n'><color rgba='1 x'/></material>"))
    with pytest.warns(UserWarning, match="rgba needs four numbers, got '1 x'"):
        assert read_appearance(path, system)["arm"][0].colour is None


def test_shapes_of_another_machine_are_not_put_on_the_world(tmp_path):
    """A link that the system lacks is named, and drawn nowhere."""
    path, _ = urdf(tmp_path, "<visual><geometry><sphere radius='1'/></geometry></visual>")
    other = dl.tree([dl.Body(name="hand", joint=dl.Translation(), mass=1.0)], name="other")
    with pytest.warns(UserWarning, match="other has no body 'arm'"):
        assert read_appearance(path, other) == {}


def test_huge_meshes_are_refused(tmp_path, monkeypatch):
    """By the size of the file before it is read, and by the number of triangles after."""
    trimesh.creation.icosphere(3).export(tmp_path / "ball.stl")
    for name, value, message in (("LARGEST_FILE", 1000, "MiB"), ("MOST_FACES", 100, "triangles")):
        with monkeypatch.context() as m:
            m.setattr(f"difflie.io.meshes.{name}", value)
            with pytest.raises(ModelError, match=f"ball.stl.*{message}.*simplify"):
                read_mesh(tmp_path / "ball.stl", np.ones(3))


def test_collada_files_have_their_unit(tmp_path):
    """A box of 20 cm is one of 0.2 m."""
    text = trimesh.exchange.dae.export_collada(trimesh.creation.box((20, 40, 60))).decode()
    unit = '<unit name="centimeter" meter="0.01"/><up_axis>'
    (tmp_path / "cm.dae").write_text(text.replace("<up_axis>", unit))
    ((vertices, _, _),) = read_mesh(tmp_path / "cm.dae", np.ones(3))
    np.testing.assert_allclose(np.ptp(vertices, axis=0), (0.2, 0.4, 0.6))


def test_geoms_of_mjcf(tmp_path):
    """Shapes stand where MuJoCo puts them, on the bodies of the system and on the world."""
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "m.xml"
    path.write_text(
        """<mujoco><asset><material name="g" rgba="0 1 0 1"/></asset><worldbody>
        <geom type="plane" size="1 1 1"/><geom type="box" size=".1 .2 .3" pos="0 0 1"/>
        <body name="b" pos="0 0 1"><joint name="h" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0.5 0 0" size=".05" material="g"/>
        <geom type="box" size="1 1 1" group="3"/><geom type="sphere" size=".3" rgba="0 0 0 0"/>
        </body><body name="c"><joint name="s" type="slide"/><geom type="sphere" size=".2"/>
        <geom type="ellipsoid" size=".1 .2 .3"/></body></worldbody></mujoco>"""
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        system = dl.load(path)
    shapes = read_appearance(path, system)
    assert set(shapes) == {None, "b", "c"}
    for shape, size in zip(shapes["c"], ([0.2] * 3, [0.1, 0.2, 0.3]), strict=True):
        np.testing.assert_allclose(shape.vertices.max(axis=0), size, rtol=0.06)
    (rod,) = shapes["b"]
    assert rod.colour == (0, 1, 0, 1)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qpos[0] = 0.4
    mujoco.mj_forward(model, data)
    pose = np.asarray(dl.body_poses(system, jnp.array([0.4, 0.0]))[0])
    moved = rod.placed(pose).vertices
    middle = (moved.max(axis=0) + moved.min(axis=0)) / 2
    np.testing.assert_allclose(middle, data.geom_xpos[2], atol=1e-6)


def test_coarser_shapes_keep_their_size():
    """Fewer triangles, about the same volume."""
    vertices, faces = ellipsoid(np.array([0.3, 0.3, 0.5]), 200, 100)
    shape = Shape(vertices, faces)
    coarse = shape.coarser(0.08)
    assert len(coarse.faces) < len(faces) / 20
    np.testing.assert_allclose(volume(coarse), volume(shape), rtol=0.1)


def test_hills_are_drawn_beside_what_the_file_shows(tmp_path):
    """Guards height fields, of the file and of one's own, which bodies that look like more hid."""
    (tmp_path / "m.xml").write_text(
        "<mujoco><asset><hfield name='h' nrow='3' ncol='4' size='2 1 0.5 0.1'/></asset><worldbody>"
        "<geom name='hills' type='hfield' hfield='h'/><body name='b'><freejoint/><geom size='.1'/>"
        "</body></worldbody></mujoco>"
    )
    with pytest.warns(UserWarning, match="lets its shapes touch"):
        system = dl.load(tmp_path / "m.xml")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        appearance = read_appearance(tmp_path / "m.xml", system)
    more = system.with_shapes({"more": dl.HeightField((1, 1), np.zeros((2, 2)))})
    for machine, fields in ((system, 1), (more, 2)):
        shapes = shapes_of(machine, appearance)
        assert len(shapes["b"]) == 1 and len(shapes[None]) == fields
        assert shapes[None][0].vertices.shape == (12, 3)
