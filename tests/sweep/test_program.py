"""Sweeps as one program in several processes of `jax.distributed`, and on several devices."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import pytest
from small import CHUNK, DESIGN, SWINGS
from travellers import checksum

import difflie as dl
from difflie.sweep.store import Store

FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def whole():
    """The checksum of the table that one process with one device computes."""
    return checksum(dl.sweep(SWINGS, DESIGN, chunk=CHUNK).load())


def together(*endings, store):
    """What processes of one program print, one for each ending ("" for none), and their status."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    processes = [
        subprocess.Popen(
            [sys.executable, FOLDER / "together.py", str(k), str(len(endings)), address, store]
            + ([ending] if ending else []),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "JAX_PLATFORMS": "cpu",
                "HEARTBEAT": "10" if any(endings) else "120",
            },
        )
        for k, ending in enumerate(endings)
    ]
    said = [process.communicate(timeout=900) for process in processes]
    return [(p.returncode, *text) for p, text in zip(processes, said, strict=True)]


@pytest.mark.slow
def test_two_processes_compute_one_table(whole, tmp_path):
    """Guards that each computes its half, and returns all, bit for bit."""
    for status, printed, errors in together("", "", store=tmp_path / "store"):
        assert status == 0, errors
        lines = printed.splitlines()
        assert lines[-1] == f"whole {whole}"
        assert len(lines) == 1 + 8


@pytest.mark.slow
@pytest.mark.thorough("fail-1")
@pytest.mark.parametrize(
    ("ending", "who"),
    [
        ("die", 0),
        pytest.param("die", 1, marks=pytest.mark.thorough),
        pytest.param("fail", 0, marks=pytest.mark.thorough),
        ("fail", 1),
    ],
)
def test_no_process_waits_for_ever(ending, who, whole, tmp_path):
    """Guards what becomes of the others where one dies or fails, and that the same call goes on."""
    endings = [ending if k == who else "" for k in range(2)]
    found = together(*endings, store=tmp_path / "store")
    status, printed, errors = found[1 - who]
    assert status != 0 and "whole" not in printed
    if ending == "fail":
        assert f"process {who} of 2 ended: KeyError: 'a fault'" in errors
    else:
        # This process says so, or jax ends it, whichever notices first.
        assert any(word in errors for word in ("died", "cannot be waited for", "heartbeat"))
    assert 0 < Store.opened(tmp_path / "store").missing() < 16
    for _, printed, errors in together("", "", store=tmp_path / "store"):
        assert printed.splitlines()[-1:] == [f"whole {whole}"], errors


def test_several_processes_need_a_store(monkeypatch):
    """Guards what is said of a table in the memory of each."""
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(ValueError, match="2 processes need a store that all of them reach"):
        dl.sweep(SWINGS, DESIGN, chunk=CHUNK)


@pytest.mark.slow
def test_devices_do_not_matter(whole):
    """Guards the same bits on four devices as on one; parts that fail are halved there, too."""
    program = """
import jax
jax.config.update("jax_num_cpu_devices", 4)
from small import *
from travellers import checksum
import jax.numpy as jnp
import numpy as np
assert len(jax.local_devices()) == 4
print(checksum(dl.sweep(SWINGS, DESIGN, chunk=CHUNK - 2).load()))

def hot(numbers):
    def checked(x):
        if (np.asarray(x) > 8.5).any():
            raise RuntimeError("too hot")
        return np.asarray(x)
    x = jax.pure_callback(
        checked, jax.ShapeDtypeStruct((), float), numbers["x"], vmap_method="broadcast_all"
    )
    return {"square": x**2}

table = dl.sweep(hot, dl.Grid({"x": np.arange(10.0)}), chunk=8)
assert table["square"].values[:9].tolist() == [k**2 for k in range(9)]
assert table["status"].values.tolist() == ["done"] * 9 + ["failed"]
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=FOLDER, timeout=900
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(whole)]
