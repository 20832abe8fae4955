"""Sweeps on a Dask cluster: tables as of one process, whatever becomes of the workers."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import types

import dask
import distributed
import jax
import numpy as np
import pytest
import travellers
from small import CHUNK, DESIGN, PENDULUM

import difflie as dl
from difflie import quantities as dq
from difflie.cli import main
from difflie.sweep import ClusterError, Dask, cluster, worker
from difflie.sweep.store import Store


def assert_alike(one, other):
    """Two tables are equal bit for bit."""
    assert list(one.variables) == list(other.variables)
    for name in one.variables:
        np.testing.assert_array_equal(one[name].values, other[name].values, err_msg=name)


@pytest.fixture(scope="module")
def whole():
    """The table of a sweep in this process."""
    return dl.sweep(travellers.waited(0.0), DESIGN, chunk=CHUNK).load()


def workers():
    """A client of two workers with one thread each, in processes of their own."""
    with (
        # Dask would give up a worker that is slow to start anew, as on a busy machine.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as local,
        distributed.Client(local, set_as_default=False) as found,
    ):
        yield found


client = pytest.fixture(scope="module")(workers)
others = pytest.fixture(workers)


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(others, whole, tmp_path):
    """Guards kill -9 of one of two workers in the middle, bit for bit."""
    killed_then_same(others, whole, tmp_path, {4})


@pytest.mark.thorough
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.thorough) for k in (1, 2))]
)
def test_many_killed_workers_change_nothing(others, whole, tmp_path, seed):
    """Guards the same for several moments of one sweep."""
    moments = np.random.default_rng(seed).choice(np.arange(1, 12), 3, replace=False)
    killed_then_same(others, whole, tmp_path, set(moments.tolist()))


def killed_then_same(client, whole, tmp_path, moments):
    seen, local = [], client.cluster

    def kill(done, size):
        seen.append(done)
        # One that is killed as it starts is not started anew, and without any the sweep waits.
        if len(seen) in moments and len(local.scheduler.workers) == 2:
            os.kill(next(iter(local.workers.values())).pid, signal.SIGKILL)

    slow = travellers.waited(0.2)
    table = dl.sweep(
        slow, DESIGN, tmp_path / "store", chunk=CHUNK, engine=Dask(client), progress=kill
    )
    assert len(seen) == 16
    assert_alike(table.load(), whole)


@pytest.mark.slow
def test_functions_travel(client, whole):
    """Guards lambdas, Equinox modules of a module beside, and the driver's precision."""
    few = dl.Listed({"q0/hinge": [0.1, 0.2], "control/stiffness": [1.0, 3.0]})
    motions = dl.Motions(
        PENDULUM, {"v": dq.Final(dq.Velocities())}, steps=10, control=travellers.Spring()
    )
    assert_alike(
        dl.sweep(motions, few, chunk=2, engine=Dask(client)).load(),
        dl.sweep(motions, few, chunk=2).load(),
    )
    third = dl.Listed({"x": [1.0]})
    for function in (lambda numbers: {"value": numbers["x"] / 3.0}, travellers.counted):
        for wide in (True, False):
            with jax.enable_x64(wide):
                table = dl.sweep(function, third, engine=Dask(client.scheduler.address))
                assert table["value"].dtype == np.dtype("f8" if wide else "f4")
                assert float(table["value"][0]) == table["value"].dtype.type(1) / 3


@pytest.mark.slow
def test_files_are_swept_on_a_cluster(client, tmp_path, monkeypatch, capsys):
    """Guards --scheduler, with a function of a module beside the file, and what is said."""
    (tmp_path / "beside.py").write_text("def cube(numbers):\n    return numbers['x'] ** 3\n")
    file = tmp_path / "cubes.toml"
    file.write_text(
        '[sweep]\nfunction = "beside:cube"\n[[vary]]\npath = "x"\nvalues = [1.0, 2.0, 3.0]\n'
    )
    command = ["sweep", str(file), "--allow-code", "--out", f"{tmp_path}/out/", "--scheduler"]
    main([*command, client.scheduler.address])
    assert Store.opened(tmp_path / "out" / "table").dataset()["value"].values.tolist() == [1, 8, 27]
    monkeypatch.setattr(cluster, "_PATIENCE", 0.5)
    with pytest.raises(SystemExit):
        main([*command[:3], "--scheduler", "tcp://127.0.0.1:9"])
    assert "tcp://127.0.0.1:9: no scheduler of Dask answers" in capsys.readouterr().err


