"""One program in several processes, by `jax.distributed`: who makes the store, who computes what.

The first process makes the store, and says which chunks are pending; of these each of n processes
computes and writes every n-th. At its end each says how it ended, and waits for the others. The
processes leave each other notes in jax's own service; numbers are never exchanged, so that they do
not wait for each other while they compute.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
import numpy as np

from .. import native
from .store import Store
from .store_location import StoreError

# Milliseconds until a note is asked for again.
_AGAIN = 1000
# All processes do the same sweeps in the same order.
_SWEEPS = itertools.count()


class Program:
    """This process among those of its program. index: its number; count: how many there are."""

    def __init__(self, out: str | Path | None) -> None:
        self.index, self.count = jax.process_index(), jax.process_count()
        self._notes = native.coordination()
        self._name = f"difflie/sweep/{next(_SWEEPS)}"
        if self.count > 1 and (out is None or str(out).startswith("memory:")):
            raise ValueError(
                f"sweep: {self.count} processes need a store that all of them reach; give out, a "
                "folder or an address of an object store"
            )

    def pending(self, make: Callable[[], Store], find: Callable[[], Store]) -> tuple[Store, list]:
        """The store, which the first process makes and others find, and its pending chunks.

        Raises StoreError in all processes where the first raises an error.
        """
        if self.index:
            told = json.loads(self._note("pending", 0))
            if "error" in told:
                raise StoreError(f"sweep: process 0 of {self.count} ended: {told['error']}")
            try:
                store = find()
            except StoreError as error:
                raise StoreError(
                    f"sweep: process {self.index} does not find what process 0 made: {error}; give "
                    "a place that all processes reach"
                ) from None
            bits = np.frombuffer(bytes.fromhex(told["pending"]), np.uint8)
            return store, np.flatnonzero(np.unpackbits(bits)[: store.count]).tolist()
        try:
            store = make()
            pending = store.pending()
        except Exception as error:
            self._tell("pending", {"error": f"{type(error).__name__}: {error}"})
            raise
        bits = np.zeros(store.count, bool)
        bits[pending] = True
        self._tell("pending", {"pending": np.packbits(bits).tobytes().hex()})
        return store, pending

    @contextmanager
    def part(self) -> Iterator[None]:
        """What is done inside is the part of this process; afterwards all have done theirs.

        Raises StoreError where another process ended with an error.
        """
        try:
            yield
        except BaseException as error:
            self._tell(f"ended/{self.index}", f"{type(error).__name__}: {error}")
            raise
        self._tell(f"ended/{self.index}", "")
        for other in range(self.count):
            if other != self.index and (said := json.loads(self._note(f"ended/{other}", other))):
                raise StoreError(
                    f"sweep: process {other} of {self.count} ended: {said}; its chunks are missing"
                    ", and the same command goes on"
                )

    def _tell(self, what: str, note: object) -> None:
        if self.count > 1:
            self._notes.key_value_set(f"{self._name}/{what}", json.dumps(note))

    def _note(self, what: str, by: int) -> str:
        """A note of another process, once it is there.

        jax itself ends this process where another one dies. It cannot be asked whether the other
        one lives: `get_live_nodes` is answered once all of them have asked.
        """
        while True:
            try:
                return self._notes.blocking_key_value_get(f"{self._name}/{what}", _AGAIN)
            except jax.errors.JaxRuntimeError as error:
                if "DEADLINE_EXCEEDED" not in str(error):
                    raise StoreError(
                        f"sweep: process {by} of {self.count} cannot be waited for "
                        f"({str(error).splitlines()[0]}); the same command goes on"
                    ) from None
