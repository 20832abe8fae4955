"""The cache on disk gives back what was written, or nothing, and never an error."""

import os
import stat
import sys
from pathlib import Path

import pytest

from difflie.native import disk_cache

posix = pytest.mark.skipif(os.name == "nt", reason="rights of files as in POSIX")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DIFFLIE_CACHE", str(tmp_path / "some/cache"))
    return tmp_path / "some/cache"


def only_file(folder):
    (path,) = folder.iterdir()
    return path


def test_what_is_written_is_read(folder):
    """Data of any bytes comes back under its key only, and can be replaced."""
    assert disk_cache.read("a") is None
    disk_cache.write("a", bytes(range(256)) * 9)
    disk_cache.write("b", b"")
    assert disk_cache.read("a") == bytes(range(256)) * 9
    assert disk_cache.read("b") == b""
    disk_cache.write("a", b"other")
    assert disk_cache.read("a") == b"other" and disk_cache.read("c") is None
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b[:-1],
        lambda b: b[:20],
        lambda b: b"",
        lambda b: b + b"x",
        lambda b: b[:40] + bytes([b[40] ^ 1]) + b[41:],
    ],
    ids=["truncated", "short", "empty", "longer", "flipped"],
)
def test_damaged_files_are_removed(folder, damage):
    """Half an object crashes the process, a damaged one may compute anything."""
    disk_cache.write("a", b"code" * 100)
    path = only_file(folder)
    path.write_bytes(damage(path.read_bytes()))
    assert disk_cache.read("a") is None and not path.exists()
    disk_cache.write("a", b"new")
    assert disk_cache.read("a") == b"new"


def test_a_renamed_file_is_none(folder):
    """A whole file under the key of another program is not taken for it."""
    disk_cache.write("a", b"code")
    path = only_file(folder)
    path.rename(path.with_name(path.name.replace("a", "b", 1)))
    assert disk_cache.read("b") is None


@posix
def test_files_of_others_are_not_run(folder, monkeypatch):
    """Neither what somebody else owns is read, nor a folder used where anybody can write."""
    disk_cache.write("a", b"code")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    assert disk_cache.read("a") is None and only_file(folder).exists()
    monkeypatch.setattr(os, "getuid", lambda: user)
    assert disk_cache.read("a") == b"code"
    folder.chmod(0o777)
    disk_cache.write("b", b"code")
    assert disk_cache.read("a") is None and len(list(folder.iterdir())) == 1


def test_folders_that_cannot_be_used(tmp_path, monkeypatch):
    """A file in the place of the folder, or of a folder above it, is no error."""
    (tmp_path / "file").write_text("")
    for place in ("file", "file/cache"):
        monkeypatch.setenv("DIFFLIE_CACHE", str(tmp_path / place))
        disk_cache.write("a", b"code")
        assert disk_cache.read("a") is None
    for off in ("0", ""):
        monkeypatch.setenv("DIFFLIE_CACHE", off)
        monkeypatch.chdir(tmp_path)
        disk_cache.write("a", b"code")
        assert disk_cache.read("a") is None
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_full_disk_leaves_no_pieces(folder, monkeypatch):
    """What cannot be written completely is removed; what cannot be touched is read all the same."""
    disk_cache.write("a", b"code")

    def full(*_):
        raise OSError("no space left on device")

    for name in ("replace", "utime"):
        monkeypatch.setattr(os, name, full)
    disk_cache.write("b", b"code")
    assert disk_cache.read("a") == b"code" and disk_cache.read("b") is None
    assert len(list(folder.iterdir())) == 1


def test_the_oldest_files_go(folder, monkeypatch):
    """Beyond the limit what was not used for longest is removed, and nothing that is not ours."""
    monkeypatch.setattr(disk_cache, "LIMIT", 10 * 132)
    monkeypatch.setattr(disk_cache, "_EACH", 1)
    folder.mkdir(parents=True)
    (folder / "mine.txt").write_text("x" * 9999)
    for i in range(10):
        disk_cache.write(str(i), b"x" * 100)
        path = folder / f"{i}{disk_cache._SUFFIX}"
        os.utime(path, (1000 + i, 1000 + i))
    assert disk_cache.read("0")
    disk_cache.write("10", b"x" * 100)
    kept = [i for i in range(11) if disk_cache.read(str(i))]
    assert kept == [0, 5, 6, 7, 8, 9, 10]
    assert (folder / "mine.txt").exists()


def test_where_the_folder_is(tmp_path, monkeypatch):
    """Each system has its place for caches; without a home there is no cache."""
    monkeypatch.delenv("DIFFLIE_CACHE", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    monkeypatch.setattr(sys, "platform", "linux")
    assert disk_cache.folder() == tmp_path / "x/difflie"
    for nothing in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", nothing)
        assert disk_cache.folder() == tmp_path / ".cache/difflie"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert disk_cache.folder() == tmp_path / "Library/Caches/difflie"
    monkeypatch.setattr(sys, "platform", "win32")
    assert disk_cache.folder() == tmp_path / "local/difflie/cache"

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(Path, "home", homeless)
    assert disk_cache.folder() is None
    disk_cache.write("a", b"code")
    assert disk_cache.read("a") is None
