"""Sweeps in TOML files: what they compute, the command, and what is said of faults."""

import contextlib
import json
import subprocess
import sys

import numpy as np
import pytest

from difflie.cli import main
from difflie.cli import sweep as command
from difflie.cli.sweep import estimated, run_file
from difflie.io.tables import ConfigError
from difflie.sweep.files import design_of, function_of, read_sweep
from difflie.sweep.store import Store
from difflie.view.report import Worked

ARM = """
[system]
file = "package:arm7"
[initial]
joints = {joint2 = 0.6}
[simulation]
steps = 20
method = "SemiImplicitEuler"
[control]
stiffness = [9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0]
target = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
[sweep]
samples = 4
seed = 3
[[vary]]
path = "link7/mass"
uniform = [0.5, 2.0]
[[vary]]
path = "joint*/damping"
values = [1.0, 2.0]
relative = true
[[vary]]
path = "control/stiffness[1]"
log_grid = [1.0, 100.0, 3]
[[keep]]
quantity = "Distance"
first = {body = "link7"}
second = {position = [0.4, 0.0, 0.4]}
reduction = "Least"
[[keep]]
quantity = "mine:height"
reduction = "Final"
name = "height"
unit = "m"
"""
MINE = """
import jax.numpy as jnp
import difflie as dl

def height(system, q, v, u, t):
    return dl.body_poses(system, q)[-1, 2, 3]

def square(numbers):
    return {"square": numbers["x"] ** 2, "vector": jnp.stack([numbers["x"], 1.0])}

def root(numbers):
    return {"root": jnp.sqrt(numbers["x"])}
"""


@pytest.fixture
def file(tmp_path):
    """A function that writes the file with some text replaced, and returns its path."""
    (tmp_path / "mine.py").write_text(MINE)

    def written(*pairs, text=ARM):
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "sweep.toml").write_text(text)
        return tmp_path / "sweep.toml"

    return written


def test_a_shape_in_a_quantity_has_a_type(file):
    """Guards that the zone of a `Touch` is a shape of a class of its own, as in [shapes]."""
    text = ARM[: ARM.index("[[keep]]")] + '[[keep]]\nquantity = "Touch"\nreduction = "Peak"\n'
    text += 'zone = {type = "Sphere", frame = {body = "link7"}, radius = 0.1}\n'
    (kept,) = read_sweep(file(text=text)).keep.values()
    assert float(kept.quantity.zone.radius) == pytest.approx(0.1)
    with pytest.raises(ConfigError, match=r"keep\[0\]\.zone lacks the key 'type': one of Box, .*"):
        read_sweep(file(('type = "Sphere", ', ""), text=text))


@pytest.mark.slow
def test_a_file_is_computed_and_goes_on(file, tmp_path):
    """Guards all kinds of numbers and reductions of a file, and that it is not computed twice."""
    config = read_sweep(file(), allow_code=True)
    design = design_of(config)
    assert design.size == 2 * 3 * 4
    assert design.names == ("joint*/damping", "control/stiffness[1]", "link7/mass")
    assert design.rows(4, 5)[0, 1] == pytest.approx(10.0)
    results, report = run_file(config, tmp_path / "out")
    assert results.rows == {"done": 24} and report.worked is Worked.YES
    height = results.columns["height"]
    assert height.unit == "m" and height.finite == 24
    assert height.least < height.median < height.greatest
    table = Store.opened(tmp_path / "out" / "table").dataset()
    assert "least distance from link7 to the world" in table or len(table.data_vars) > 3
    done = []
    run_file(
        read_sweep(file(), allow_code=True),
        tmp_path / "out",
        progress=lambda *rows: done.append(rows),
    )
    assert done == []
    with pytest.raises(ConfigError, match=r"another sweep: file.sweep.seed is 4 here and 3 there"):
        run_file(read_sweep(file(("seed = 3", "seed = 4")), allow_code=True), tmp_path / "out")


@pytest.mark.slow
def test_relative_numbers_are_factors(file):
    """Guards a factor of all dampings, and a field of the control."""
    motions = function_of(read_sweep(file(), allow_code=True))
    one = {"link7/mass": 1.0, "control/stiffness[1]": 9.0, "joint*/damping": 2.0}
    changed = motions._assignment("joint*/damping").written(motions.system, 2.0)
    np.testing.assert_allclose(changed.joints.damping, 2 * motions.system.joints.damping)
    assert motions.fault("joint*/damping", -1.0).endswith("it must not be negative")
    assert np.isfinite(motions(one)["height"])


