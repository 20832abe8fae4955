"""Animated pictures of a scene: GIF by Pillow, MP4 by ffmpeg."""

from __future__ import annotations

import contextlib
import importlib
import io
import itertools
import os
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from numpy.typing import NDArray

from ..io.files import OutputError, write_whole
from ..system.installation import extra
from .camera import Camera
from .drawing import DrawOptions, Picture, draw
from .figures import save
from .scenes import Scene

STILL, MOVING = (".png", ".svg", ".pdf"), (".gif", ".mp4")
# So many frames take a minute or two to draw.
_MOST_FRAMES = 1200
# Programs show frames of less than 0.02 s longer.
_FASTEST_GIF = 50
# Of a GIF. Colours of fewer pixels are not looked at; what is nearly white is left to greys.
_COLOURS, _GREYS = 80, 16
_FEW_PIXELS = 4
_NEARLY_WHITE = 240


def write_picture(
    scene: Scene,
    path: str | os.PathLike[str],
    camera: Camera | None = None,
    shown: DrawOptions | None = None,
    *,
    moments: int = 5,
    rate: float = 25.0,
    speed: float = 1.0,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Draws a scene into a file: .png, .svg or .pdf, or as an animation .gif or .mp4.

    path: of the file, which is returned. camera, shown: as of `draw`. A still picture shows so many
    moments, evenly spaced, all but the last of them pale; an animation shows `rate` frames per
    second of its own time, `speed` times as fast as the motion. progress is called with the frames
    done and their number. Raises `OutputError` for another kind of file, an animation of too many
    frames, and a GIF of more than 50 frames per second; ImportError for MP4 without ffmpeg;
    ValueError as `draw`, and for a rate or a speed that is not positive.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in STILL + MOVING:
        known = ", ".join(STILL + MOVING)
        raise OutputError(f"{path}: pictures are written as {known}; name the file so")
    if kind in STILL:
        every = np.unique(np.linspace(0, len(scene.t) - 1, moments).round().astype(int))
        canvas = draw(scene, camera, every.tolist(), shown)
        return save(canvas, path)
    for name, value in (("rate", rate), ("speed", speed)):
        if not 0 < value < np.inf:
            raise ValueError(f"{path}: the {name} of the animation is {value}; it must be positive")
    if kind == ".gif" and rate > _FASTEST_GIF:
        raise OutputError(
            f"{path}: a GIF shows at most {_FASTEST_GIF} frames per second, not {rate:g}; write "
            "an .mp4, or fewer"
        )
    duration = float(scene.t[-1] - scene.t[0]) / speed
    count = max(2, round(duration * rate) + 1)
    if count > _MOST_FRAMES:
        raise OutputError(
            f"{path}: {duration:.4g} s at {rate:g} frames per second are {count} frames, at most "
            f"{_MOST_FRAMES} are drawn; show it faster, or with fewer frames per second"
        )
    times = scene.t[0] + speed * np.arange(count) / rate
    frames = _frames(scene, camera, shown or DrawOptions(), times, progress)
    (_write_gif if kind == ".gif" else _write_mp4)(path, frames, rate)
    return path


def _frames(
    scene: Scene,
    camera: Camera | None,
    shown: DrawOptions,
    times: NDArray,
    progress: Callable[[int, int], None] | None,
) -> Iterator[NDArray]:
    """Pictures (rows, columns, 3) of numbers from 0 to 255, all of one size."""
    picture = Picture(scene, camera, shown)
    canvas, axes = picture.blank()
    canvas.set_dpi(100)
    canvas.set_layout_engine("none")
    title = axes.get_title(loc="left")
    agg = FigureCanvasAgg(canvas)
    for done, t in enumerate(times):
        k = scene.at(float(t))
        axes.clear()
        axes.set_title(f"{title}   t = {scene.t[k]:.2f} s", loc="left", fontsize="medium")
        picture.paint(axes, [k])
        agg.draw()
        rows = np.asarray(agg.buffer_rgba())[..., :3]
        # Encoders need even numbers of rows and columns.
        yield rows[: rows.shape[0] // 2 * 2, : rows.shape[1] // 2 * 2].copy()
        if progress is not None:
            progress(done + 1, len(times))


def _write_gif(path: Path, frames: Iterator[NDArray], rate: float) -> None:
    from PIL import Image

    # Colours are chosen when all frames are drawn, which need much memory as they are.
    packed, counts = [], np.zeros(32**3, int)
    for frame in frames:
        counts += np.bincount(frame.reshape(-1, 3) // 8 @ [1024, 32, 1], minlength=len(counts))
        packed.append((frame.shape[1::-1], zlib.compress(frame.tobytes(), 1)))
    shared = Image.new("P", (1, 1))
    shared.putpalette(_palette(counts))
    how = {"palette": shared, "dither": Image.Dither.NONE}
    pictures = [
        Image.frombytes("RGB", size, zlib.decompress(content)).quantize(**how)
        for size, content in packed
    ]
    # GIF counts in hundredths of a second; rounded one by one, the motion would be too fast.
    ends = np.round(100 * np.arange(len(pictures) + 1) / rate).astype(int)
    content = io.BytesIO()
    pictures[0].save(
        content,
        format="GIF",
        save_all=True,
        append_images=pictures[1:],
        duration=(10 * np.diff(ends)).tolist(),
        loop=0,
    )
    write_whole(path, content.getvalue())


def _palette(counts: NDArray) -> list[int]:
    """Red, green and blue of the colours in which all frames are drawn, and of greys.

    counts (32 * 32 * 32,): pixels of each colour in steps of 8. With the same colours only what
    moves is stored, and nothing flickers. Each of the colours that are there counts once, so that
    thin lines keep theirs.
    """
    from PIL import Image

    there = np.stack(np.unravel_index(np.flatnonzero(counts >= _FEW_PIXELS), (32,) * 3), -1) * 8 + 4
    chosen = Image.fromarray(there[None].astype(np.uint8)).quantize(_COLOURS).getpalette()
    assert chosen is not None
    palette = np.reshape(chosen, (-1, 3))[:_COLOURS]
    # Pillow does not tell white from what is nearly white, which would tint the background.
    palette = palette[palette.min(axis=1) < _NEARLY_WHITE]
    greys = np.repeat(np.linspace(0, 255, _GREYS).astype(int), 3)
    return [*palette.ravel().tolist(), *greys.tolist()]


def _write_mp4(path: Path, frames: Iterator[NDArray], rate: float) -> None:
    try:
        ffmpeg = importlib.import_module("imageio_ffmpeg")
    except ImportError:
        raise ImportError(
            f"{path}: MP4 is written by ffmpeg, which is not installed; {extra('video')}; or write "
            "a .gif"
        ) from None
    first = next(frames)
    size = f"{first.shape[1]}x{first.shape[0]}"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "motion.mp4"
        source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", f"{rate:g}", "-i", "-"]
        target = ["-an", "-c:v", "libx264", "-pix_fmt", "yuv420p", str(file)]
        command = [ffmpeg.get_ffmpeg_exe(), "-loglevel", "error", *source, *target]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stderr is not None
            with contextlib.suppress(BrokenPipeError):
                for frame in itertools.chain((first,), frames):
                    process.stdin.write(frame.tobytes())
                process.stdin.close()
            said = process.stderr.read().decode(errors="replace")
        if process.returncode or not file.exists():
            raise OutputError(f"{path}: ffmpeg did not write it: {' '.join(said.split())[:300]}")
        write_whole(path, file.read_bytes())
