"""How fast are a step, forward dynamics and a gradient, next to MuJoCo and Pinocchio?

    python experiments/bench_dynamics.py --json bench_dynamics.json
    python experiments/bench_dynamics.py --models arm --batches 1 256

Semi-implicit Euler in both engines, no contacts, no joint limits, no damping, the same inertias and
the same start. Every figure is the best of several runs, results waited for; compilation is apart.
MuJoCo runs `mj_step` with `nstep` for one machine and `mujoco.rollout` on all cores for a batch;
the cost of calling Pinocchio from Python is measured on a pendulum and subtracted. MuJoCo MJX runs
along when it is installed. Robots come from the package example-robot-data; they run frozen, too,
and have gradients in their state only then.

`bench_gpu.py` measures large batches on a GPU.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import mujoco
import mujoco.rollout
import numpy as np
import tyro
from rich.progress import track

import difflie as dl
from difflie.io.results import machine, save_json

# Later calls are measured, from the first one on by the code that stays.
os.environ.setdefault("DIFFLIE_TIERED", "0")

DT = 1e-4
ROBOTS = {
    "arm": None,
    "quadruped": "anymal_b_simple_description/robots/anymal.urdf",
    "humanoid": "g1_description/urdf/g1_29dof_rev_1_0.urdf",
}
CHAINS = {"chain10": 10, "chain100": 100, "chain1000": 1000}


@dataclass
class Options:
    """models: which of arm, quadruped, humanoid, chain10, chain100, chain1000; json: a file."""

    models: list[str] = field(default_factory=lambda: [*ROBOTS, *CHAINS])
    batches: list[int] = field(default_factory=lambda: [1, 256, 4096])
    json: Path | None = None


def best(run: Callable[[], Any], seconds: float = 1.0, least: int = 3) -> float:
    """The shortest time of a call in s, over `seconds` of calls."""
    times: list[float] = []
    while len(times) < least or sum(times) < seconds:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def robot_file(name: str) -> Path:
    if ROBOTS[name] is None:
        return Path(dl.__file__).parent / "data" / "arm7.urdf"
    data = importlib.metadata.distribution("example-robot-data")
    path = Path(str(data.locate_file("cmeel.prefix/share/example-robot-data/robots")))
    return path / str(ROBOTS[name])


def difflie_model(name: str) -> dl.System:
    if name in CHAINS:
        bodies = [
            dl.Body(
                name=f"link{i}",
                joint=dl.Revolute(axis=(0.0, 1.0, 0.0) if i % 2 else (1.0, 0.0, 0.0)),
                position=(0.0, 0.0, -0.1 if i else 0.0),
                mass=0.2,
                com=(0.0, 0.0, -0.05),
                inertia=np.diag((4e-4, 4e-4, 1e-4)),
            )
            for i in range(CHAINS[name])
        ]
        return dl.chain(bodies, name=name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        system = dl.load(robot_file(name), base="fixed" if name == "arm" else "free")
    zero = jnp.zeros_like(system.joints.damping)
    return system.replace(damping=zero, friction=zero, armature=zero)


def mujoco_spec(name: str) -> mujoco.MjSpec:
    """Without contacts, joint limits, damping and armature."""
    if name in CHAINS:
        spec = mujoco.MjSpec()
        body = spec.worldbody
        for i in range(CHAINS[name]):
            body = body.add_body(
                name=f"link{i}",
                pos=(0.0, 0.0, -0.1 if i else 0.0),
                mass=0.2,
                ipos=(0.0, 0.0, -0.05),
                inertia=(4e-4, 4e-4, 1e-4),
                explicitinertial=True,
            )
            body.add_joint(axis=(0.0, 1.0, 0.0) if i % 2 else (1.0, 0.0, 0.0))
    else:
        root = ElementTree.parse(robot_file(name)).getroot()
        for element in list(root):
            if element.tag not in ("link", "joint"):
                root.remove(element)
        for link in root.findall("link"):
            for tag in ("visual", "collision"):
                for element in link.findall(tag):
                    link.remove(element)
        spec = mujoco.MjSpec.from_string(ElementTree.tostring(root, encoding="unicode"))
        if name != "arm":
            spec.worldbody.first_body().add_freejoint()
        spec.compiler.balanceinertia = True
        spec.compiler.boundmass, spec.compiler.boundinertia = 1e-9, 1e-12
    off = mujoco.mjtDisableBit
    spec.option.disableflags |= off.mjDSBL_CONTACT | off.mjDSBL_CONSTRAINT | off.mjDSBL_EULERDAMP
    spec.option.timestep = DT
    for joint in spec.joints:
        joint.damping, joint.armature = np.zeros((3, 1)), 0.0
    return spec


def mujoco_model(name: str) -> mujoco.MjModel:
    return mujoco_spec(name).compile()


def in_batches(name: str) -> bool:
    """Whether a model is measured in batches; with the long chains that would take hours."""
    return CHAINS.get(name, 0) <= 10


Row = dict[str, Any]


def row(library: str, model: str, dof: int, precision: str, batch: int, quantity: str) -> Row:
    return {
        "library": library,
        "model": model,
        "dof": dof,
        "precision": precision,
        "batch": batch,
        "quantity": quantity,
    }


def time_mujoco(name: str, batches: list[int]) -> Iterator[Row]:
    model = mujoco_model(name)
    data = mujoco.MjData(model)
    steps = max(20, 7000 // model.nv)

    def step() -> None:
        mujoco.mj_resetData(model, data)
        mujoco.mj_step(model, data, nstep=steps)

    for batch in batches:
        if batch > 1 and not in_batches(name):
            continue
        if batch == 1:
            elapsed = best(step) / steps
        else:
            short = max(5, 40_000 // batch // max(1, model.nv // 7))
            elapsed = batch_of_mujoco(model, data, batch, short)
        yield {
            **row("mujoco", name, model.nv, "f64", batch, "step"),
            "us_per_env": elapsed * 1e6,
            "compile_s": 0.0,
        }


def batch_of_mujoco(model: mujoco.MjModel, data: mujoco.MjData, batch: int, steps: int) -> float:
    """Seconds a step and environment, on all cores."""
    everything = mujoco.mjtState.mjSTATE_FULLPHYSICS
    start = np.zeros((batch, mujoco.mj_stateSize(model, everything)))
    mujoco.mj_resetData(model, data)
    mujoco.mj_getState(model, data, start[0], everything)
    start[:] = start[0]
    workers = [mujoco.MjData(model) for _ in range(os.cpu_count() or 1)]
    with mujoco.rollout.Rollout(nthread=len(workers)) as pool:
        elapsed = best(lambda: pool.rollout(model, workers, start, nstep=steps), 2.0)
    return elapsed / (steps * batch)


def time_pinocchio(name: str) -> Iterator[Row]:
    if name in CHAINS or importlib.util.find_spec("pinocchio") is None:
        return
    import pinocchio as pin

    def aba(model: Any) -> float:
        data = model.createData()
        q, v, tau = pin.neutral(model), np.full(model.nv, 0.1), np.zeros(model.nv)
        return best(lambda: [pin.aba(model, data, q, v, tau) for _ in range(500)]) / 500

    path = str(robot_file(name))
    free = () if name == "arm" else (pin.JointModelFreeFlyer(),)
    pendulum = pin.Model()
    pendulum.addJoint(0, pin.JointModelRX(), pin.SE3.Identity(), "hinge")
    pendulum.appendBodyToJoint(1, pin.Inertia.Random(), pin.SE3.Identity())
    model = pin.buildModelFromUrdf(path, *free)
    yield {
        **row("pinocchio", name, model.nv, "f64", 1, "forward dynamics"),
        "us_per_env": (aba(model) - aba(pendulum)) * 1e6,
        "compile_s": 0.0,
    }


def measure(f: Callable, arguments: tuple, runs: float) -> dict[str, float]:
    """The figures of a function of JAX that makes `runs` of what is measured."""
    begin = time.perf_counter()
    compiled = jax.jit(f).lower(*arguments).compile()
    compile_s = time.perf_counter() - begin
    jax.block_until_ready(compiled(*arguments))
    elapsed = best(lambda: jax.block_until_ready(compiled(*arguments)))
    return {"us_per_env": elapsed / runs * 1e6, "compile_s": compile_s}


def time_difflie(name: str, batches: list[int]) -> Iterator[Row]:
    system = difflie_model(name)
    yield from time_system("difflie", name, system, batches)
    if name not in CHAINS:
        yield from time_system("difflie, frozen", name, system.frozen(), batches)


def time_system(library: str, name: str, double: dl.System, batches: list[int]) -> Iterator[Row]:
    for precision, dtype in (("f64", jnp.float64), ("f32", jnp.float32)):
        system = double.astype(dtype)
        q, v, tau = system.neutral(), jnp.zeros(system.nv, dtype), jnp.zeros(system.nv, dtype)
        for batch in batches:
            if batch > 1 and not in_batches(name):
                continue
            steps = max(20, 7000 // system.nv) if batch == 1 else max(40, 40_000 // batch)

            def final(system: dl.System, q: Any, v: Any, steps: int = steps) -> Any:
                run = dl.simulate(
                    *(system, q, v),
                    dt=DT,
                    steps=steps,
                    save_every=steps,
                    method="SemiImplicitEuler",
                )
                return run.q[-1], run.v[-1]

            def acceleration(system: dl.System, q: Any, v: Any, tau: Any = tau) -> Any:
                """A thousand evaluations in one loop, each at another state."""

                def turn(carry: Any, _: None) -> Any:
                    a = dl.forward_dynamics(system, q, carry, tau)
                    return carry + 1e-9 * a, None

                return jax.lax.scan(turn, v, None, length=1000)[0]

            def loss(system: dl.System, q: Any, v: Any) -> Any:
                return jnp.sum(final(system, q, v, steps=500)[0])

            def of_batch(f: Callable, batch: int = batch) -> Callable:
                return f if batch == 1 else jax.vmap(f, in_axes=(None, 0, 0))

            states = (q, v) if batch == 1 else (jnp.tile(q, (batch, 1)), jnp.tile(v, (batch, 1)))
            about = (library, name, system.nv, precision, batch)
            yield row(*about, "step") | measure(of_batch(final), (system, *states), steps * batch)
            if batch == 1 and precision == "f64":
                yield row(*about, "forward dynamics") | measure(acceleration, (system, q, v), 1000)
                gradients: dict[str, tuple[int, ...]] = {}
                if name not in CHAINS:
                    gradients["the state"] = (1, 2)
                if gradients and jax.tree.leaves(system):
                    gradients["all numbers"] = (0, 1, 2)
                for of, argnums in gradients.items():
                    gradient = jax.value_and_grad(loss, argnums=argnums, allow_int=True)
                    yield row(*about, f"gradient in {of}, a step of 500") | measure(
                        gradient, (system, q, v), 500
                    )


def time_mjx(name: str, batches: list[int]) -> Iterator[Row]:
    if importlib.util.find_spec("mujoco.mjx") is None or name in CHAINS:
        return
    from mujoco import mjx

    model = mujoco_model(name)
    device_model = mjx.put_model(model)
    steps = 20

    def roll(velocity: Any) -> Any:
        data = mjx.make_data(device_model).replace(qvel=velocity)
        turn = lambda data, _: (mjx.step(device_model, data), None)  # noqa: E731
        return jax.lax.scan(turn, data, None, length=steps)[0].qpos

    for batch in batches:
        start = jnp.zeros((batch, model.nv))
        yield row("mjx", name, model.nv, "f64", batch, "step") | measure(
            jax.vmap(roll), (start,), steps * batch
        )


def main(options: Options) -> None:
    rows: list[Row] = []
    for name in track(options.models, description="models"):
        sources = [
            time_mujoco(name, options.batches),
            time_pinocchio(name),
            time_difflie(name, options.batches),
            time_mjx(name, options.batches),
        ]
        for source in sources:
            for found in source:
                rows.append(found)
                print(
                    "{library:16} {model:10} {dof:5} {precision} {batch:6} {quantity:37}"
                    "{us_per_env:10.4g} us  compile {compile_s:5.1f} s".format(**found),
                    flush=True,
                )
                if options.json is not None:
                    figures = {"name": "bench_dynamics", "machine": machine(), "rows": rows}
                    save_json(options.json, figures)


if __name__ == "__main__":
    main(tyro.cli(Options))
