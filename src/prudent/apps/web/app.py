"""The routes: the page and its files, what can be asked about a model, and uploads.

All state is in the query: ``model``, ``set`` (repeatable, as ``--set``) and ``alpha``, ``method``, ``relative_gap``,
``uncertainty``, ``left``, ``layer``, ``run``.  ``model`` is a domain, or the number of an upload.  That number is a
digest of the content under a secret key of this process, so only the uploader knows it.
"""

import asyncio
import contextlib
import hmac
import json
import secrets
from collections.abc import AsyncIterator, Coroutine
from hashlib import sha256
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive

import prudent
from prudent.apps.web.tasks import ALPHA_MIN, MEAN, TASKS, YARDSTICK
from prudent.apps.web.worker import FILES, Bounded
from prudent.apps.web.workers import Answers, Crew, NoAnswer
from prudent.domains.registry import DOMAINS
from prudent.methods.registry import METHODS
from prudent.runtime.limits import available_memory, cores
from prudent.runtime.progress import announce

TEXTS = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
EXACT = "0"
"""The gap that the page asks for to have no gap: such a task is for the slow workers, as are all with a slow method."""

UPLOADS = (".json", ".json.gz", ".umb")
"""Files that are data; other files are programs for Storm, which a server does not run for strangers."""