def test_any_function_is_swept(file, tmp_path):
    """Guards sweep.function, without a machine."""
    text = '[sweep]\nfunction = "mine:square"\n[[vary]]\npath = "x"\ngrid = [0.0, 2.0, 5]\n'
    run_file(read_sweep(file(text=text), allow_code=True), tmp_path / "out")
    table = Store.opened(tmp_path / "out" / "table").dataset()
    np.testing.assert_array_equal(table["square"], [0, 0.25, 1, 2.25, 4])
    assert {"vector 0", "vector 1"} <= set(table.data_vars)


@pytest.mark.slow
def test_an_estimate_without_a_table(file):
    """Guards --dry-run: rows, bytes and seconds."""
    found = estimated(read_sweep(file(), allow_code=True))
    assert found.rows == 24 and found.chunk % 64 == 0 and found.seconds > 0
    assert "24 rows in chunks of" in str(found)


FAULTS = {
    "no nearest path": (("link7/mass", "link7/mas"), "the nearest is 'link7/mass'"),
    "empty": (("values = [1.0, 2.0]", "values = []"), "joint*/damping.*one finite number"),
    "order": (("uniform = [0.5, 2.0]", "uniform = [2.0, 0.5]"), "lower must be less than upper"),
    "two ways": (("values = [1.0, 2.0]", "values = [1.0]\nuniform = [0.0, 1.0]"), "give one"),
    "none": (("values = [1.0, 2.0]", ""), "has none of values, grid"),
    "grid": (("[1.0, 100.0, 3]", "[-1.0, 100.0, 3]"), "its values must be positive"),
    "count": (("[1.0, 100.0, 3]", "[1.0, 100.0, 2.5]"), "count 2 or more"),
    "quantity": (('"Distance"', '"Distanse"'), "no quantity 'Distanse'; did you mean 'Distance'"),
    "reduction": (('"Least"', '"Lest"'), "no reduction 'Lest'; did you mean 'Least'"),
    "function": (('"mine:height"', '"mine:heigt"'), "no function 'heigt'; did you mean 'height'"),
    "key": (("first =", "frist ="), "has no key 'frist'; did you mean 'first'"),
    "twice": (('"control/stiffness[1]"', '"link7/mass"'), "'link7/mass' is varied twice"),
    "table": (("[control]", "[contol]"), r"no table \[contol\]"),
    "system": (("[system]", "[[system]]"), r"system must be a table: write \[system\]"),
    "seed": (("seed = 3", "seed = -3"), "sweep.seed is -3"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named(fault, file, tmp_path):
    """Guards one sentence with the key and the fix for each fault, before anything runs."""
    pair, said = FAULTS[fault]
    said = said.replace("*/", r"\*/")
    with pytest.raises(ConfigError, match=said) as caught:
        run_file(read_sweep(file(pair), allow_code=True), tmp_path / "out")
    assert str(tmp_path / "sweep.toml") in str(caught.value)


@pytest.mark.slow
def test_the_command(file, tmp_path):
    """Guards the command with its results as JSON, and its exit status for a fault."""

    def called(*arguments):
        options = "-m", "difflie.cli", "sweep", "--allow-code"
        command = [sys.executable, *options, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    path = file()
    ended = called(path, "--out", tmp_path / "out", "--json", tmp_path / "out.json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads((tmp_path / "out.json").read_text())["rows"] == {"done": 24}
    assert (tmp_path / "out" / "report.html").is_file()
    assert "will not be kept" not in ended.stdout
    ended = called(file(("link7/mass", "link7/mas")))
    assert ended.returncode == 2 and "the nearest is 'link7/mass'" in ended.stderr


HOPELESS = """
[sweep]
function = "mine:root"
[[vary]]
path = "x"
values = [VALUES]
"""


@pytest.mark.parametrize(("values", "status"), [("-1.0, -2.0", 1), ("-1.0, 4.0", 0)])
def test_a_sweep_without_a_row_that_is_done_fails(file, capsys, values, status):
    """Guards the exit status for scripts, and that one row is enough."""
    path = file(text=HOPELESS.replace("VALUES", values))
    ends = pytest.raises(SystemExit, match=str(status)) if status else contextlib.nullcontext()
    with ends:
        main(["sweep", str(path), "--allow-code", "--no-plot"])
    assert ("none of 2 rows is done" in capsys.readouterr().out) == bool(status)


def test_a_table_that_is_not_kept_is_said_first(file, monkeypatch, capsys):
    """Before anything is computed, so that nobody waits for it in vain."""

    def computed(*arguments, **options):
        assert "the table will not be kept" in capsys.readouterr().out
        raise ValueError("enough")

    monkeypatch.setattr(command, "run", computed)
    with pytest.raises(SystemExit):
        main(["sweep", str(file()), "--allow-code"])
