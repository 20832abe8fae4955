"""What of a robot file is not modelled: an error where asked for, and in the result of a run."""

import warnings

import jax.numpy as jnp
import pytest

import difflie as dl
from difflie.io.config import ConfigError, read_config
from difflie.io.loading import load_system
from difflie.simulate.report import simulation_report, simulation_results
from difflie.system.validation import ModelError

MJCF = """<mujoco model="m">
<option viscosity="0.1"/>
<worldbody>
  <camera name="eye"/>
  <geom name="floor" type="plane" size="1 1 1"/>
  <body name="b" gravcomp="1">
    <joint name="j" axis="0 1 0"/>
    <geom size=".1" />
    <include file="more.xml"/>
  </body>
</worldbody>
<actuator>
  <motor name="j" joint="j"/>
</actuator>
</mujoco>
"""
MORE = """<mujoco>
<geom name="nose" size=".1" contype="0" conaffinity="0"/>
<body name="ball" pos="0 0 -1">
  <joint name="s" type="ball" range="0 1"/><geom size=".1" mass="1" contype="0" conaffinity="0"/>
</body>
</mujoco>
"""
URDF = """<robot name="r">
  <link name="base"><collision><geometry><box size="1 1 1"/></geometry></collision></link>
  <link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"
    iyz="0"/></inertial></link>
  <joint name="j" type="continuous"><parent link="base"/><child link="arm"/>
    <dynamics damping="0.1" springiness="3"/>
  </joint>
  <transmission name="t"/>
  <gazebo/><gazebo/>
</robot>
"""


@pytest.fixture
def mjcf(tmp_path):
    (tmp_path / "m.xml").write_text(MJCF)
    (tmp_path / "more.xml").write_text(MORE)
    return tmp_path / "m.xml"


@pytest.fixture
def urdf(tmp_path):
    (tmp_path / "r.urdf").write_text(URDF)
    return tmp_path / "r.urdf"


def test_strict_mjcf_lists_all_with_lines(mjcf):
    """Guards each feature with the line of its element, of its body without a name, or inside."""
    with pytest.raises(ModelError) as raised:
        dl.load(mjcf, strict=True)
    faults = str(raised.value).splitlines()
    more = mjcf.with_name("more.xml")
    for start, what in (
        (f"{mjcf}:5: ", f"contacts of geoms ('floor', number 1 of 'b') .*at {mjcf}:5, {mjcf}:6"),
        (f"{mjcf}:13: ", "actuators"),
        (f"{more}:4: ", "limits of ball joints ('s')"),
    ):
        (fault,) = [fault for fault in faults if fault.startswith(start) and what[:18] in fault]
        assert all(part in fault for part in what.split(" .*"))
        assert fault.endswith("take it out, or read the file with strict = False")
    assert len(faults) == 3 and "cameras" not in str(raised.value)


def test_strict_urdf_lists_all_with_lines(urdf):
    """Guards unknown elements and attributes, and that shapes and transmissions are no faults."""
    with pytest.raises(ModelError) as raised:
        dl.load(urdf, strict=True)
    first, second = sorted(str(raised.value).splitlines())
    assert first.startswith(f"{urdf}:6: joint/dynamics/@springiness may change the motion")
    assert second.startswith(f"{urdf}:9: gazebo may change the motion") and "9, 9" in second
    for lost in ('springiness="3"', "<gazebo/><gazebo/>"):
        urdf.write_text(urdf.read_text().replace(lost, ""))
    with pytest.warns(UserWarning, match="not used: link/collision"):
        system = dl.load(urdf, strict=True)
    assert system.not_modelled == ("link/collision",)


@pytest.mark.slow
def test_results_say_what_is_not_modelled(mjcf, tmp_path):
    """Guards the list on systems, also locked and frozen, and in a run, its text and its page."""
    with pytest.warns(UserWarning, match="not used"):
        system = dl.load(mjcf)
    assert system.not_modelled[0] == "contacts of geoms ('floor', number 1 of 'b')"
    assert "limits of ball joints ('s')" in system.not_modelled
    for other in (system.frozen(), dl.lock(system, {"j": 0.0})):
        assert other.not_modelled == system.not_modelled
    run = dl.simulate(system, system.neutral(), jnp.zeros(system.nv), dt=1e-3, steps=3)
    said = "not modelled, of the file: contacts of geoms ('floor', number 1 of 'b'), "
    assert run.result.not_modelled == system.not_modelled
    assert said in repr(run.result) and said in repr(run)
    results = simulation_results(run, system)
    assert results.not_modelled == list(system.not_modelled)
    page = simulation_report(run, system, results, {}, whole=False)
    assert any(said[1:] in line for line in page.verdict)
    arm = dl.load(dl.examples.path("arm7"))
    plain = dl.simulate(arm, arm.neutral(), jnp.zeros(7), dt=1e-3, steps=3)
    assert plain.result.not_modelled == () and "not modelled" not in repr(plain.result)


def test_strict_configurations(mjcf, tmp_path):
    """Guards strict = true in [system], and that it is a boolean."""
    file = tmp_path / "run.toml"
    file.write_text(f'[system]\nfile = "{mjcf}"\nstrict = true\n')
    with pytest.raises(ModelError, match="contacts of geoms"):
        load_system(read_config(file))
    file.write_text(f'[system]\nfile = "{mjcf}"\nstrict = "yes"\n')
    with pytest.raises(ConfigError, match=r"system.strict is 'yes'; it must be true or false"):
        read_config(file)


