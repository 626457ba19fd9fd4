"""The server: uvicorn, listening on this machine alone unless told otherwise.

A connection on which no request is under way takes a place that others may need.  It is closed after some seconds,
whether it sent nothing, a part of a request, or a request that was answered.  If there are too many connections, the
oldest of these is closed at once.  So connections that send nothing, however many, do not shut others out.
"""

import asyncio
import socket
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from prudent.apps.web.app import make_app
from prudent.apps.web.guards import allowed_hosts
from prudent.errors import PrudentError
from prudent.runtime.progress import announce

CONNECTIONS, ACCEPTED = 200, 100
"""The most connections, and how many more are accepted at once: well below the 1,024 open files of most processes."""


class Connection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """A connection that is closed if no request is under way on it: after some seconds, or to make room."""

    seconds = 10.0  # between two looks

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin; if there are too many connections, close the oldest one that waits for a request."""
        super().connection_made(transport)
        self.began = self.loop.time()
        there = [each for each in self.connections if not each.transport.is_closing()]
        waiting = [each for each in there if not each.at_work or each.cycle.more_body]
        if len(there) > CONNECTIONS and waiting:
            min(waiting, key=lambda each: each.began).transport.abort()
        self.look()

    def connection_lost(self, error: Exception | None) -> None:
        """End."""
        self.timer.cancel()
        super().connection_lost(error)

    @property
    def at_work(self) -> bool:
        """Whether the head of a request came, and the request is not answered yet."""
        return self.cycle is not None and not self.cycle.response_complete

    def look(self, before: tuple[Any, bool] | None = None) -> None:
        """Close the connection if it waits for a request as it did when this looked before; else look again later."""
        state = (self.cycle, self.at_work)
        if state == before and not self.at_work:
            self.transport.close()
        else:
            self.timer = self.loop.call_later(self.seconds, self.look, state)


def make_config(app: ASGIApp) -> uvicorn.Config:
    """Return how an app is served."""
    return uvicorn.Config(
        app,
        http=Connection,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=2,
        backlog=ACCEPTED,
        limit_concurrency=CONNECTIONS + ACCEPTED,
        ws="none",
        lifespan="on",
    )


def serve(host: str, port: int) -> None:
    """Serve the page until Ctrl-C."""
    if not 0 <= port <= 65535:
        raise PrudentError(f"port is {port}; it must be a whole number from 0 to 65535")
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        why = error.strerror or error
        raise PrudentError(f"cannot listen at {host}:{port}: {why}; choose another --port or --host") from None
    with listener:
        port = listener.getsockname()[1]
        if allowed_hosts(host) != allowed_hosts("127.0.0.1"):
            announce(
                f"WARNING: everybody who can reach {host}:{port} can use this server, without a password and without "
                "encryption; leave out --host to serve this machine only"
            )
        announce("starting the workers")
        _Announced(make_config(make_app(host)), f"http://{f'[{host}]' if ':' in host else host}:{port}").run(
            sockets=[listener]
        )


class _Announced(uvicorn.Server):
    """Announces the address of the page once it is served."""

    def __init__(self, config: uvicorn.Config, address: str) -> None:
        super().__init__(config)
        self.address = address

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and announce it."""
        await super().startup(sockets)
        if self.started:
            announce(f"the page is {self.address} (Ctrl-C ends it)")
