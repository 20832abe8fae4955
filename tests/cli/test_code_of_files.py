"""A configuration from a stranger runs nothing, by any command, unless its code is allowed."""

import sys

import pytest

import difflie as dl
from difflie import control as dc
from difflie.cli import main
from difflie.identify.files import read_study
from difflie.io.config import ConfigError, read_config
from difflie.io.modules import function, imported
from difflie.sweep.files import read_sweep

ROBOT = '[system]\nfile = "package:arm7"\n'
COUPLING = ROBOT + '[[coupling]]\ntype = "MODULE:Drag"\njoint = "joint1"\n'
SWEPT = '[sweep]\nfunction = "MODULE:square"\n[[vary]]\npath = "x"\nvalues = [1.0]\n'
KEPT = ROBOT + '[[keep]]\nquantity = "MODULE:height"\nreduction = "Final"\n'
SENSED = ROBOT + '[[sensor]]\nname = "a"\nkind = "MODULE:wire"\n'
WRITTEN = ROBOT + '[[parameter]]\npath = "a"\nof = "MODULE:by"\n'
GUESSED = ROBOT + '[horizon]\ndt = 0.1\nsteps = 2\n[guess]\nfunction = "MODULE:way"\n'
FORCED = ROBOT + '[[actuator]]\ntype = "MODULE:Motor"\n'
COST = ROBOT + '[[cost]]\ntype = "Function"\nfunction = "MODULE:cost"\n'
BOUND = ROBOT + '[[bound]]\ntype = "Function"\nfunction = "MODULE:bound"\n'


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """A function that writes a file whose module leaves a trace when it is imported."""
    monkeypatch.delenv("DIFFLIE_ALLOW_CODE", raising=False)
    (tmp_path / "left_behind.py").write_text(
        f"open({str(tmp_path / 'executed')!r}, 'w').close()\ndef square(x):\n    return x\n"
    )

    def written(text):
        (tmp_path / "file.toml").write_text(text.replace("MODULE", "left_behind"))
        return tmp_path / "file.toml"

    yield written
    sys.modules.pop("left_behind", None)


@pytest.mark.parametrize(
    ("command", "text", "key"),
    [
        (("run",), COUPLING, "coupling[0].type"),
        (("view",), FORCED, "actuator[0].type"),
        (("control",), COST, "cost[0].function"),
        (("control",), BOUND, "bound[0].function"),
        (("control",), GUESSED, "guess.function"),
        (("identify",), SENSED, "sensor[0].kind"),
        (("identify",), WRITTEN, "parameter[0].of"),
        (("sweep",), SWEPT, "sweep.function"),
        (("sweep", "--dry-run"), KEPT, "keep[0].quantity"),
        (("sweep", "--scheduler", "tcp://127.0.0.1:9"), SWEPT, "sweep.function"),
    ],
)
def test_nothing_is_executed(command, text, key, stranger, tmp_path, capsys):
    """And one sentence says what would be, from where, and how it is allowed."""
    name, *options = command
    with pytest.raises(SystemExit) as ended:
        main([name, str(stranger(text)), *options])
    (sentence,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2 and not (tmp_path / "executed").exists()
    for words in (key, "'left_behind'", str(tmp_path / "left_behind.py"), "--allow-code"):
        assert words in sentence


@pytest.mark.parametrize("given", ["flag", "environment"])
def test_it_is_executed_where_it_is_allowed(given, stranger, tmp_path, monkeypatch, capsys):
    """By the flag or the environment; the file is refused later, as its function is missing."""
    if given == "environment":
        monkeypatch.setenv("DIFFLIE_ALLOW_CODE", "1")
    text = SWEPT.replace("square", "cube")
    with pytest.raises(SystemExit):
        main(["sweep", str(stranger(text)), *["--allow-code"] * (given == "flag")])
    assert "no function 'cube'" in capsys.readouterr().err
    assert (tmp_path / "executed").exists()


@pytest.mark.parametrize("reader", [read_config, read_study, read_sweep, dc.read_control])
def test_readers_refuse_it(reader, stranger, tmp_path, monkeypatch):
    """Whatever the environment says: a program says so itself."""
    monkeypatch.setenv("DIFFLIE_ALLOW_CODE", "1")
    with pytest.raises(ConfigError, match=r"coupling\[0\].type names Python code"):
        reader(stranger(COUPLING))
    assert not (tmp_path / "executed").exists()


def test_modules_are_found_without_importing_them(stranger, tmp_path):
    """Where they would come from, also of packages, what is imported, and what is not there."""
    (tmp_path / "unread" / "inner").mkdir(parents=True)
    for module, origin in (
        ("unread.inner", tmp_path / "unread" / "inner"),
        ("unread.deep", tmp_path / "unread" / "deep.py"),
        ("difflie", dl.__file__),
        ("not_there", "the installed packages, if it is there"),
    ):
        with pytest.raises(ConfigError) as error:
            read_config(stranger(COUPLING.replace("MODULE", module)))
        assert f"'{module}' from {origin};" in str(error.value)


def test_no_other_way_leads_to_an_import(tmp_path):
    """The place where modules are imported asks once more."""
    with pytest.raises(ConfigError, match="Python code"):
        imported("json", tmp_path / "a.toml", "type", False)
    with pytest.raises(ConfigError, match="is 'json'; write \"module:function\""):
        function("json", tmp_path / "a.toml", "of", True)
