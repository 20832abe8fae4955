"""Configuration files: every mistake is one sentence that names the file, the key and the fix."""

from pathlib import Path

import pytest

from difflie import load
from difflie.control import read_control
from difflie.identify.files import read_study
from difflie.io.config import ConfigError, read_config
from difflie.io.couplings import TABLES, read_loops
from difflie.sweep.files import read_sweep

ROOT = Path(__file__).parent.parent.parent
DAMPER = "[[damper]]\ndamping = 1.0"
CONTACT = "[[contact]]\nstiffness = 1e4\npath = [{point = [0, 0, 0]}, {point = [0, 0, 1]}]\n"
SYSTEM = '[system]\nfile = "package:arm7"\n'


@pytest.mark.parametrize(
    ("read", "name", "words"),
    [
        (read_config, "control/cart_pole", r"for `difflie control`, as its \[horizon\] says$"),
        (read_config, "sweep_arm", r"for `difflie sweep`, as its \[sweep\] says$"),
        (read_sweep, "tossed_cube", r"for `difflie identify`, as its \[\[run\]\] says$"),
        (read_study, "control/flip", "for `difflie control`"),
        (read_control, "satellite", r"for `difflie run`, as its \[simulation\] says$"),
    ],
)
def test_a_file_for_another_command_says_which(read, name, words):
    """And nothing of tables that this command does not know."""
    with pytest.raises(ConfigError, match=words):
        read(ROOT / "configs" / f"{name}.toml")


LOSSY = """import difflie as dl
class Lossy(dl.JointForce):
    joint: str
    other: object
    def effort(self, x, v):
        return x
"""


def test_modules_that_cannot_be_used_are_named(tmp_path):
    """A class with a field that no file can say, one that needs another module, and broken code."""
    (tmp_path / "lossy_force.py").write_text(LOSSY)
    (tmp_path / "needy_force.py").write_text("import no_such_thing")
    (tmp_path / "broken_force.py").write_text("class")
    path = tmp_path / "a.toml"
    for kind, words in (
        ("lossy_force:Lossy", "Lossy: a file cannot say its field 'other' of the type object"),
        ("needy_force:A", "the module 'needy_force' needs: No module named 'no_such_thing'"),
        ("broken_force:A", "'broken_force' cannot be imported: SyntaxError"),
    ):
        path.write_text(f"{SYSTEM}[[coupling]]\ntype = '{kind}'\nother = 1.0")
        with pytest.raises(ConfigError, match=words) as caught:
            read_config(path, allow_code=True)
        assert str(path) in str(caught.value)


TYPED = """from __future__ import annotations
from typing import TYPE_CHECKING, Literal
import difflie as dl
import equinox as eqx
if TYPE_CHECKING:
    from jax import Array
class Typed(dl.JointForce):
    joint: str = eqx.field(static=True)
    gain: Array = eqx.field(converter=dl.number(unit="N m"))
    shape: Literal["sine", "square"] = eqx.field(static=True, default="sine")
    def effort(self, x, v):
        return self.gain * x
"""


def test_types_of_ones_own_say_what_a_key_must_be(tmp_path):
    """Also where a name is there for type checkers only, and of a literal."""
    (tmp_path / "typed_force.py").write_text(TYPED)
    path = tmp_path / "a.toml"
    text = f"{SYSTEM}[[coupling]]\ntype = 'typed_force:Typed'\njoint = 'joint2'\ngain = 2\n"
    path.write_text(text)
    assert read_config(path, allow_code=True).couplings["coupling[0]"].gain == 2
    path.write_text(text.replace("2\n", "[2]\nshape = 'squar'"))
    with pytest.raises(ConfigError) as caught:
        read_config(path, allow_code=True)
    assert str(caught.value).split(f"{path}: coupling[0].")[1:] == [
        "gain is [2]; it must be a number (N m)\n",
        "shape is 'squar'; it must be one of 'sine', 'square'; did you mean 'square'?",
    ]


DATA = ROOT.parent / "shared" / "data"
CONFIGS = [p for p in sorted((ROOT / "configs").glob("*.toml")) if ".loops" not in p.name]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_the_examples_are_valid(path):
    text = path.read_text()
    if "[sweep]" in text:
        assert read_sweep(path).robot.is_file()
    elif "[data]" not in text:
        assert read_config(path).robot.is_file()
    elif "DATA/go2" in text and not DATA.is_dir():
        pytest.skip(f"{DATA} with the robot's file is absent")
    else:
        assert read_study(path, DATA).robot.is_file()


