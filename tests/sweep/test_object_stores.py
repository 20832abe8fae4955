"""Sweeps into object stores: the same tables as in folders, damage found, and what is said."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import fsspec
import numpy as np
import pytest
from small import CHUNK, DESIGN, SWINGS
from travellers import checksum

import difflie as dl
from difflie.sweep import StoreError, failures, store, store_location
from difflie.sweep.store import Store

FEW = dl.Grid({"x": np.arange(10.0)})


def square(numbers):
    """The square of a number."""
    return {"square": numbers["x"] ** 2}


@pytest.fixture(scope="module")
def whole():
    """The checksum of the table in memory."""
    return checksum(dl.sweep(SWINGS, DESIGN, chunk=CHUNK).load())


@pytest.mark.slow
def test_an_object_store_has_the_same_table(whole):
    """Guards a table at an address, objects that are changed, cut or lost, and the same call."""
    out = "memory://bucket/sweep"
    assert checksum(dl.sweep(SWINGS, DESIGN, out, chunk=CHUNK).load()) == whole
    assert Store.opened(out).pending() == []
    objects = fsspec.filesystem("memory")
    for chunk, change in ((3, lambda x: x[:-1] + bytes([x[-1] ^ 4])), (7, lambda x: x[:-9])):
        name = f"/bucket/sweep/drift total/c/{chunk}"
        objects.pipe_file(name, change(objects.cat_file(name)))
    objects.rm_file("/bucket/sweep/status/c/5")
    objects.rm_file("/bucket/sweep/chunks/checksum/c/9")
    assert Store.opened(out).pending() == [3, 5, 7, 9]
    assert checksum(dl.sweep(SWINGS, DESIGN, out).load()) == whole


def test_what_fails_is_said_in_an_object_store():
    """Guards reasons of rows that are refused."""
    drawn = dl.Random({"bob/mass": dl.Normal(1.0, 1.0)}, 8, seed=2)
    dl.sweep(SWINGS, drawn, "memory://bucket/refused", chunk=8)
    refused = np.flatnonzero(drawn.rows(0, 8)[:, 0] < 0).tolist()
    assert refused and list(failures("memory://bucket/refused")) == refused


def test_a_store_that_was_not_made_to_its_end_is_made_again(tmp_path, monkeypatch):
    """Guards the end of a process while it makes a store, and folders of others."""
    with monkeypatch.context() as patch:
        patch.setattr(store, "_escaped", lambda name: 1 / (name != "status") and name)
        with pytest.raises(ZeroDivisionError):
            dl.sweep(square, FEW, tmp_path / "store", chunk=5)
    assert (tmp_path / "store" / "zarr.json").exists()
    table = dl.sweep(square, FEW, f"file://{tmp_path}/store", chunk=5)
    np.testing.assert_array_equal(table["square"], np.arange(10.0) ** 2)
    store_location.zarr().open_group(tmp_path / "other", mode="w")
    with pytest.raises(StoreError, match="is no store of a sweep; give another folder"):
        dl.sweep(square, FEW, tmp_path / "other")


def test_addresses_that_cannot_be_opened_are_named(monkeypatch):
    """Guards what is said of missing packages, unknown kinds, and stores that do not answer."""
    with pytest.raises(ValueError, match=r"fsspec knows no stores of the kind 's33'; did you"):
        dl.sweep(square, FEW, "s33://bucket/sweep")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.setattr(sys.modules["fsspec.registry"], "_registry", {})
    with pytest.raises(ImportError, match=r"s3://bucket/sweep: .*pip install s3fs$"):
        dl.sweep(square, FEW, "s3://bucket/sweep")
    monkeypatch.undo()

    def refused(*arguments, **words):
        raise PermissionError("Access Denied")

    monkeypatch.setattr(fsspec.implementations.memory.MemoryFileSystem, "pipe_file", refused)
    with pytest.raises(StoreError, match=r"memory://new: not written \(Access Denied\).*reached"):
        dl.sweep(square, FEW, "memory://new", chunk=5)


@pytest.mark.slow
def test_s3(whole, tmp_path, monkeypatch):
    """Guards a server of s3: kill -9 of the process that writes, and the same call."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0, verbose=False)
    pytest.importorskip("s3fs")
    server.start()
    try:
        host, port = server.get_host_and_port()
        settings = {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://{host.replace('0.0.0.0', '127.0.0.1')}:{port}",
        }
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(StoreError, match=r"s3://bucket/sweep: not"):
            dl.sweep(square, FEW, "s3://bucket/sweep", chunk=5)
        fsspec.filesystem("s3").mkdir("bucket")
        script = Path(__file__).with_name("small.py")
        process = subprocess.Popen(
            [sys.executable, script, "s3://bucket/sweep"], stdout=subprocess.PIPE, text=True
        )
        for _ in range(5):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert 0 < Store.opened("s3://bucket/sweep").missing() < 16
        assert checksum(dl.sweep(SWINGS, DESIGN, "s3://bucket/sweep").load()) == whole
    finally:
        server.stop()
    with pytest.raises(StoreError, match=r"s3://bucket/sweep: not .*when it can be reached"):
        dl.sweep(SWINGS, DESIGN, "s3://bucket/sweep")
