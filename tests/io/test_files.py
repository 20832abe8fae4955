"""Files are written whole or not at all, through links, and found unfit before anything is lost."""

import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from difflie.cli import main
from difflie.io.files import OutputError, check_writable, file_name, write_whole
from difflie.io.results import save_arrays, save_json

ARM = '[system]\nfile = "package:arm7"\n[simulation]\nsteps = 1\n'


def nothing_else(folder, *names):
    return sorted(p.name for p in folder.iterdir()) == sorted(names)


def test_links_pipes_and_devices_stay_what_they_are(tmp_path):
    """A link's target gets the content, the reader of a pipe gets it, a device stays one."""
    target, link, pipe = (tmp_path / n for n in ("target.json", "link.json", "pipe"))
    target.write_text("old")
    link.symlink_to(target.name)
    save_json(link, {"a": 1})
    assert link.is_symlink() and '"a": 1' in target.read_text()
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()), daemon=True)
    reader.start()
    save_json(pipe, {"a": 2})
    reader.join(10)
    assert '"a": 2' in got[0] and stat.S_ISFIFO(pipe.stat().st_mode)
    save_arrays("/dev/null", a=np.zeros(3))
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    away = tmp_path / "away.json"
    away.symlink_to("folder/new.json")
    write_whole(away, "x")
    assert (tmp_path / "folder" / "new.json").read_text() == "x"
    assert nothing_else(tmp_path, "target.json", "link.json", "pipe", "away.json", "folder")


def test_permissions_are_kept_or_those_of_a_new_file(tmp_path):
    """As of a file that `open` makes, and of the file that was there."""
    ordinary, new = tmp_path / "ordinary", tmp_path / "new"
    ordinary.write_text("")
    write_whole(new, "")
    assert new.stat().st_mode == ordinary.stat().st_mode
    new.chmod(0o640)
    write_whole(new, "b")
    assert stat.S_IMODE(new.stat().st_mode) == 0o640 and new.read_text() == "b"


def test_a_failure_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "a.npz"
    path.write_text("old")
    with pytest.raises(ValueError, match="allow_pickle"):
        save_arrays(path, a=np.array([object()]))
    with pytest.raises(IsADirectoryError):
        save_json(tmp_path, {})
    assert path.read_text() == "old" and nothing_else(tmp_path, "a.npz")


def test_two_writers_may_write_one_file(tmp_path):
    """No write fails, and readers see one content or the other."""
    path, texts = tmp_path / "x", ("a" * 100_000, "b" * 100_000)

    def writes(text):
        for _ in range(50):
            write_whole(path, text)

    write_whole(path, texts[0])
    with ThreadPoolExecutor() as pool:
        running = [pool.submit(writes, text) for text in texts]
        while not all(r.done() for r in running):
            assert path.read_text() in texts
        for r in running:
            r.result()
    assert nothing_else(tmp_path, "x")


@pytest.mark.slow
def test_this_programs_own_output_may_be_named(tmp_path):
    """What stands in it already is kept, also where it is a file."""
    code = (
        "from difflie.io.files import write_whole as w, check_writable as c; from pathlib import *;"
        "print('before'); c(Path('/dev/stdout')); w('/dev/stdout', 'it\\n'); print('after')"
    )
    with (tmp_path / "log").open("w") as log:
        subprocess.run([sys.executable, "-c", code], stdout=log, check=True)
    assert (tmp_path / "log").read_text() == "before\nit\nafter\n"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p: p, "this is a folder"),
        (lambda p: p / "file" / "a.json", "file is no folder"),
        (lambda p: p / "file" / "a" / "b.json", "file is no folder"),
        (lambda p: p / "loop", "leads to itself"),
        (lambda p: p / ("x" * 300), "file name too long"),
        (lambda p: p / "socket", "no file, pipe or terminal"),
        (lambda p: "/dev/full", "no space left on device"),
        (lambda p: "/proc/x/y.json", "no such file or directory"),
    ],
)
@pytest.mark.parametrize("command", ["run", "demo", "identify", "reproduce"])
def test_outputs_that_cannot_be_written_are_found_before_anything_runs(
    tmp_path, capsys, monkeypatch, command, make, words
):
    import socket

    monkeypatch.setattr("difflie.cli.run.run_config", None)
    monkeypatch.setattr("difflie.cli.demo.run_demo", None)
    monkeypatch.setattr("difflie.cli.identify.run_study", None)
    monkeypatch.setattr("difflie.cli.identify.read_study", lambda path, data, allow_code: path)
    monkeypatch.setattr("difflie.cli.reproduce.REPRODUCTIONS", {"goetz": None})
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    (tmp_path / "a.toml").write_text(ARM)
    what = {"run": ["a.toml"], "identify": ["a.toml"], "reproduce": ["goetz"], "demo": []}[command]
    outputs = [["--json", str(make(tmp_path))]]
    if "file is" in words:
        outputs.append(["--out", str(make(tmp_path))])
    for output in outputs:
        with pytest.raises(SystemExit) as end:
            main([command, *what, *output])
        assert end.value.code == 2
        said = " ".join(capsys.readouterr().err.split())
        assert said.startswith("error: ") and words in said
    assert not list(tmp_path.rglob("*.part"))


def test_an_unfit_disk_is_found_with_its_folder(tmp_path, monkeypatch):
    """A file system that is full or read-only says so before the work."""

    def full(self, data):
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(OutputError, match=r"a\.json: it cannot be written: no space left"):
        check_writable(tmp_path / "a.json")
    assert nothing_else(tmp_path)


def test_the_name_of_a_machine_is_no_path():
    names = {"arm-2": "arm-2", "../a/b": "_a_b", "..": "machine", "": "machine"}
    for name, expected in names.items():
        assert file_name(name) == expected
    assert len(file_name("x" * 5000)) == 100


def test_a_file_in_place_of_a_folder_is_named(tmp_path):
    """Guards the sentence for a page that is written into a file."""
    (tmp_path / "a").touch()
    with pytest.raises(NotADirectoryError, match="a is a file, and no folder; give another"):
        write_whole(tmp_path / "a" / "b" / "report.html", "")