def test_defaults(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(SYSTEM)
    config = read_config(path)
    assert config.simulation.method == "RKMK4"
    assert config.simulation.dt == 1e-3
    assert config.system.base is None
    assert config.control.effort is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"\[system\] lacks the key 'file'"),
        ("system = 3", r"system must be a table: write \[system\]"),
        ("[system", "not TOML"),
        ('[sistem]\nfile = "a"', r"no table \[sistem\]; did you mean 'system'"),
        ('[system]\nfil = "a"', r"\[system\] has no key 'fil'; did you mean 'file'"),
        ("[system]\nfile = 3", "system.file is 3; it must be a string"),
        ('[system]\nfile = "gone.urdf"', "there is no file .*gone.urdf.*'package:arm7'"),
        (SYSTEM + 'base = "fre"', "system.base is 'fre'"),
        (SYSTEM + "gravity = [1.0]", r"three numbers \(m/s\^2\)"),
        (SYSTEM + "[simulation]\ndt = 0.0", "simulation.dt is 0.0 s; it must be positive"),
        (SYSTEM + '[simulation]\ndt = "1"', "simulation.dt is '1'; it must be a number"),
        (SYSTEM + "[simulation]\nsteps = 2.5", "it must be a whole number"),
        (SYSTEM + "[simulation]\nsteps = true", "it must be a whole number"),
        (SYSTEM + "[simulation]\nsave_every = 1001", "save_every is 1001; it must be at most"),
        (SYSTEM + f"[simulation]\nsteps = {2**62}", "it must be a whole number"),
        (SYSTEM + "[simulation]\nsave_every = 0", "simulation.save_every is 0"),
        (SYSTEM + '[initial]\nq = ["a"]', "initial.q .* must be a list of numbers"),
        (SYSTEM + "[initial.joints]\nq = true", r"initial.joints.q is True; .*number \(rad or m"),
        (SYSTEM + "[control]\nstiffness = [1.0]", "together with control.target"),
        (SYSTEM + "[spring]\nstiffness = 1.0", r"list of tables: write \[\[spring\]\]"),
        (SYSTEM + "[[sprin]]\nstiffness = 1.0", "no table .*did you mean 'spring'"),
        (SYSTEM + "[[constrain]]\ntype = 'Fixed'", "no table .*did you mean 'constraint'"),
        (
            SYSTEM + "[[spring]]\nstiffness = 1.0\nrest_length = 1.0",
            r"\[spring\[0\]\] lacks the key 'path'",
        ),
        (
            SYSTEM + DAMPER + "\npath = [{bodi = 'a', point = [0, 0, 1]}]",
            r"damper\[0\].path\[0\] has no key 'bodi'; .*'body'",
        ),
        (
            SYSTEM + DAMPER + "\npath = [{point = [0, 1]}]",
            r"path\[0\].point is .*three numbers \(m\)",
        ),
        (
            SYSTEM + "[[contact]]\nstiffness = 1.0\nradii = [1, 1]",
            r"\[contact\[0\]\] lacks the key 'path'",
        ),
        (SYSTEM + CONTACT, r"\[contact\[0\]\] needs either the key 'normal' of PlaneContact or"),
        (
            SYSTEM + CONTACT + "normal = [0, 0, 1]\nradii = [1, 1]",
            "'normal' of PlaneContact and 'r",
        ),
        (SYSTEM + CONTACT + "radii = [1, 1]\nradius = 1.0", "'radius' of PlaneContact .*leave one"),
        (SYSTEM + CONTACT + "normal = 3.0", r"contact\[0\].normal is 3.0; .*list of three numbers"),
        (
            SYSTEM + CONTACT + "normal = [0, 0, 1]\nfricton = 3.0",
            "no key 'fricton'; did you mean 'friction'",
        ),
        (SYSTEM + "[[coupling]]\nstiffness = 1.0", r"\[coupling\[0\]\] needs the key 'type'"),
        (SYSTEM + "[[coupling]]\ntype = 'Sprin'", "no force 'Sprin'; did you mean 'Spring'"),
        (
            SYSTEM + "[[coupling]]\ntype = 'gone_away:Drag'",
            "no module 'gone_away'; put gone_away.py",
        ),
        (SYSTEM + "[[coupling]]\ntype = 'a b:Drag'", "'a b' is no name of a module"),
        (SYSTEM + "[[coupling]]\ntype = 'difflie:Sprin'", "difflie has no class 'Sprin'"),
        (
            SYSTEM + "[[coupling]]\ntype = 'difflie:Path'",
            "Path is no force; derive it from dl.Coup",
        ),
        (
            SYSTEM + "[[coupling]]\ntype = 'difflie:Elastic'",
            "Elastic lacks the method potential, te",
        ),
        (
            SYSTEM + "[[bushing]]\npath = []\nstiffness = [1.0]",
            "a list of six lists of six numbers",
        ),
        (SYSTEM + "[[joint_stop]]", r"\[joint_stop\[0\]\] lacks the key 'stiffness'"),
        (SYSTEM + "[[joint_stop]]\njoints = [1]\nstiffness = 1.0", "joints is .* list of strings"),
        (
            SYSTEM
            + "[[tension_damper]]\npath = []\ndamping = 1.0\nsmoothing = 1\nrate_smoothing = 1",
            r"\[tension_damper\[0\]\] lacks the key 'rest_length'",
        ),
    ],
)
def test_mistakes(tmp_path, text, words):
    path = tmp_path / "broken.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words) as caught:
        read_config(path, allow_code=True)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


