"""Checks of every request before the app (host, origin, length), and headers of every answer.

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

import ipaddress
import re
import socket
from collections.abc import Iterable

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
    """Middleware: refuse strange hosts, other sites and long queries; add the headers."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], open_to_all: bool) -> None:
        self.app, self.hosts, self.open_to_all = app, frozenset(hosts), open_to_all
        self.headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *self.headers]}
            await send(message)

        wrong = self._wrong(scope)
        answer = self.app if wrong is None else JSONResponse({"error": wrong[1]}, wrong[0])
        await answer(scope, receive, guarded)

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
