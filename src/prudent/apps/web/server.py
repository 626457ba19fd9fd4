"""The server: uvicorn, listening on this machine alone unless told otherwise."""

import socket

import uvicorn

from prudent.apps.web.app import make_app
from prudent.apps.web.guards import allowed_hosts
from prudent.errors import PrudentError
from prudent.runtime.progress import announce

__all__ = ["serve"]

CONNECTIONS = 1000
"""The most connections at once; further ones are answered with 503."""


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
        config = uvicorn.Config(
            make_app(host),
            log_level="warning",
            server_header=False,
            timeout_keep_alive=20,
            timeout_graceful_shutdown=2,
            limit_concurrency=CONNECTIONS,
            ws="none",
            lifespan="on",
        )
        _Announced(config, f"http://{f'[{host}]' if ':' in host else host}:{port}").run(sockets=[listener])


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