SEVERAL = """
[system]
file = "gone/a.urdf"
bas = "free"
gravity = [0.0, 9.81]

[initial.joints]
elbow = "up"

[simulation]
dt = 0.0
steps = 10
save_every = 20
metod = "RKMK4"

[control]
target = [1.0, inf]

[[spring]]
path = [{body = "hand", pont = [0, 0, 0]}, {point = [0, 0]}]
stiffness = -1.0
rest_length = 0.1

[[coupling]]
type = "Sprin"

[[constraint]]
type = "RevoluteConstraint"
first = {boddy = "a"}
friction = {coefficient = -1.0, velocity = "slow"}

[[dampr]]
damping = 1.0
"""


def test_all_faults_are_told_at_once(tmp_path):
    """A line for each, with its key and value, and the nearest key, table or class there is."""
    path = tmp_path / "broken.toml"
    path.write_text(SEVERAL)
    with pytest.raises(ConfigError) as caught:
        read_config(path)
    expected = {
        "[system] has no key 'bas'; did you mean 'base'?",
        "system.gravity is [0.0, 9.81]; it must be a list of three numbers (m/s^2)",
        "initial.joints.elbow is 'up'; it must be a number (rad or m)",
        "[simulation] has no key 'metod'; did you mean 'method'?",
        "simulation.dt is 0.0 s; it must be positive",
        "simulation.save_every is 20; it must be at most simulation.steps, 10",
        "control.target[1] is inf; it must be finite",
        "spring[0].path[0] has no key 'pont'; did you mean 'point'?",
        "spring[0].path[1].point is [0, 0]; it must be a list of three numbers (m)",
        "spring[0].stiffness is -1.0 N/m; it must not be negative",
        "coupling[0].type: difflie has no force 'Sprin'; did you mean 'Spring'?",
        "constraint[0]: RevoluteConstraint lacks the key 'second'",
        "constraint[0].first has no key 'boddy'; did you mean 'body'?",
        "constraint[0].friction.coefficient is -1.0 m or 1; it must be positive, without friction "
        "give none",
        "constraint[0].friction.velocity is 'slow'; it must be a number (rad/s or m/s)",
        "there is no table [dampr]; did you mean 'damper'?",
    }
    sentences = set(str(caught.value).split("\n"))
    (gone,) = (s for s in sentences if "system.file: there is no file" in s)
    assert sentences - {gone} == {f"{path}: {fault}" for fault in expected}


