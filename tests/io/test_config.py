"""Configuration files: every mistake is one sentence that names the file, the key and the mend."""

from pathlib import Path

import pytest

from difflie.io.config import ConfigError, read_config
from difflie.io.study import read_study

ROOT = Path(__file__).parent.parent.parent
DAMPER = "[[damper]]\ndamping = 1.0"
CONTACT = "[[contact]]\nstiffness = 1e4\npath = [{point = [0, 0, 0]}, {point = [0, 0, 1]}]\n"
SYSTEM = '[system]\nfile = "package:arm7"\n'


CONFIGS = [p for p in sorted((ROOT / "configs").glob("*.toml")) if ".loops" not in p.name]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_the_examples_are_valid(path):
    read = read_study if "[data]" in path.read_text() else read_config
    assert read(path).system.robot(path.parent).is_file()


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
        ("[system]\nfile = 3", "system.file is 3; it must be a text"),
        ('[system]\nfile = "gone.urdf"', "there is no file .*gone.urdf.*'package:arm7'"),
        (SYSTEM + 'base = "fre"', "system.base is 'fre'"),
        (SYSTEM + "gravity = [1.0]", "three numbers"),
        (SYSTEM + "[simulation]\ndt = 0.0", "simulation.dt is 0.0; it must be positive"),
        (SYSTEM + '[simulation]\ndt = "1"', "simulation.dt is '1'; it must be a number"),
        (SYSTEM + "[simulation]\nsteps = 2.5", "it must be a whole number"),
        (SYSTEM + "[simulation]\nsteps = true", "it must be a whole number"),
        (SYSTEM + "[simulation]\nsave_every = 1001", "save_every is 1001; it must be at most"),
        (SYSTEM + f"[simulation]\nsteps = {2**62}", "it must be a whole number from 1 to"),
        (SYSTEM + "[simulation]\nsave_every = 0", "simulation.save_every is 0"),
        (SYSTEM + '[initial]\nq = ["a"]', "initial.q .* must be a list of numbers"),
        (SYSTEM + "[initial.joints]\nq = true", "must be a table of numbers"),
        (SYSTEM + "[control]\nstiffness = [1.0]", "together with control.target"),
        (SYSTEM + "[spring]\nstiffness = 1.0", r"list of tables: write \[\[spring\]\]"),
        (SYSTEM + "[[sprin]]\nstiffness = 1.0", "no table .*did you mean 'spring'"),
        (SYSTEM + "[[constrain]]\ntype = 'Fixed'", "no table .*did you mean 'constraint'"),
        (SYSTEM + "[[spring]]\nstiffness = 1.0", r"\[spring\[0\]\] lacks the key 'path'"),
        (SYSTEM + DAMPER + "\npath = [{bodi = 'a', point = [0, 0, 1]}]", "list of points {body ="),
        (SYSTEM + DAMPER + "\npath = [{point = [0, 1]}]", r"damper\[0\].path is .*list of points"),
        (SYSTEM + "[[contact]]\nstiffness = 1.0", r"\[contact\[0\]\] lacks the key 'path'"),
        (SYSTEM + CONTACT, r"\[contact\[0\]\] needs either the key 'normal' of a plane or"),
        (SYSTEM + CONTACT + "normal = [0, 0, 1]\nradii = [1, 1]", "either the key 'normal'"),
        (SYSTEM + CONTACT + "radii = [1, 1]\nradius = 1.0", r"contact\[0\].radius is 1.0; .*left"),
        (SYSTEM + CONTACT + "normal = 3.0", r"contact\[0\].normal is 3.0; .*list of numbers"),
        (SYSTEM + CONTACT + "fricton = 3.0", "no key 'fricton'; did you mean 'friction'"),
        (SYSTEM + "[[joint_stop]]", r"\[joint_stop\[0\]\] lacks the key 'stiffness'"),
        (SYSTEM + "[[joint_stop]]\njoints = [1]\nstiffness = 1.0", "joints is .* list of texts"),
        (
            SYSTEM + "[[tension_damper]]\npath = []\ndamping = 1.0\nrate_smoothing = 0.1",
            r"tension_damper\[0\].smoothing is None; it must be given together with rate_smoothing",
        ),
    ],
)
def test_mistakes(tmp_path, text, words):
    path = tmp_path / "broken.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words) as caught:
        read_config(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file_and_directory(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        read_config(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="directory"):
        read_config(tmp_path)
