"""Did a change of the integrators change a bit of what they compute?

    python experiments/end_states.py before.npz           # with the code before
    python experiments/end_states.py after.npz before.npz

The first saves the end states of all methods on a small machine, free and, where a method takes
that, on a rod; the second says which differ, and by how much.

Result of moving all families to one signature of `init` and `step`: no bit differs.
"""

import sys

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np

import difflie as dl


def machine() -> dl.System:
    """A spherical joint and a revolute one, with damping, armature and a spring."""
    inertia = np.diag([0.02, 0.03, 0.01])
    given = {"mass": 1.0, "com": (0.1, 0, -0.2), "inertia": inertia}
    elbow = dl.Revolute(axis=(0.0, 1.0, 0.5), damping=0.05, armature=0.01, stiffness=0.5)
    return dl.chain(
        [
            dl.Body(name="a", joint=dl.Spherical(), **given),
            dl.Body(name="b", joint=elbow, position=(0, 0, -0.5), **given),
        ]
    )


def start(system: dl.System) -> tuple[jax.Array, jax.Array]:
    q = dl.integrate(system, system.neutral(), jnp.array([0.3, 0.2, -0.1, 0.5]))
    return q, jnp.array([0.5, -0.3, 0.2, 0.4])


def on_a_rod(system: dl.System) -> tuple[dl.System, jax.Array, jax.Array]:
    """The machine with its last body on a rod, and a start that keeps it."""
    rod = dl.constraints.Distance(dl.Frame(None, (0.6, 0, -0.5)), dl.Frame("b", (0, 0, -0.3)), 0.9)
    held = dl.constrain(system, rod)
    return held, *dl.assemble(held, *start(system))


def push(t: jax.Array, q: jax.Array, v: jax.Array) -> jax.Array:
    return jnp.sin(5 * t) - 0.1 * v


def main(out: str, before: str | None = None) -> None:
    tree = machine()
    machines = {"free": (tree, *start(tree)), "on a rod": on_a_rod(tree)}
    found = {}
    for method in dl.integrators.METHODS:
        for kind, given in machines.items():
            try:
                run = dl.simulate(*given, dt=5e-3, steps=20, method=method, control=push)
            except ValueError as error:
                print(error)
                continue
            found[f"{method.name} {kind}"] = np.concatenate((run.q[-1], run.v[-1]))
    np.savez(out, **found)
    if before is not None:
        old = np.load(before)
        for name, new in found.items():
            same = np.array_equal(old[name], new)
            print(f"{name:30}", "equal" if same else np.abs(old[name] - new).max())


if __name__ == "__main__":
    main(*sys.argv[1:])