NUMBERS = {
    "digits": (
        SYSTEM + f"[simulation]\nsteps = {'9' * 5000}",
        "in line 4 has more than a thousand",
    ),
    "hexadecimal": (
        SYSTEM + f"[simulation]\nsteps = 0x{'f' * 9999}",
        "steps is a whole number bey",
    ),
    "64 bits": (
        SYSTEM + f"[simulation]\nsteps = {2**63}",
        "simulation.steps is a whole number bey",
    ),
    "63 bits": (SYSTEM + f"[simulation]\nsteps = {2**63 - 1}", "steps is 92.*whole number below 2"),
    "rows": (SYSTEM + "[simulation]\nsteps = 2000000000", "save_every is 1; it must be 200 or mo"),
    "NaN": (SYSTEM + "[control]\neffort = [0, nan]", r"control.effort\[1\] is nan; it must be fin"),
    "inf": (SYSTEM + "[initial.joints]\nb = 1e999", "initial.joints.b is inf; it must be fin"),
    "large": (SYSTEM + "[initial.joints]\nb = -1e99", "joints.b is -1e.*; it must be at most 1e"),
    "small": (
        SYSTEM + "[simulation]\ndt = 5e-324",
        "simulation.dt is 5e-324 s; it must be between 1e-12 and",
    ),
    "lists": (SYSTEM + f"a = {'[' * 3000}{']' * 3000}", "nested more than 20 deep"),
    "tables": (SYSTEM + f"a = {'{a=' * 3000}1{'}' * 3000}", "nested more than 20 deep"),
    "dots": (SYSTEM + f"{'a.' * 3000}a = 1", "nested more than 20 deep"),
    "long": (SYSTEM + f'base = "{"x" * 100000}"', r"system.base is 'xxx.*\.\.\.xxx.*'; it must be"),
    "encoding": (b"[system]\nfile = '\xff'", "this is not TOML: .*; save it as UTF-8"),
    "path": ('[system]\nfile = "a\\u0000b"', "system.file: there is no file"),
    "long path": (f'[system]\nfile = "{"a" * 5000}"', "system.file: there is no file"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_and_texts_of_any_size(tmp_path, name):
    """Whatever is in a file is refused in one short sentence, and nothing of it is computed."""
    text, words = NUMBERS[name]
    path = tmp_path / "broken.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=words) as caught:
        read_config(path)
    assert str(path) in str(caught.value) and len(str(caught.value)) < 2500


def test_a_mark_in_front_of_utf8(tmp_path):
    (tmp_path / "a.toml").write_bytes(b"\xef\xbb\xbf" + SYSTEM.replace("\n", "\r\n").encode())
    assert read_config(tmp_path / "a.toml").simulation.steps == 1000


@pytest.mark.parametrize("reader", [read_config, read_study, load, read_loops])
def test_links_to_nothing_are_named(tmp_path, reader):
    (tmp_path / "a.urdf").symlink_to("b.urdf")
    with pytest.raises((ConfigError, FileNotFoundError), match=r"a link to b\.urdf, which is not "):
        reader(tmp_path / "a.urdf")


def test_missing_file_and_directory(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        read_config(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="directory"):
        read_config(tmp_path)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("steps = 10\nduration = 1.0", r"simulation.steps is 10 and duration 1.0; give one of th"),
        ("dt = 0.4\nduration = 1.0", r"simulation.duration is 1 s, which is 2.5 steps of dt = 0.4"),
        ("dt = 0.1\nduration = 1\nsave_every = 11", "save_every is 11; it must be at most .*, 10"),
        ("duration = 0.0", "simulation.duration is 0.0 s; it must be positive"),
    ],
)
def test_a_duration_in_place_of_steps(tmp_path, keys, words):
    """A run lasts what its file says, or the file is refused with what fits."""
    path = tmp_path / "a.toml"
    path.write_text(SYSTEM + f"[simulation]\n{keys}")
    with pytest.raises(ConfigError, match=words):
        read_config(path)
    path.write_text(SYSTEM + "[simulation]\ndt = 0.002\nduration = 1.0")
    table = read_config(path).simulation
    assert (table.steps, table.left_out) == (500, "")
    path.write_text(SYSTEM + "[simulation]\ndt = 0.002\nduration = 1.0\nsave_every = 300")
    said = "simulation.duration is 1 s, 500 steps, and save_every 300: the run ends with step 300, "
    assert read_config(path).simulation.left_out == said + "the last that is saved"


def test_names_of_tables_are_of_words():
    """Guards names of classes that begin with capitals: pid_servo, not p_i_d_servo."""
    assert {"pid_servo", "dc_motor", "point_force"} <= set(TABLES)
    assert all(len(word) > 1 for name in TABLES for word in name.split("_"))
