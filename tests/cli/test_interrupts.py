"""Ctrl-C ends a command also while a compiler runs, and files that are being written are whole."""

import json
import os
import signal
import subprocess
import sys

import pytest

from difflie.io import interrupt_guard
from difflie.io.files import written

pytestmark = pytest.mark.skipif(os.name == "nt", reason="sends signals as POSIX has them")
# Stands for a compiler: a call that no signal ends and that lets other threads run, for minutes.
LONG = """
import hashlib, pathlib, threading

def write():
    from difflie.io.files import written
    with written("kept.txt") as file:
        file.write(b"whole")
        print("ready", flush=True)
        hashlib.pbkdf2_hmac("sha256", b"", b"", 3_000_000)

def slow(numbers):
    if pathlib.Path("write").exists():
        threading.Thread(target=write).start()
    else:
        print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000)
    return numbers
"""
SWEEP = '[sweep]\nfunction = "long_call:slow"\n[[vary]]\npath = "x"\nvalues = [1.0]\n'


def interrupted(folder):
    """A command that is stopped within a long call: its exit status and what it said."""
    (folder / "long_call.py").write_text(LONG)
    (folder / "a.toml").write_text(SWEEP)
    command = [sys.executable, "-m", "difflie.cli", "sweep", "a.toml", "--allow-code"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=folder, **pipes) as process:
        while "ready" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=100)
    return process.returncode, said


@pytest.mark.slow
def test_a_long_call_is_not_waited_for(tmp_path):
    """It would take half an hour; the command says that it stops, and that it has."""
    status, said = interrupted(tmp_path)
    assert status == 130 and said.splitlines() == ["stopping", "stopped"]


@pytest.mark.slow
def test_files_are_finished(tmp_path):
    """Of a thread that writes as Ctrl-C comes."""
    (tmp_path / "write").touch()
    assert interrupted(tmp_path)[0] == 130
    assert (tmp_path / "kept.txt").read_text() == "whole"


def test_a_file_of_the_main_thread_is_finished_first(tmp_path):
    """The interruption comes when it is there, not in the middle."""
    path = tmp_path / "a.json"

    def write():
        with written(path) as file:
            interrupt_guard.interrupt()
            file.write(json.dumps([1]).encode())

    with pytest.raises(KeyboardInterrupt):
        write()
    assert json.loads(path.read_text()) == [1]
    with pytest.raises(KeyboardInterrupt):
        interrupt_guard.interrupt()
    assert not interrupt_guard.is_writing()


def test_fits_end_with_a_result():
    """The first Ctrl-C of a fit is answered by the best so far, in its own time."""
    assert not interrupt_guard.is_unhurried()
    with interrupt_guard.unhurried():
        assert interrupt_guard.is_unhurried()
