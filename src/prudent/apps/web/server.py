"""The server: uvicorn, listening on this machine alone unless told otherwise, and what it refuses.

A connection on which no request is under way takes a place that others may need.  It is closed after some seconds,
whether it sent nothing, a part of a request, or a request that was answered.  If there are too many connections, the
oldest of these is closed at once.  So connections that send nothing, however many, do not shut others out.

Every request is checked before the app (host, origin, length), and every answer gets headers.

*Host.*  A foreign page may let its own name point to 127.0.0.1 and then read the answers (DNS rebinding); such a
request names the foreign host.  So only requests to names of this machine are answered; a bare address is safe.  What
is not a name or an address, with or without a port, is refused.

*Origin.*  A browser says which page makes a request, in ``Sec-Fetch-Site`` or, if it is older, in ``Origin``.  The
parts of the page, uploads above all, are for the page itself.

*Content-Security-Policy.*  Scripts are our own files alone: nothing inline, nothing evaluated, no other host.  Plotly's
bundle works under that, for it evaluates only in kinds of charts that are not used here.  It does write inline styles,
so those are allowed; they run nothing, and no address they could name may be loaded.  Pictures are saved by way of
data: and blob: addresses.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Iterable
from functools import partial
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from prudent.apps.web.app import Server, ServerLimits
from prudent.apps.web.workers import NoAnswer
from prudent.errors import PrudentError
from prudent.runtime.progress import announce

CONNECTIONS, ACCEPTED = 200, 100
"""The most connections, and how many more are accepted at once: well below the 1,024 open files of most processes."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LONGEST = 2000  # characters of a query

HOST = re.compile(r"(?:\[([0-9a-f.]*:[0-9a-f.:]*)\]|([\w.-]*))(?::([0-9]{0,5}))?", re.ASCII)
"""A Host header: an address of IPv6 in brackets, or a name or another address; then a port, perhaps."""


def allowed_hosts(host: str) -> frozenset[str]:
    """Return the names by which a server that listens at a host may be addressed."""
    names, address = {"localhost", "127.0.0.1", "::1"}, _address(host)
    if host != "localhost" and not (address and address.is_loopback):
        names |= {host.lower(), socket.gethostname().lower(), socket.getfqdn().lower()}
    return frozenset(names)


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


class Guard:
    """Middleware: refuse strange hosts, other sites and long queries."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], open_to_all: bool) -> None:
        self.app, self.hosts, self.open_to_all = app, frozenset(hosts), open_to_all

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        wrong = self._wrong(scope) if scope["type"] == "http" else None
        answer = self.app if wrong is None else JSONResponse({"error": wrong[1]}, wrong[0])
        await answer(scope, receive, send)

    def _wrong(self, scope: Scope) -> tuple[int, str] | None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "").lower()
        name = _name(host)
        if name is None or sum(each == b"host" for each, _ in scope["headers"]) > 1:
            return 400, f"the host is {host[:100]!r}; it must be one name or address, with or without a port"
        if name not in self.hosts and not (self.open_to_all and _address(name)):
            return 421, f"the host is {name[:100]!r}; this server answers to {', '.join(sorted(self.hosts))}"
        site, origin = headers.get(b"sec-fetch-site", "none"), headers.get(b"origin")
        foreign = origin is not None and origin.lower().partition("://")[2] != host
        if (foreign or site in ("cross-site", "same-site")) and scope["path"] != "/":
            return 403, "another site may link to the page, but may not load its parts"
        if len(scope.get("query_string", b"")) > LONGEST:
            return 414, f"the query of the address has more than {LONGEST} characters; shorten it"
        return None


def _name(host: str) -> str | None:
    """Return the name or address in a Host header, without its port; None if the header is malformed."""
    found = HOST.fullmatch(host)
    if found is None or int(found[3] or 0) > 65535 or (found[1] and not _address(found[1])):
        return None
    return found[1] or found[2]


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


async def refuse(otherwise: NoAnswer, request: Request, error: Exception) -> Response:
    """Answer a request that ended in an error, with what to tell if the error does not say it."""
    no = error if isinstance(error, NoAnswer) else otherwise
    return JSONResponse(no.content, no.status, {"Retry-After": "1"} if no.status == 503 else None)


def make_app(host: str = "127.0.0.1", limits: ServerLimits | None = None, address: str | None = None) -> Starlette:
    """Return the app for a server that listens at a host; it announces its address once the page is served."""
    server = Server(limits or ServerLimits(), address)
    hosts = allowed_hosts(host)
    told = {
        NoAnswer: NoAnswer(500, "there is no answer"),
        ClientDisconnect: NoAnswer(499, "the request was cancelled"),
        404: NoAnswer(404, "there is no such page"),
        405: NoAnswer(405, "this address does not take this kind of request"),
    }
    app = Starlette(
        routes=[
            Route("/", server.file),
            Route("/static/{name}", server.file),
            Route("/api/domains", server.domains),
            Route("/api/status", server.status),
            Route("/api/models", server.upload, methods=["POST"]),
            Route("/api/so-far", server.so_far),
            Route("/api/{task}", server.ask),
        ],
        middleware=[Middleware(Guard, hosts=hosts, open_to_all=hosts != allowed_hosts("127.0.0.1"))],
        exception_handlers={kind: partial(refuse, otherwise) for kind, otherwise in told.items()},
        lifespan=server.life,
    )
    app.state.server = server
    return app


def make_config(app: ASGIApp) -> uvicorn.Config:
    """Return how an app is served."""
    return uvicorn.Config(
        app,
        http=Connection,
        log_level="warning",
        server_header=False,
        headers=list(HEADERS.items()),
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
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        uvicorn.Server(make_config(make_app(host, address=address))).run(sockets=[listener])
