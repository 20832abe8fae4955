"""Archives of arrays that are larger in memory than is read, or than they are."""

import io
import zipfile

import numpy as np
import pytest

import difflie as dl
from difflie import identify as di
from difflie.io import results
from difflie.io.motions import read_motion
from difflie.system.validation import InputError

PENDULUM = dl.chain([dl.Body(name="rod", joint=dl.Revolute(name="hinge"), mass=1.0, com=(1, 0, 0))])


def packed(path, size, shape=None):
    """An archive of zeros (size,), whose headers say `shape`."""
    header = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": (size,) if shape is None else shape}
    np.lib.format.write_array_header_1_0(header, about)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("t", "q", "v", "joints"):
            with archive.open(f"{name}.npy", "w") as file:
                file.write(header.getvalue() + bytes(8 * size))


@pytest.mark.parametrize("read", ["log", "motion"])
@pytest.mark.parametrize(
    ("size", "shape", "said"),
    [(10**5, None, "arrays have 0.00298 GiB, at most .* are read"), (9, (10**12,), "this is no")],
)
def test_large_archives_are_refused_before_they_are_unpacked(
    tmp_path, monkeypatch, read, size, shape, said
):
    """Guards the memory: a small file of many zeros, and a header that says more than there is."""
    monkeypatch.setattr(results, "LARGEST", 10**6)
    path = tmp_path / "trajectory.npz"
    packed(path, size, shape)
    assert path.stat().st_size < 10**4
    with pytest.raises((di.DataError, InputError), match=f"trajectory.npz: .*{said}"):
        di.read_recording(path, q=["q"]) if read == "log" else read_motion(path, PENDULUM)


def test_an_archive_with_a_lock_or_a_cut_is_named(tmp_path):
    """Guards broken archives, whose errors are those of several packages."""
    path = tmp_path / "log.npz"
    np.savez_compressed(path, time=np.arange(9.0), q=np.arange(9.0))
    for k in (70, path.read_bytes().index(b"PK\x01\x02") + 8):
        broken = bytearray(path.read_bytes())
        broken[k] ^= 1
        (tmp_path / "broken.npz").write_bytes(broken)
        with pytest.raises(di.DataError, match="no archive of arrays"):
            di.read_recording(tmp_path / "broken.npz", q=["q"])