@pytest.mark.slow
def test_few_chunks_are_in_flight(client, monkeypatch):
    """Guards memory: the scheduler never knows more than a few chunks of many."""
    monkeypatch.setattr(cluster, "_CHUNKS", 3)
    known = []
    dl.sweep(
        lambda numbers: {"y": numbers["x"]},
        dl.Grid({"x": np.arange(60.0)}),
        chunk=1,
        engine=Dask(client),
        progress=lambda done, size: known.append(len(client.cluster.scheduler.tasks)),
    )
    assert len(known) == 60 and max(known) <= 8


def test_workers_that_cannot_be_used_are_named(client, monkeypatch):
    """Guards what is said of workers without difflie and of another version."""
    few = dl.Grid({"x": [1.0, 2.0]})

    def square(numbers):
        return {"y": numbers["x"] ** 2}

    def hide():
        sys.kept = sys.modules.pop("difflie.sweep", None)
        sys.modules["difflie.sweep"] = None

    def show():
        sys.modules["difflie.sweep"] = sys.kept
        if sys.kept is None:
            del sys.modules["difflie.sweep"]

    client.run(hide)
    with pytest.raises(ClusterError, match=r"worker tcp://\S+ cannot import difflie.*install the"):
        dl.sweep(square, few, engine=Dask(client))
    client.run(show)
    older = {**worker._versions(), "difflie": "0.0.1"}
    monkeypatch.setattr(worker, "_versions", lambda: older)
    with pytest.raises(
        ClusterError, match=r"tcp://\S+ has difflie .*, and this process 0.0.1; ins"
    ):
        dl.sweep(square, few, engine=Dask(client))


def test_schedulers_that_are_not_there_are_named(monkeypatch):
    """Guards what is said where nothing answers, and of what is no scheduler."""
    monkeypatch.setattr(cluster, "_PATIENCE", 0.5)
    few = dl.Grid({"x": [1.0, 2.0]})
    with pytest.raises(ClusterError, match=r"tcp://127.0.0.1:9: no scheduler of Dask answers"):
        dl.sweep(lambda numbers: {"y": numbers["x"]}, few, engine=Dask("tcp://127.0.0.1:9"))
    with pytest.raises(TypeError, match="the scheduler is 3; give an address"):
        dl.sweep(lambda numbers: {"y": numbers["x"]}, few, engine=Dask(3))


@pytest.mark.thorough
def test_a_chunk_that_ends_its_workers_is_left_out(tmp_path):
    """Guards that all others are there, its name, and that the same call computes it."""

    def deadly(numbers):
        def end(x):
            if (np.asarray(x) == 5.0).any():
                os.kill(os.getpid(), signal.SIGKILL)
            return np.asarray(x)

        x = jax.pure_callback(
            end, jax.ShapeDtypeStruct((), float), numbers["x"], vmap_method="broadcast_all"
        )
        return {"square": x**2}

    few = dl.Grid({"x": np.arange(16.0)})
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),  # of 3, for a short test
        contextlib.contextmanager(workers)() as client,
        pytest.raises(
            ClusterError, match=r"left out .* 1 of the chunks, number 2 first: it ended 2"
        ),
    ):
        dl.sweep(deadly, few, tmp_path / "store", chunk=2, engine=Dask(client))
    assert Store.opened(tmp_path / "store").pending() == [2]


