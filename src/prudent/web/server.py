"""Listening: uvicorn, on this machine alone unless told otherwise."""

import uvicorn

from prudent.errors import PrudentError
from prudent.progress import announce
from prudent.web.app import make_app
from prudent.web.guards import allowed_hosts

__all__ = ["serve"]

CONNECTIONS = 1000
"""The most at once; whoever comes then is told to come back."""


def serve(host: str, port: int) -> None:
    """Serve the page until Ctrl-C."""
    if not 0 <= port <= 65535:
        raise PrudentError(f"port is {port}; it must be a whole number from 0 to 65535")
    if allowed_hosts(host) != allowed_hosts("127.0.0.1"):
        announce(
            f"WARNING: everybody who can reach {host}:{port} can use this server, without a password and without "
            "encryption; leave --host out to keep it to this machine"
        )
    config = uvicorn.Config(
        make_app(host),
        host=host,
        port=port,
        log_level="warning",
        server_header=False,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=2,
        limit_concurrency=CONNECTIONS,
        ws="none",
        lifespan="on",
    )
    server = _Announced(config)
    server.run()
    if not server.started:
        raise PrudentError(f"cannot listen at {host}:{port}: see above, or take another --port")


class _Announced(uvicorn.Server):
    async def startup(self, sockets: "list | None" = None) -> None:  # type: ignore[type-arg]
        """Say where the page is once it is there."""
        announce("starting the workers")
        await super().startup(sockets)
        if self.started and self.servers:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            announce(f"the page is http://{f'[{host}]' if ':' in host else host}:{port} (Ctrl-C ends it)")
