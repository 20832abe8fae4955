"""Do the models of public collections stand or fall as in MuJoCo, with contacts and limits on?

Each MJCF file of dm-control, gymnasium, gymnasium-robotics and mujoco-mjx in which something
touches within 2 s falls from its first keyframe, or its initial pose, without actuators. MuJoCo
takes the settings of the file; here it is ConvexContact with 1 ms. How far the farthest body is
from MuJoCo's after 2 s, and how far MuJoCo is from itself: with first speeds that differ by 1e-4
rad/s or m/s at random, and with a quarter of the step. Where it is off itself by more than 1 cm the
motion is chaotic.

    python experiments/collections_with_contacts.py --json collections_with_contacts.json

Each model is a process of its own, which has `seconds` to load, compile and run. Files of the same
content are taken once, those of more than 64 degrees of freedom, which XLA compiles for minutes,
not at all. Needs the extra `collections`. Prints the table of docs/contacts.md at the end.
"""

from __future__ import annotations

import hashlib
import json
import resource
import subprocess
import sys
import warnings
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

COLLECTIONS = "dm-control", "gymnasium", "gymnasium-robotics", "mujoco-mjx"
DURATION, STEP, CHAOTIC, NEAR, MANY = 2.0, 1e-3, 0.01, 0.02, 64


@dataclass
class Options:
    """json: a file, where results of earlier runs are kept unless `again`.

    only: models whose names contain this. seconds: of a CPU, what each has.
    """

    json: Path = Path("collections_with_contacts.json")
    only: str = ""
    seconds: int = 300
    again: bool = False


def models() -> dict[str, Path]:
    """The files that MuJoCo reads, by collection and name, those that move in few ways first."""
    import mujoco

    found, dofs, seen = {}, {}, set()
    for name in COLLECTIONS:
        there = [f for f in metadata.files(name) or () if f.suffix == ".xml"]
        for file in sorted(there, key=str):
            path = Path(str(file.locate()))
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            if content in seen:
                continue
            try:
                model = mujoco.MjModel.from_xml_path(str(path))
            except ValueError:
                continue  # a part of a file
            if model.nv:
                seen.add(content)
                key = f"{name}: {'/'.join(file.parts[1:])}"
                found[key], dofs[key] = path, model.nv
    return {key: found[key] for key in sorted(found, key=dofs.__getitem__)}


def there(path: Path, speed: float = 0.0, finer: int = 1) -> tuple[Any, Any, Any, bool]:
    """MuJoCo's model and its initial and last data, and whether anything touched."""
    import mujoco
    import numpy as np

    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
    model.opt.timestep /= finer
    data = mujoco.MjData(model)
    if model.nkey:
        data.qpos[:] = model.key_qpos[0]
    first, touched = data.qpos.copy(), False
    data.qvel[:] = speed * np.random.default_rng(0).normal(size=model.nv)
    while data.time < DURATION - 1e-9:
        mujoco.mj_step(model, data)
        touched |= data.ncon > 0
    mujoco.mj_kinematics(model, data)
    return model, first, data, touched


def compared(path: Path) -> dict[str, Any]:
    """How far, in m, bodies of a file are from those of MuJoCo, and what was said of it."""
    import numpy as np

    model, first, data, touched = there(path)
    if not touched:
        return {"outcome": "nothing touches"}
    if model.nv > MANY:
        return {"outcome": "left out", "dofs": int(model.nv)}
    off = [np.abs(there(path, *way)[2].xpos - data.xpos) for way in ((1e-4, 1), (0.0, 4))]
    figures: dict[str, Any] = {
        "other_start": float(np.max(np.linalg.norm(off[0], axis=1))),
        "shorter_step": float(np.max(np.linalg.norm(off[1], axis=1))),
        "dofs": int(model.nv),
    }
    # Of what loads and runs, the farthest body.
    print(json.dumps(figures | {"outcome": "not finished in time"}), flush=True)
    import jax

    jax.config.update("jax_enable_x64", True)
    import difflie as dl
    from difflie.io.mjcf.names import body_names

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            system = dl.load(path, contacts=True, limits=True)
        except (ValueError, NotImplementedError) as fault:
            return figures | {"outcome": "does not load", "why": str(fault)[:300]}
    figures["warnings"] = [str(w.message)[:1000] for w in caught]
    figures["pairs"] = sum(
        len(c.pairs)
        for c in system.couplings
        if isinstance(c, dl.forces.shape_contact.ShapeContact)
    )
    q, steps = dl.MujocoOrdering(system, model).from_q(first), round(DURATION / STEP)
    run = dl.simulate(
        *(system, q, np.zeros(system.nv)),
        dt=STEP,
        steps=steps,
        save_every=steps,
        method=dl.ConvexContact(moments=True),
    )
    figures["result"] = str(run.result)[:500]
    names, poses = body_names(model), np.asarray(dl.body_poses(system, run.q[-1]))
    pairs = [(k, 1 + names.index(n)) for k, n in enumerate(system.body_names) if n in names]
    apart = [np.linalg.norm(poses[k, :3, 3] - data.xpos[n]) for k, n in pairs]
    worst = int(np.argmax(apart))
    figures["apart"], figures["farthest"] = float(apart[worst]), system.body_names[pairs[worst][0]]
    chaotic = max(figures["other_start"], figures["shorter_step"]) > CHAOTIC
    near = apart[worst] <= NEAR
    outcome = "agrees" if near else "chaotic" if chaotic else "differs"
    return figures | {"outcome": outcome if bool(run.result.ok) else "fails"}


def in_a_process(path: Path, seconds: int) -> dict[str, Any]:
    """The figures of a file from a process of its own, which has these seconds of a CPU."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    command = [sys.executable, "-W", "ignore", __file__, "--of", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limited)
    told = [line for line in done.stdout.splitlines() if line.startswith("{")]
    figures = json.loads(told[-1]) if told else {"outcome": "fails"}
    if done.returncode > 0:
        figures |= {"outcome": "fails", "why": done.stderr[-400:]}
    return figures


def table(models: dict[str, Any]) -> list[str]:
    """The lines of a table in Markdown, of what touches."""

    def shown(figures: dict[str, Any], name: str) -> str:
        return f"{figures[name]:.2g}" if name in figures and figures[name] < 1e3 else ""

    columns = "apart", "other_start", "shorter_step"
    lines = ["| model | farthest body, m | MuJoCo, other start | MuJoCo, shorter step | |"]
    lines.append("|---|--:|--:|--:|---|")
    for name, figures in sorted(models.items()):
        if figures["outcome"] not in ("nothing touches", "left out"):
            collection, path = name.split(": ")
            cells = [
                f"{collection}: `{path}`",
                *(shown(figures, column) for column in columns),
                figures["outcome"],
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def main(options: Options) -> None:
    from difflie.io.results import machine

    kept = json.loads(options.json.read_text())["models"] if options.json.exists() else {}
    for name, path in models().items():
        if options.only not in name or (name in kept and not options.again):
            continue
        kept[name] = in_a_process(path, options.seconds)
        print(name, {k: v for k, v in kept[name].items() if k != "warnings"}, flush=True)
        content = {"machine": machine(), "models": kept}
        options.json.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    print("\n".join(table(kept)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--of"]:
        print(json.dumps(compared(Path(sys.argv[2]))), flush=True)
    else:
        import tyro

        main(tyro.cli(Options))
