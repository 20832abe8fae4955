"""Sweeps on the workers of a Dask cluster: chunks go out, and this process alone writes them."""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import contextlib
import dataclasses
import queue
import time
import warnings
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np

from ..system.installation import extra
from ..system.validation import format_value
from .design import Design
from .run import Computed, Sweep
from .variants import Variants
from .worker import packed

# Chunks in flight: two for each worker, and more up to so many and so many bytes, which a cluster
# that adapts to its work must see.
_EACH, _CHUNKS, _BYTES = 2, 1000, 2**29
# Seconds until a scheduler has answered, and from one look at the workers to the next.
_PATIENCE, _GLANCE = 10, 1.0


class ClusterError(ConnectionError):
    """A cluster that cannot be used, with the reason and the fix."""


@dataclasses.dataclass(frozen=True, eq=False)
class Dask:
    """An engine for `sweep`: the workers of a Dask cluster, which may come and go.

    scheduler: its address, such as "tcp://host:8786", a `distributed.Client`, or a cluster, such as
    a `SLURMCluster` of dask-jobqueue or a `KubeCluster` of dask-kubernetes.

    A worker uses all devices of its process for one chunk at a time, with the settings of jax of
    this process. It needs the same versions of difflie and jax; functions and modules that are not
    installed travel there, by cloudpickle and as source. The size of a chunk is measured on a
    worker. A chunk whose worker ends is given to another one; one that ends several workers, and
    several once more when it is alone at the end, is left out and said.

    patience: seconds that a sweep waits for a worker after the last one has gone, with a warning;
    `math.inf` for a queue that may take any time. The first worker is waited for without an end.

    Raises ClusterError, in a sentence, where no scheduler answers or it goes away, for a worker
    that cannot be used, and where no worker came back; ValueError for a patience below zero;
    ImportError without the extra `cluster`.
    """

    scheduler: Any
    patience: float = 3600.0

    def __post_init__(self) -> None:
        if not isinstance(self.patience, (int, float)) or not self.patience >= 0:
            raise ValueError(
                f"Dask: patience is {format_value(self.patience)}; give seconds from 0, or math.inf"
            )

    def computed(
        self, sweep: Sweep, chunks: list[int]
    ) -> Generator[tuple[int, Computed], None, None]:
        """The chunks with these numbers, in the order in which they are done."""
        with self._client() as client:
            yield from _Chunks(_Workers(client, self.patience), sweep, chunks).results()

    def chunk_size(self, variants: Variants, design: Design) -> int:
        """The number of rows of a chunk, as a worker measures it."""
        with self._client() as client:
            future = client.submit(
                _task("measured"), packed(Sweep(variants, design, 0)), pure=False
            )
            return _accepted(_Workers(client, self.patience).result(future))

    @contextlib.contextmanager
    def _client(self) -> Iterator[Any]:
        try:
            import distributed
        except ImportError:
            raise ImportError(f"for a cluster Dask is needed; {extra('cluster')}") from None
        given = self.scheduler
        if isinstance(given, distributed.Client):
            yield given
            return
        if not isinstance(given, str) and not hasattr(given, "scheduler_address"):
            raise TypeError(
                f"sweep: the scheduler is {format_value(given)}; give an address such as "
                '"tcp://host:8786", a client or a cluster of Dask'
            )
        try:
            client = distributed.Client(given, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ClusterError(
                f"{given}: no scheduler of Dask answers ({_first(error)}); start one with "
                "`dask scheduler`, or correct the address"
            ) from None
        with client:
            yield client


class _Chunks:
    """The chunks of a sweep on a cluster, of which a bounded number is in flight."""

    def __init__(self, workers: _Workers, sweep: Sweep, chunks: list[int]) -> None:
        self.workers, self.waiting, self.running = workers, collections.deque(chunks), {}
        self.done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.task, self.packed = _task("computed"), packed(sweep)
        # Which ended workers, or waited where another did: they are tried one by one at the end.
        self.blamed, self.alone = collections.deque(), False
        wide = sum(
            np.dtype(c.dtype).itemsize * int(np.prod(c.shape)) for c in sweep.variants.columns
        )
        bytes_each = sweep.chunk * (wide + 8 * len(sweep.design.names) + 1)
        self.most = int(np.clip(_BYTES // bytes_each, 1, _CHUNKS))
        self.parcel = self._sent()

    def results(self) -> Generator[tuple[int, Computed], None, None]:
        if not self.workers.number():
            warnings.warn(f"{self.workers.where} has no workers yet; waiting for one", stacklevel=2)
        try:
            while True:
                self._submit()
                if not self.running:
                    break
                future = self._next()
                chunk = self.running.pop(future)
                found = self.workers.result(future, chunk, self.alone, self.parcel)
                future.release()
                if found is not None:
                    yield chunk, _accepted(found)
                elif not self.alone:
                    self.blamed.append(chunk)
        finally:
            for future in (*self.running, self.parcel):
                future.release()
        self.workers.say()

    def _next(self) -> Any:
        """One that is done."""
        while True:
            with contextlib.suppress(queue.Empty):
                return self.done.get(timeout=_GLANCE)
            self.workers.watch()

    def _submit(self) -> None:
        if not self.waiting and not self.running:
            self.alone, self.waiting = True, self.blamed
        # A parcel that was on its way to several workers that ended counts as what ended them.
        if self.waiting and (self.alone or self.parcel.status == "error"):
            self.parcel.release()
            self.parcel = self._sent()
        most = 1 if self.alone else max(self.most, _EACH * self.workers.number())
        for _ in range(min(most - len(self.running), len(self.waiting))):
            chunk = self.waiting.popleft()
            future = self.workers.client.submit(self.task, self.parcel, chunk, pure=False)
            self.running[future] = chunk
            future.add_done_callback(self.done.put)

    def _sent(self) -> Any:
        # A task, so that it is made again where the worker that holds it ends.
        return self.workers.client.submit(bytes, self.packed, pure=False)


class _Workers:
    """The workers of a cluster, and what becomes of a future where they or the scheduler end."""

    def __init__(self, client: Any, patience: float) -> None:
        self.client, self.patience, self.chunks = client, patience, {}
        self.where = client.scheduler.address if client.scheduler else "the cluster"
        # Whether there was one, and since when there is none.
        self.seen, self.none_since = False, None

    def result(
        self, future: Any, chunk: int | None = None, at_last: bool = True, needs: Any = None
    ) -> Any:
        """That of a future; None for a chunk that ended its workers, noted if it is at last.

        needs: a future that it is computed from.
        """
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker

        try:
            return self._waited_for(future, needs)
        except KilledWorker as error:
            if chunk is None:
                raise ClusterError(f"{self.where}: {self._ended(error)}") from None
            if at_last:
                self.chunks[chunk] = self._ended(error)
            return None
        except (OSError, FutureCancelledError) as error:
            raise self._gone(error) from None

    def _waited_for(self, future: Any, needs: Any) -> Any:
        # One that is done is computed again where its worker ends before the result has come. This
        # waits beside it: a time-out of the future would break off a result that is long to send.
        asked = asyncio.run_coroutine_threadsafe(
            self.client.gather(future, errors="skip", asynchronous=True),
            self.client.loop.asyncio_loop,
        )
        try:
            while not concurrent.futures.wait([asked], timeout=_GLANCE).done:
                self.watch()
                # Dask leaves one alone that it would compute again from what has failed.
                if needs is not None and needs.status == "error" and not future.done():
                    raise needs.exception()
            self.seen, self.none_since = True, None
            found = asked.result()
            return found if future.status == "finished" else future.result()
        finally:
            asked.cancel()

    def watch(self) -> None:
        """Warns where the last worker has gone, and raises ClusterError where none came back."""
        if self.number() or not self.seen:
            self.none_since = None
        elif self.none_since is None:
            self.none_since = time.monotonic()
            warnings.warn(
                f"{self.where} has lost its last worker; waiting {self.patience:g} s for one",
                stacklevel=2,
            )
        elif time.monotonic() - self.none_since > self.patience:
            raise ClusterError(
                f"{self.where}: the last worker has gone, and for {self.patience:g} s none came; "
                "start workers (a cluster of Dask gives up those that take longer than its "
                "distributed.deploy.lost-worker-timeout to come back), and the same command goes on"
            )

    def number(self) -> int:
        """How many there are."""
        try:
            found = len(self.client.nthreads())
        except OSError as error:
            raise self._gone(error) from None
        self.seen |= found > 0
        return found

    def say(self) -> None:
        """Raises ClusterError if chunks were left out."""
        if self.chunks:
            chunk, said = next(iter(self.chunks.items()))
            raise ClusterError(
                f"{self.where}: left out of the table: {len(self.chunks)} of the chunks, number "
                f"{chunk} first: {said}; all others are there, and the same command computes these"
            )

    def _ended(self, error: Any) -> str:
        return (
            f"it ended {error.allowed_failures + 1} workers, the last {error.last_worker.address}; "
            "give workers more memory, or the sweep a smaller chunk"
        )

    def _gone(self, error: Exception) -> ClusterError:
        return ClusterError(
            f"{self.where}: the scheduler went away ({_first(error)}); what is there is whole, and "
            "the same command goes on"
        )


def _task(name: str) -> Callable[..., Any]:
    """A function of `difflie.sweep.worker`, for the scheduler, which need not have difflie."""

    # A local function, which is pickled with its code.
    def task(*arguments: Any) -> Any:
        try:
            from difflie.sweep import worker
        except ImportError as error:
            found = f"cannot import difflie ({error}); install the same version"
        else:
            found = getattr(worker, name)(*arguments)
        if isinstance(found, str):
            from distributed import get_worker

            return f"the worker {get_worker().address} {found}"
        return found

    return task


def _accepted(found: Any) -> Any:
    if isinstance(found, str):
        raise ClusterError(f"sweep: {found}")
    return found


def _first(error: BaseException) -> str:
    return (str(error) or type(error).__name__).split("\n", 1)[0]
