"""Sweeps on the workers of a Dask cluster: chunks go out, and this process alone writes them."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
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
# Seconds until a scheduler has answered.
_PATIENCE = 10


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

    Raises ClusterError, in a sentence, where no scheduler answers or it goes away, and for a worker
    that cannot be used; ImportError without the extra `cluster`.
    """

    scheduler: Any

    def computed(
        self, sweep: Sweep, chunks: list[int]
    ) -> Generator[tuple[int, Computed], None, None]:
        """The chunks with these numbers, in the order in which they are done."""
        with self._client() as client:
            yield from _Chunks(client, sweep, chunks).results()

    def chunk_size(self, variants: Variants, design: Design) -> int:
        """The number of rows of a chunk, as a worker measures it."""
        with self._client() as client:
            future = client.submit(
                _task("measured"), packed(Sweep(variants, design, 0)), pure=False
            )
            return _accepted(_Lost(client).result(future))

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

    def __init__(self, client: Any, sweep: Sweep, chunks: list[int]) -> None:
        self.client, self.waiting, self.running = client, collections.deque(chunks), {}
        self.task, self.lost = _task("computed"), _Lost(client)
        # Which ended workers, or waited where another did: they are tried one by one at the end.
        self.blamed, self.alone = collections.deque(), False
        wide = sum(
            np.dtype(c.dtype).itemsize * int(np.prod(c.shape)) for c in sweep.variants.columns
        )
        bytes_each = sweep.chunk * (wide + 8 * len(sweep.design.names) + 1)
        self.most = int(np.clip(_BYTES // bytes_each, 1, _CHUNKS))
        # A task, so that it is made again where the worker that holds it ends.
        self.parcel = client.submit(bytes, packed(sweep), pure=False)

    def results(self) -> Generator[tuple[int, Computed], None, None]:
        import distributed

        done = distributed.as_completed(loop=self.client.loop)
        if not self.lost.workers():
            warnings.warn(f"{self.lost.where} has no workers yet; waiting for one", stacklevel=2)
        try:
            while True:
                self._submit(done)
                if not self.running:
                    break
                future = next(done)
                chunk = self.running.pop(future)
                found = self.lost.result(future, chunk, self.alone)
                future.release()
                if found is not None:
                    yield chunk, _accepted(found)
                elif not self.alone:
                    self.blamed.append(chunk)
        finally:
            for future in (*self.running, self.parcel):
                future.release()
        self.lost.say()

    def _submit(self, done: Any) -> None:
        if not self.waiting and not self.running:
            self.alone, self.waiting = True, self.blamed
        most = 1 if self.alone else max(self.most, _EACH * self.lost.workers())
        for _ in range(min(most - len(self.running), len(self.waiting))):
            chunk = self.waiting.popleft()
            future = self.client.submit(self.task, self.parcel, chunk, pure=False)
            self.running[future] = chunk
            done.add(future)


class _Lost:
    """What becomes of a future whose workers or scheduler ended."""

    def __init__(self, client: Any) -> None:
        self.client, self.chunks = client, {}
        self.where = client.scheduler.address if client.scheduler else "the cluster"

    def result(self, future: Any, chunk: int | None = None, at_last: bool = True) -> Any:
        """That of a future; None for a chunk that ended its workers, noted if it is at last."""
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker

        try:
            return future.result()
        except KilledWorker as error:
            if chunk is None:
                raise ClusterError(f"{self.where}: {self._ended(error)}") from None
            if at_last:
                self.chunks[chunk] = self._ended(error)
            return None
        except (OSError, FutureCancelledError) as error:
            raise self._gone(error) from None

    def workers(self) -> int:
        """How many there are."""
        try:
            return len(self.client.nthreads())
        except OSError as error:
            raise self._gone(error) from None

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
