"""Changed files: each is read as what it says, or refused in sentences that name it."""

import csv
import re
import signal
import tomllib
import traceback
import warnings
from pathlib import Path
from xml.etree import ElementTree

import mutations
import numpy as np
import pytest

import difflie as dl
from difflie.identify import DataError, read_recording
from difflie.identify.files import read_study
from difflie.io.config import ConfigError, read_config

NAMES = {"urdf": "r.urdf", "mjcf": "m.xml", "config": "c.toml", "study": "s.toml", "csv": "r.csv"}
REFUSED = (dl.ModelError, ConfigError, DataError)
COLUMNS = {"q": ["q1", "q2"], "tau": ["t1", "t2"]}


def urdf(path):
    """The system has the file's links with their masses, on its joints."""
    system = dl.load(path)
    root = ElementTree.fromstring(path.read_bytes())
    masses = {
        link.get("name"): float(mass.get("value")) if mass is not None else 0.0
        for link in root.findall("link")
        for mass in [link.find("inertial/mass")]
    }
    own = root.find("difflie")
    world = None if own is None else own.get("world")
    assert len(masses) == len(root.findall("link"))
    masses.pop(world, None)
    got = dict(zip(system.body_names, np.asarray(system.bodies.mass).tolist(), strict=True))
    assert got == masses
    t = system.topology
    ends = {
        b: (joint, t.bodies[parent] if parent >= 0 else world)
        for b, joint, parent in zip(t.bodies, t.joints, t.parents, strict=True)
    }
    for joint in root.findall("joint"):
        child, parent = joint.find("child").get("link"), joint.find("parent").get("link")
        assert ends[child] == (joint.get("name"), parent)


def mjcf(path):
    """The system has a body of each name that stands in the file."""
    system = dl.load(path)
    try:
        root = ElementTree.fromstring(path.read_bytes())
    except ElementTree.ParseError:
        return  # MuJoCo is not strict.
    if not {"include", "replicate", "attach"} & {e.tag for e in root.iter()}:
        named = {b.get("name") for b in root.iter("body") if b.get("name")}
        # XML makes spaces of tabs and ends of lines in names; MuJoCo does not.
        assert named <= {re.sub(r"\s", " ", name) for name in system.body_names}


def config(path):
    """The configuration has the file's numbers."""
    read = read_config(path)
    given = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    for name, value in given.get("simulation", {}).items():
        assert getattr(read.simulation, name) == value
    assert len(read.constraint) == len(given.get("constraint", []))
    for i, spring in enumerate(given.get("spring", [])):
        assert read.couplings[f"spring[{i}]"].stiffness == spring["stiffness"]


def study(path):
    read = read_study(path)
    given = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    assert [run.file for run in read.run] == [run["file"] for run in given["run"]]
    for name, value in given.get("fit", {}).items():
        assert getattr(read.fit, name) == value


def recording(path):
    """The recording has the file's numbers, and only finite ones or gaps."""
    read = read_recording(path, **COLUMNS)
    text = path.read_text(encoding="utf-8-sig")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    header, *rows = [[c.strip() for c in row] for row in csv.reader(lines) if any(row)]
    table = {n: [float(row[k] or "nan") for row in rows] for k, n in enumerate(header)}
    time = next(name for name in table if name.casefold() == "time")  # guessed
    assert np.array_equal(read.t, table[time])
    for k, name in enumerate(COLUMNS["q"]):
        assert np.array_equal(read.q[:, k], table[name], equal_nan=True)


READERS = {"urdf": urdf, "mjcf": mjcf, "config": config, "study": study, "csv": recording}


def complaint(kind: str, seed: int, folder: Path) -> str | None:
    """What is wrong with how a changed file is read, None where nothing is."""
    path = folder / NAMES[kind]
    path.write_bytes(mutations.mutated(kind, seed))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        signal.setitimer(signal.ITIMER_PROF, 10)  # of the processor
        try:
            READERS[kind](path)
            said = [str(w.message) for w in caught]
            others = [w for w in caught if w.category is not UserWarning]
            if others:
                return f"warns {others[0].category.__name__} {others[0].message}"
        except REFUSED as error:
            said = str(error).split("\n")
            for sentence in said:
                if not any(name in sentence for name in NAMES.values()):
                    return f"names no file: {sentence}"
        except Exception:
            return traceback.format_exc()
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    for sentence in said:
        if len(sentence) > 2500 or not sentence.isprintable():
            return f"is no sentence: {sentence!r}"
    return None


def stopped(*_):
    raise TimeoutError("reading takes more than 10 s")


def check(folder, seeds, monkeypatch):
    monkeypatch.chdir(folder)  # MuJoCo writes a log
    before = signal.signal(signal.SIGPROF, stopped)
    wrong = {}
    try:
        for seed in seeds:
            for kind in NAMES:
                for other in ("urdf", "csv"):
                    (folder / NAMES[other]).write_text(mutations.FILES[other])
                found = complaint(kind, seed, folder)
                if found is not None:
                    wrong[kind, seed] = found
    finally:
        signal.signal(signal.SIGPROF, before)
    assert not wrong, "\n".join(f"{case}: {text}" for case, text in list(wrong.items())[:20])


def test_the_files_are_read_as_they_are(tmp_path):
    for kind, text in mutations.FILES.items():
        (tmp_path / NAMES[kind]).write_text(text)
    for kind, read in READERS.items():
        read(tmp_path / NAMES[kind])


@pytest.mark.slow
def test_changed_files(tmp_path, monkeypatch, request):
    first = 40 * request.config.getoption("--fuzz-seed")
    check(tmp_path, range(first, first + 40), monkeypatch)


@pytest.mark.thorough
def test_ten_thousand_changed_files(tmp_path, monkeypatch, request):
    first = 10_000 + 2_000 * request.config.getoption("--fuzz-seed")
    check(tmp_path, range(first, first + 2_000), monkeypatch)
