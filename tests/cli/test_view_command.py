"""`difflie view`: recordings, pictures, and what it says of bad input."""

import socket
from pathlib import Path

import numpy as np
import pytest

import difflie as dl
from difflie.cli import main
from difflie.io.motions import read_motion

CONFIGS = Path(__file__).parent.parent.parent / "configs"
MACHINE = CONFIGS / "double_pendulum.urdf"


def call(*arguments) -> int:
    """The exit status of the command line."""
    try:
        main([str(a) for a in arguments])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.fixture
def motion(tmp_path):
    """A trajectory.npz of the double pendulum, of 11 rows, and its arrays."""
    run = dl.simulate(dl.load(MACHINE), [0.5, 0.1], [0.0, 0.0], dt=0.01, steps=10)
    arrays = {"joints": np.array(["shoulder", "elbow"]), "t": run.t, "q": run.q, "v": run.v}
    np.savez(tmp_path / "trajectory.npz", **arrays)
    return tmp_path / "trajectory.npz", {k: np.array(a) for k, a in arrays.items()}


@pytest.mark.slow
def test_a_configuration_is_recorded_and_drawn(tmp_path, capsys):
    """Its motion is simulated; both files are complete, the recording without addresses."""
    configuration = tmp_path / "swing.toml"
    configuration.write_text(
        f'[system]\nfile = "{MACHINE}"\n[initial.joints]\nelbow = 0.4\n'
        "[simulation]\ndt = 0.01\nsteps = 20\n"
    )
    page, drawn = tmp_path / "swing.html", tmp_path / "swing.svg"
    assert call("view", configuration, "--record", page, "--picture", drawn) == 0
    assert "__VISER_EMBED_DATA__" in page.read_text()
    assert drawn.read_text().rstrip().endswith("</svg>")
    shown = capsys.readouterr().out
    assert f"written: {page}" in shown and f"written: {drawn}" in shown


def test_motions_are_read_and_told_where_they_end(motion, tmp_path, capsys):
    """A motion with a NaN is shown up to there, which is said."""
    path, arrays = motion
    assert np.array_equal(read_motion(path, dl.load(MACHINE)).q, arrays["q"])
    arrays["q"][7] = np.nan
    # In single precision, as some machines are simulated.
    single = {k: a.astype("float32") if a.dtype.kind == "f" else a for k, a in arrays.items()}
    np.savez(tmp_path / "broken.npz", **single)
    assert (
        call("view", MACHINE, "--motions", path, tmp_path / "broken.npz",
             "--record", tmp_path / "both.html") == 0
    )  # fmt: skip
    assert "broken: not finite from t = 0.07 s on" in capsys.readouterr().out


def test_bad_input_is_one_sentence(motion, tmp_path, capsys):
    """Each names what is wrong and what to do."""
    path, arrays = motion
    (tmp_path / "text.npz").write_text("no arrays")
    np.savez(tmp_path / "short.npz", **{**arrays, "t": arrays["t"][1:]})

    def said(*arguments) -> str:
        assert call("view", *arguments) == 2
        return " ".join(capsys.readouterr().err.split())

    other = said(CONFIGS / "simple_pendulum.urdf", "--motions", path)
    assert "this is the motion of another machine, with the joints 'shoulder', 'elbow'" in other
    np.save(tmp_path / "one.npy", arrays["t"])
    np.savez(tmp_path / "words.npz", **{**arrays, "t": arrays["t"].astype(str)})
    np.savez(tmp_path / "scalar.npz", **{**arrays, "joints": np.array("shoulder")})
    for name in ("text.npz", "one.npy", "words.npz", "scalar.npz"):
        assert f"{name}: this is no motion" in said(MACHINE, "--motions", tmp_path / name)
    assert "it has 10 times" in said(MACHINE, "--motions", tmp_path / "short.npz")
    assert "does not exist" in said(MACHINE, "--motions", tmp_path / "trajectoy.npz")
    assert "did you mean" in said(MACHINE, "--motions", tmp_path / "trajectoy.npz")
    assert "pictures are written as .png" in said(MACHINE, "--picture", "a.bmp")
    assert "call it a.html" in said(MACHINE, "--record", "a.viser")
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"port {port} cannot be used" in said(MACHINE, "--port", port)


def test_options_are_explained(capsys):
    """Guards the docstring, of which the help is made."""
    assert call("view", "--help") == 0
    shown = capsys.readouterr().out
    assert "--motions" in shown and "plays without a server" in shown and "--no-browser" in shown
