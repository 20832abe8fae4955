"""Pairs of links that do not touch, from SRDF files, in Python and in TOML."""

import pytest

import difflie as dl
from difflie.io.config import read_config
from difflie.io.loading import load_system

LINK = """<link name="{name}">
  <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision name="{name}_ball"><geometry><sphere radius="0.1"/></geometry></collision>
</link>"""
JOINT = """<joint name="j{k}" type="revolute"><parent link="l{a}"/><child link="l{k}"/>
  <origin xyz="0.5 0 0"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="1" velocity="1"/>
</joint>"""
TABLE = """<robot name="r"><group name="arm"/>
  <disable_collisions link1="l3" link2="l0" reason="Never"/>
  <disable_collisions link1="l1" link2="l3" reason="Default"/>
</robot>"""


@pytest.fixture
def files(tmp_path):
    """A chain of four links with a ball each, and the table beside it."""
    links = [LINK.format(name=f"l{k}") for k in range(4)]
    joints = [JOINT.format(k=k, a=k - 1) for k in range(1, 4)]
    text = "\n".join(['<robot name="r">', *links, *joints, "</robot>"])
    (tmp_path / "r.urdf").write_text(text)
    (tmp_path / "r.srdf").write_text(TABLE)
    return tmp_path


def pairs_of(system):
    return {frozenset(pair) for pair in system.coupling("contacts").pairs}


def test_listed_links_do_not_touch(files):
    """Of three pairs of links that no joint connects, one is left."""
    free = dl.load(files / "r.urdf", base="free", contacts=True)
    assert len(pairs_of(free)) == 3
    more = {"base": "free", "contacts": True}
    held = dl.load(files / "r.urdf", disabled=files / "r.srdf", **more)
    assert pairs_of(held) == {frozenset(("l0_ball", "l2_ball"))}
    idle = dl.load(files / "r.urdf", base="free")
    disabled = dl.io.read_disabled(files / "r.srdf")
    assert disabled == [("l3", "l0"), ("l1", "l3")]
    assert pairs_of(dl.touching(idle, disabled=disabled)) == pairs_of(held)


def test_tables_of_configurations(files):
    """[system] has the file, [[touching]] has pairs."""
    for text in (
        'contacts = true\ndisabled = "r.srdf"',
        '[[touching]]\ndisabled = [["l0", "l3"], ["l3", "l1"]]',
    ):
        config = files / "run.toml"
        head = '[system]\nfile = "r.urdf"\nbase = "free"\n'
        config.write_text(f"{head}{text}\n[simulation]\ndt = 1e-3\nsteps = 1\n")
        system = load_system(read_config(config))
        assert pairs_of(system) == {frozenset(("l0_ball", "l2_ball"))}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TABLE.replace("l0", "l4"), "no body is named 'l4'"),
        (TABLE.replace('link2="l0"', ""), r"r.srdf:2: <disable_collisions>: the attribute link2"),
        (TABLE.replace("<group", "<disable_default_collisions"), "only <disable_collisions> is"),
        ("<mujoco/>", "r.srdf:1: .* no SRDF file"),
        ("", "r.srdf:1: this is no SRDF file"),
    ],
)
def test_faults_are_named(files, text, words):
    (files / "r.srdf").write_text(text)
    with pytest.raises(ValueError, match=words):
        dl.load(files / "r.urdf", contacts=True, disabled=files / "r.srdf")


def test_a_table_needs_contacts(files):
    with pytest.raises(ValueError, match="load one with contacts=True, or leave out disabled"):
        dl.load(files / "r.urdf", disabled=files / "r.srdf")
    with pytest.raises(FileNotFoundError, match=r"r2\.srdf"):
        dl.load(files / "r.urdf", contacts=True, disabled=files / "r2.srdf")
