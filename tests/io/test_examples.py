"""Machines and configurations that come with the package."""

import re
from pathlib import Path

import pytest

import difflie as dl
from difflie import identify as di
from difflie.cli import main
from difflie.io import examples
from difflie.io.config import ConfigError, read_config

CONFIGS = Path(__file__).parents[2] / "configs"


def test_every_machine_of_the_list_loads():
    """The list holds machines only, and each has its path."""
    assert {"arm7", "satellite", "control/hopper"} <= set(examples.machines())
    assert all(len(dl.load(examples.path(name)).body_names) > 0 for name in examples.machines())


def test_a_folder_may_be_left_out_where_that_is_clear():
    """A short name never means two files; a suffix chooses another file."""
    for name, place in (
        ("hopper", "configs/control/hopper.urdf"),
        ("double_pendulum", "configs/double_pendulum.urdf"),
        ("fourbar_leg.loops.toml", "configs/fourbar_leg.loops.toml"),
    ):
        assert examples.path(name).as_posix().endswith(f"/{place}")
    with pytest.raises(ValueError, match=r"no machine 'arm8' .*; did you mean 'arm7'\?"):
        examples.path("arm8")


def test_every_configuration_says_what_it_does_and_how_it_is_run():
    """The list is made of the heads of files."""
    assert len(examples.configurations()) == len(
        [f for f in CONFIGS.rglob("*.toml") if not f.name.endswith(".loops.toml")]
    )
    for name, sentence in examples.configurations().items():
        assert sentence[0].isupper() and sentence[-1] in ".?", name
        command = examples.command(examples.path(f"{name}.toml"))
        assert command.startswith("difflie ") and f"{Path(name).name}.toml" in command


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("arm7_hold", "arm7_hold.toml"),
        ("flip", "flip.toml quadrotor.urdf flip.py"),
        ("fourbar_leg", "fourbar_leg.toml fourbar_leg.urdf fourbar_leg.loops.toml"),
        (
            "fourbar_payload",
            "control/fourbar_payload.toml control/fourbar_payload.urdf fourbar_leg.loops.toml",
        ),
    ],
)
def test_a_copy_has_all_that_the_configuration_names(tmp_path, name, files):
    """It runs where it was copied to: relative paths stay true."""
    copies = examples.copy(name, tmp_path)
    assert [str(copy.relative_to(tmp_path)) for copy in copies] == files.split()
    assert copies == examples.copy(name, tmp_path)  # what is the same is no conflict


def test_a_part_of_a_configuration_is_not_copied_alone(tmp_path):
    """It is no file that a command takes."""
    with pytest.raises(ValueError, match="a part of a configuration; copy that one"):
        examples.copy("fourbar_leg.loops", tmp_path)
    assert "'a b/satellite.toml'" in examples.command(
        examples.copy("satellite", tmp_path / "a b")[0]
    ).replace(f"{tmp_path}/", "")


def test_nothing_is_overwritten(tmp_path):
    """What was changed in a copy stays."""
    (tmp_path / "satellite.urdf").write_text("mine")
    with pytest.raises(ValueError, match=r"satellite\.urdf is there and differs; .*--out FOLDER"):
        examples.copy("satellite", tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["satellite.urdf"]


def test_files_and_python_have_one_list(tmp_path):
    """ "package:NAME" is `examples.path(NAME)`, and a wrong name is an error of the file."""
    file = tmp_path / "run.toml"
    file.write_text('[system]\nfile = "package:stewart"\n')
    assert read_config(file).system.robot([tmp_path]) == examples.path("stewart")
    file.write_text('[system]\nfile = "package:stewrat"\n')
    with pytest.raises(ConfigError, match=r"system\.file: no machine 'stewrat' .*'stewart'"):
        read_config(file)


def test_the_command_lists_and_copies(tmp_path, capsys):
    """What a newcomer types."""
    main(["examples"])
    listed = capsys.readouterr().out
    assert "  arm7\n" in listed and re.search(r"  arm7_hold +The seven-joint arm", listed)
    main(["examples", "copy", "arm7_hold", "--out", str(tmp_path)])
    said = capsys.readouterr().out
    assert f"difflie run {tmp_path}/arm7_hold.toml --out arm7_hold" in re.sub(r"\s+", " ", said)
    main(["examples", "log", "simple_pendulum", "--out", str(tmp_path)])
    assert "simple_pendulum_log.csv" in capsys.readouterr().out
    log = di.read_recording(tmp_path / "simple_pendulum_log.csv")
    assert log.q.shape == log.v.shape == log.tau.shape == (1001, 1)
    for wrong in (["copy"], ["list", "arm7_hold"], ["copy", "arm8"], ["log", "stewart"]):
        with pytest.raises(SystemExit, match="2"):
            main(["examples", *wrong])


def test_a_name_in_place_of_a_file_is_answered(tmp_path, monkeypatch):
    """Who writes `dl.load("arm7")` is told of `dl.examples.path`."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r'dl\.load\(dl\.examples\.path\("arm7"\)\)'):
        dl.load("arm7")
