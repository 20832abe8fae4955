"""The server of the viewer, and the browser that shows it."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import sys
import webbrowser
from collections.abc import Callable
from typing import Any

from ...system.installation import extra

FIRST_PORT = 8080


def in_order(action: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The callback of an event: viser keeps the order of asynchronous ones only.

    Others go to a pool of threads, so that a slider's last move may come after a reset.
    """

    async def called(event: Any) -> None:
        action(event)

    return called


def imported_viser() -> Any:
    """The package viser. Raises ImportError with the command that installs it."""
    try:
        import viser
    except ImportError:
        raise ImportError(f"the viewer needs the package viser; {extra('viewer')}") from None
    return viser


def started(host: str, port: int | None) -> Any:
    """A running `viser.ViserServer` on a port; None takes the first free one from 8080 on.

    Raises ValueError for a port that is in use or is none, with a free one, and for an unknown
    host; ImportError without viser.
    """
    viser = imported_viser()
    if port is None:
        port = free_port(host, FIRST_PORT)
    elif not 0 <= port < 65536:
        raise ValueError(f"the port is {port}; give one from 1024 to 65535")
    elif (fault := _occupied(host, port)) is not None:
        raise ValueError(
            f"port {port} cannot be used: {fault}; port {free_port(host, FIRST_PORT)} is free"
        )
    with _quiet():
        return viser.ViserServer(host=host, port=port, verbose=False)


def stop(server: Any) -> None:
    """Ends a server."""
    with _quiet():
        server.stop()


def _quiet() -> Any:
    """Without what viser prints when a server starts and ends."""
    return contextlib.redirect_stdout(io.StringIO())


def free_port(host: str, first: int) -> int:
    """The first port from `first` on that is free. Raises ValueError for an unknown host."""
    for port in range(first, min(first + 1000, 65536)):
        if _occupied(host, port) is None:
            return port
    raise ValueError(f"{host} has no free port from {first} on; give --port")


def _occupied(host: str, port: int) -> str | None:
    """Why a port cannot be used; None if it can. Port 0 is any free one."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except socket.gaierror:
            raise ValueError(
                f"the host {host} is unknown; give localhost, or 0.0.0.0 for all addresses"
            ) from None
        except OSError as error:
            return (error.strerror or str(error)).lower()
    return None


def address(server: Any) -> str:
    """The address of a server for a browser on this computer."""
    host = server.get_host()
    return f"http://{'localhost' if host == '0.0.0.0' else host}:{server.get_port()}"


def opened(url: str) -> bool:
    """Whether a browser could be opened at an address; none is without a display."""
    displays = "DISPLAY", "WAYLAND_DISPLAY"
    if sys.platform.startswith("linux") and not any(map(os.environ.get, displays)):
        # Browsers for terminals cannot draw, and would take over this one.
        return False
    with contextlib.suppress(webbrowser.Error):
        return webbrowser.open(url)
    return False