SMALL = """<mujoco><worldbody><site name="w" pos="0 0 1"/>
<body name="a"><joint name="j" {j}/><geom name="g" size=".1" mass="1" {g}/><site name="s"/>
<body name="b" pos="1 0 0"><joint name="k" type="ball" {k}/>
<geom name="h" size=".1" mass="1" {h}/></body></body>{bodies}</worldbody>
<tendon><fixed name="f" {f}><joint joint="j" coef="2"/></fixed>
<spatial name="p"><site site="w"/><site site="s"/></spatial></tendon>
{more}</mujoco>"""
STILL = 'contype="0" conaffinity="0"'
PAIR = '<contact><pair name="p" geom1="g" geom2="h" {}/></contact>'
# What each file has, what is said of it, and options with which it is said; None if never.
KINDS = {
    "hinge": ({"j": 'range="-1 1"'}, "limits of hinges and slides ('j')", {}),
    "hinge stops": ({"j": 'range="-1 1" solreflimit=".1 1"'}, None, {"limits": True}),
    "hinge softness": ({"j": 'range="-1 1" solreflimit=".1 1"'}, "solimplimit) of limits", {}),
    "hinge margin": (
        {"j": 'range="-1 1" margin=".1"'},
        "margins of limits ('j')",
        {"limits": True},
    ),
    "switched off": (
        {"j": 'range="-1 1"', "more": '<option><flag limit="disable"/></option>'},
        None,
        {},
    ),
    "ball": ({"k": 'range="0 1"'}, "limits of ball joints ('k')", {}),
    "tendon": ({"f": 'range="0 1"'}, "limits of tendons ('f')", {}),
    "tendon margin": (
        {"f": 'range="0 1" margin=".1"'},
        "margins of limits of tendons ('f')",
        {"limits": True},
    ),
    "friction": ({"j": 'frictionloss=".1"'}, None, {}),
    "friction softness": (
        {"j": 'frictionloss=".1" solreffriction=".1 1"'},
        "solimpfriction) of friction ('j')",
        {},
    ),
    "tendon friction": (
        {"f": 'frictionloss=".1" solimpfriction=".8 .9 .01"'},
        "of friction of tendons ('f')",
        {},
    ),
    "contacts": ({"g": "", "h": ""}, "contacts of geoms ('g'", {}),
    "touching": ({"g": "", "h": ""}, None, {"contacts": True}),
    "belt": (
        {"g": 'surfacevel="1 0 0 0 0 0"', "h": ""},
        "surface velocities of geoms ('g')",
        {"contacts": True},
    ),
    "adhesion": (
        {"g": 'adhesion="2"', "h": ""},
        "adhesion of geoms ('g')",
        {"contacts": True},
    ),
    "pair adhesion": (
        {"more": PAIR.format('adhesion="2"')},
        "adhesion of contact pairs ('p')",
        {"contacts": True},
    ),
    "asleep": (
        {
            "bodies": '<body name="z" sleep="init" pos="0 0 9"><freejoint/>'
            f'<geom size=".1" {STILL}/></body>',
            "more": '<option><flag sleep="enable"/></option>',
        },
        "bodies that begin asleep ('z')",
        {},
    ),
    "pair softness": (
        {"more": PAIR.format('solreffriction=".1 1"')},
        "contact pairs ('p')",
        {"contacts": True},
    ),
    "pair friction": (
        {"more": PAIR.format('friction="1 2"')},
        "another in each direction ('p')",
        {"contacts": True},
    ),
    "equality": (
        {"more": '<equality><joint name="e" joint1="j" solref=".1 1"/></equality>'},
        "softness (solref, solimp) of equality constraints ('e')",
        {},
    ),
    "torquescale": (
        {"more": '<equality><weld name="e" body1="a" torquescale="2"/></equality>'},
        "softness (torquescale) of equality constraints ('e')",
        {},
    ),
    "mocap": ({"bodies": '<body name="m" mocap="true"/>'}, "motion of mocap bodies ('m')", {}),
    "armature": ({"f": 'armature=".1"'}, None, {}),
    "motor": (
        {"more": '<actuator><motor name="u" joint="j"/></actuator>'},
        "actuators but for",
        {},
    ),
}


# Files in which geoms touch by their masks.
TOUCHING = "contacts", "touching", "belt", "adhesion"


@pytest.mark.parametrize("kind", KINDS)
def test_strict_mjcf_knows_each_kind(tmp_path, kind):
    """Guards what would change the motion, with its line and the option that reads it."""
    has, said, options = KINDS[kind]
    usual = {"g": STILL, "h": STILL, "bodies": "", "more": "", "j": "", "k": "", "f": ""}
    if ("more" in has and "<pair" in has["more"]) or kind in TOUCHING:
        # Bodies that are joined to each other touch in pairs only.
        usual["bodies"] = '<body pos="0 0 3"><freejoint/><geom size=".1" mass="1"/></body>'
    file = tmp_path / "m.xml"
    file.write_text(SMALL.format(**(usual | has)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if said is None:
            dl.load(file, strict=True, **options)
            return
        with pytest.raises(ModelError) as raised:
            dl.load(file, strict=True, **options)
    text = str(raised.value)
    assert said in text and f"{file}:" in text
    for option in {"limits", "contacts", "actuators"} - set(options):
        reads = f"read the file with {option} = True" in text
        named = {"limits": "limits of", "contacts": "contacts of", "actuators": "actuators"}[option]
        assert reads == (f": {named}" in text)


def test_limits_that_are_numbers_are_in_the_system(tmp_path):
    """Guards that these, which the system holds, are no remark of a load or a run."""
    usual = dict.fromkeys(("bodies", "more", "k", "f"), "") | {"g": STILL, "h": STILL}
    (tmp_path / "m.xml").write_text(SMALL.format(j='range="-1 1"', **usual))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dl.load(tmp_path / "m.xml").not_modelled == ()