class ServerLimits:
    """What requests may use."""

    upload = 8 * 2**20  # bytes of one file
    uploads = 64 * 2**20  # of all that are kept
    answers = 64 * 2**20  # of answers that are kept
    quick = 30.0  # seconds
    slow = 120.0
    receive = 30.0  # for an upload to arrive
    waiting = 32  # tasks that wait for a worker

    def __init__(self) -> None:
        self.workers = max(2, min(cores() // 2, 4))
        self.background = max(1, min(cores() // 4, 2))
        self.memory = int(available_memory() * 0.5 / (self.workers + self.background))  # bytes of tables, each


class Server:
    """What the routes share: workers, answers and uploads."""

    def __init__(self, limits: ServerLimits, address: str | None) -> None:
        self.limits, self.address = limits, address
        share = {"waiting": limits.waiting, "memory": limits.memory}
        self.quick = Crew(limits.workers, limit=limits.quick, **share)
        self.slow = Crew(limits.background, limit=limits.slow, niceness=10, **share)
        self.answers = Answers(limits.answers)
        self.uploads = Bounded(limits.uploads, lambda upload: len(upload[1]))  # name and content
        self.secret = secrets.token_bytes(32)
        static = (files("prudent.apps.web") / "static").iterdir()
        self.files = {each.name: each.read_bytes() for each in static if each.name.rpartition(".")[2] in TEXTS}
        self.files["plotly.js"] = (files("plotly") / "package_data" / "plotly.min.js").read_bytes()

    @contextlib.asynccontextmanager
    async def life(self, app: Starlette) -> AsyncIterator[None]:
        """Start the workers with the server, say where the page is, and end the workers with it."""
        try:
            await asyncio.gather(self.quick.start(), self.slow.start())
            if self.address is not None:
                announce(f"the page is {self.address} (Ctrl-C ends it)")
            yield
        finally:
            await asyncio.gather(self.quick.close(), self.slow.close())

    async def file(self, request: Request) -> Response:
        """Send the page or one of its files; all were read at the start."""
        name = request.path_params.get("name", "index.html")
        if name not in self.files:
            raise HTTPException(404)
        body = self.files[name]
        tag = f'"{sha256(body).hexdigest()[:16]}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type=TEXTS[name.rpartition(".")[2]], headers=headers)

    async def domains(self, request: Request) -> Response:
        """Return the domains, the methods and the limits."""
        return JSONResponse(
            {
                "version": prudent.__version__,
                "alpha_min": ALPHA_MIN,
                "upload": {"most": self.limits.upload, "kinds": UPLOADS},
                "domains": [
                    {"name": name, "title": about.title, "parameters": _parameters(name), "parts": about.parts}
                    for name, about in DOMAINS.items()
                ],
                "methods": [
                    {"name": name, "title": method.title, "what": method.what, "symbol": method.symbol}
                    | {"slow": method.from_paper, "table": not method.from_paper}  # of its decisions
                    for name, method in METHODS.items()
                    if method.shown
                ],
                "yardstick": YARDSTICK,
                "mean": MEAN,
            }
        )

    async def status(self, request: Request) -> Response:
        """Return how many tasks were answered, stopped and refused since the start."""
        return JSONResponse({"quick": self.quick.told(), "slow": self.slow.told()})

    async def upload(self, request: Request) -> Response:
        """Take in a model file, check it, and answer with its number."""
        name = request.query_params.get("name", "").replace("\\", "/").rpartition("/")[2][:100]
        if not name.lower().endswith(UPLOADS) or not name.isprintable():
            raise NoAnswer(400, f"{name!r}: unknown kind of file; models are uploaded as {', '.join(UPLOADS)}")
        try:
            async with asyncio.timeout(self.limits.receive):
                raw = await _body(request, self.limits.upload)
        except TimeoutError:
            raise NoAnswer(408, "the file took too long to arrive; upload it again") from None
        if raw is None:
            most = f"has more than {self.limits.upload:,} bytes"
            smaller = 'upload it as .json.gz (prudent.save(model, "model.json.gz") writes one)'
            raise NoAnswer(413, f"{name}: {most}; {smaller}, or use the command, which has no limit")
        about = name.encode() + b"\0" + raw
        number = "upload-" + hmac.new(self.secret, about, sha256).hexdigest()[:32]
        task = {"task": "check", "key": json.dumps([number, []]), "name": name, "set": [], "values": {}}
        body = await _unless_gone(request.receive, self.quick.run(task, raw))
        self.uploads.keep(number, (name, raw))
        return JSONResponse({"model": number, "name": name, "check": json.loads(body)})

    async def ask(self, request: Request) -> Response:
        """Answer a task about a model."""
        task = request.path_params["task"]
        if task not in TASKS:
            raise NoAnswer(404, f"there is no task {task!r:.60}")
        about = _asked(task, request)
        question, raw = json.dumps(about), b""
        model, settings, values = about["model"], about["set"], about["values"]
        if model.startswith("upload-"):
            if model not in self.uploads:
                raise NoAnswer(404, "this uploaded model is no longer kept: upload it again")
            if settings:
                raise NoAnswer(400, f"--set {settings[0]}: only domains have parameters; {model} is an upload")
            about["name"], raw = self.uploads.latest(model)
        method = METHODS.get(values.get("method", ""))
        slow = TASKS[task].slow or values.get("relative_gap") == EXACT or (method and method.from_paper)
        crew = self.slow if slow else self.quick
        work = self.answers.get(question, lambda hear: crew.run(about, raw, hear))
        body = await _unless_gone(request.receive, work)
        headers = {"Cache-Control": "no-store"}
        if "." in task:
            headers["Content-Disposition"] = f'attachment; filename="{task}"'
        return Response(body, media_type=TASKS[task].kind, headers=headers)

    async def so_far(self, request: Request) -> Response:
        """Return the best answer so far to a solve with the same query that is under way; null if there is none."""
        body = self.answers.so_far(json.dumps(_asked("solve", request)))
        return Response(body or b"null", media_type="application/json", headers={"Cache-Control": "no-store"})


def _asked(task: str, request: Request) -> dict[str, Any]:
    """Return what a request asks for; what is equal to it has the same answer."""
    query = request.query_params
    model, settings = query.get("model", ""), query.getlist("set")
    values = {name: query[name] for name in TASKS[task].asks if name in query}
    return {"task": task, "key": json.dumps([model, settings]), "model": model, "set": settings, "values": values}


async def _unless_gone(receive: Receive, work: Coroutine[Any, Any, bytes]) -> bytes:
    """Wait for an answer until the client disconnects: hanging up, or moving the slider on, stops the solve."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        answer.cancel()

    answer, watch = asyncio.ensure_future(work), asyncio.ensure_future(gone())
    try:
        return await answer
    except asyncio.CancelledError:
        raise ClientDisconnect from None
    finally:
        watch.cancel()


async def _body(request: Request, most: int) -> bytes | None:
    """Return the body of a request, or None as soon as it turns out to be too long."""
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > most:
        return None
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            return None
    return bytes(body)


def _parameters(name: str) -> list[dict[str, Any]]:
    return [
        {"name": key, "default": parameter.default, "kind": type(parameter.default).__name__}
        for key, parameter in DOMAINS[name].parameters.items()
        if key not in FILES
    ]
