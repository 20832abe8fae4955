"""A sweep as one program in several processes: its number, their count, the address, and the store.

With a fifth argument this process ends itself by kill -9 (die) or by an error (fail) in its part.
"""

import os
import signal
import sys

import jax

if __name__ == "__main__":
    index, count, address, store, *ending = sys.argv[1:]
    # Short where one is to die, which the others notice by it.
    heartbeat = int(os.environ["HEARTBEAT"])
    jax.distributed.initialize(
        *(address, int(count), int(index)),
        heartbeat_timeout_seconds=heartbeat,
        shutdown_timeout_seconds=2 * heartbeat,
    )

    from small import CHUNK, DESIGN, SWINGS
    from travellers import checksum

    import difflie as dl

    def progress(done, size):
        print(done, size, flush=True)
        if done < 4 * CHUNK:
            return
        if ending == ["die"]:
            os.kill(os.getpid(), signal.SIGKILL)
        if ending == ["fail"]:
            raise KeyError("a fault")

    table = dl.sweep(SWINGS, DESIGN, store, chunk=CHUNK, progress=progress).load()
    print("whole", checksum(table), flush=True)