@pytest.mark.slow
def test_workers_that_do_not_come_back_end_a_sweep(tmp_path):
    """Guards that no sweep waits for ever after its last worker has gone, and what is said."""

    def end(done, size):
        local.scale(0)
        while local.scheduler.workers:
            time.sleep(0.05)

    with (
        distributed.LocalCluster(1, threads_per_worker=1, dashboard_address=":0") as local,
        pytest.warns(UserWarning, match="has lost its last worker; waiting 0 s for one"),
        pytest.raises(ClusterError, match="the last worker has gone, and for 0 s none came"),
    ):
        dl.sweep(
            lambda numbers: {"square": numbers["x"] ** 2},
            dl.Grid({"x": np.arange(4.0)}),
            tmp_path / "store",
            chunk=1,
            engine=Dask(local, patience=0.0),
            progress=end,
        )
    assert len(Store.opened(tmp_path / "store").pending()) == 3
    with pytest.raises(ValueError, match=r"patience is -1; give seconds from 0, or math\.inf"):
        Dask(local, patience=-1)


@pytest.mark.thorough
def test_a_parcel_that_ended_workers_is_sent_again(tmp_path, monkeypatch):
    """Guards that workers which end while they receive what is swept do not end the sweep."""
    once, real = tmp_path / "once", cluster.packed

    class Deadly:
        """A parcel that kills the first worker that opens it."""

        def __init__(self, held):
            self.held = held

        def __bytes__(self):
            if not once.exists():
                once.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return self.held

    monkeypatch.setattr(cluster, "packed", lambda sweep: Deadly(real(sweep)))
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        contextlib.contextmanager(workers)() as client,
    ):
        table = dl.sweep(
            lambda numbers: {"square": numbers["x"] ** 2},
            dl.Grid({"x": np.arange(4.0)}),
            chunk=1,
            engine=Dask(client),
        )
    assert once.exists()
    assert table["square"].values.tolist() == [0, 1, 4, 9]


@pytest.mark.slow
def test_what_is_made_from_a_failed_parcel_is_not_waited_for(client):
    """Guards a chunk that Dask never computes again, as what it needs has ended workers."""
    from distributed.scheduler import KilledWorker

    def kill():
        raise KilledWorker("parcel", types.SimpleNamespace(address="tcp://gone"), 3)

    parcel = client.submit(kill, pure=False)
    never = client.submit(int, resources={"of no worker": 1}, pure=False)
    assert cluster._Workers(client, 0.0).result(never, 1, False, parcel) is None


@pytest.mark.thorough
def test_workers_come_as_they_are_needed(whole):
    """Guards a cluster that adapts, from no worker on."""
    with distributed.LocalCluster(1, threads_per_worker=1, dashboard_address=":0") as local:
        local.scale(0)
        while local.scheduler_info["workers"]:
            time.sleep(0.05)
        local.adapt(minimum=0, maximum=2, interval="200ms")
        with pytest.warns(UserWarning, match="has no workers yet"):
            table = dl.sweep(travellers.waited(0.5), DESIGN, chunk=CHUNK, engine=Dask(local))
        assert_alike(table.load(), whole)


def _until_listening(port):
    """Waits until something listens on a port of this computer."""
    for _ in range(1200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise TimeoutError(f"nothing listens on port {port}")


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_named(whole, tmp_path):
    """Guards a scheduler without difflie, its end, and that the same call goes on."""
    program = (
        "import sys; sys.modules['difflie'] = None;"
        "from distributed.cli.dask_scheduler import main;"
        "main(['--port', '18786', '--host', '127.0.0.1', '--no-dashboard'])"
    )
    scheduler = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    address = "tcp://127.0.0.1:18786"
    _until_listening(18786)
    work = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1"]
    process = subprocess.Popen([*work, "--no-nanny", "--no-dashboard"], stderr=subprocess.DEVNULL)
    seen = []

    def end(done, size):
        seen.append(done)
        if len(seen) == 3:
            scheduler.kill()

    try:
        with pytest.raises(
            ClusterError, match=r"the scheduler went away .*the same command goes on"
        ):
            dl.sweep(
                travellers.waited(0.2),
                DESIGN,
                tmp_path / "store",
                chunk=CHUNK,
                engine=Dask(address),
                progress=end,
            )
    finally:
        scheduler.kill()
        process.kill()
        scheduler.wait()
        process.wait()
    assert len(seen) >= 3
    again = []
    table = dl.sweep(
        travellers.waited(0.2), DESIGN, tmp_path / "store", progress=lambda d, n: again.append(d)
    )
    assert len(again) < 16
    assert_alike(table.load(), whole)
