"""Real servers on free ports: one for all tests that change no limit, and others with limits of their own."""

import socket
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest


class Running:
    """A server in a thread."""

    def __init__(self, app):
        import httpx
        import uvicorn

        from prudent.apps.web.server import make_config

        self.app = app
        self.server = uvicorn.Server(make_config(app))
        listener = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.server.run, args=([listener],), daemon=True)
        self.thread.start()
        end = time.monotonic() + 180
        while not self.server.started:
            assert self.thread.is_alive() and time.monotonic() < end, "the server did not start"
            time.sleep(0.05)
        self.address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.client = httpx.Client(base_url=self.address, timeout=60)

    def close(self):
        self.client.close()
        self.server.should_exit = True
        self.thread.join(20)
        assert not self.thread.is_alive()


@contextmanager
def serving(**changed):
    """Run a server with limits of one's own."""
    from prudent.apps.web.app import ServerLimits
    from prudent.apps.web.server import make_app

    limits = ServerLimits()
    for name, value in changed.items():
        assert hasattr(limits, name)
        setattr(limits, name, value)
    with running_app(make_app(limits=limits)) as made:
        yield made


@contextmanager
def running_app(app):
    made = Running(app)
    yield made
    made.close()


@pytest.fixture(scope="session")
def running():
    with serving() as server:
        yield server


@pytest.fixture(scope="session")
def strict():
    """A server that allows little."""
    with serving(workers=1, upload=1000, uploads=3000, memory=2 * 10**5) as server:
        yield server


@pytest.fixture
def start():
    """Start servers with limits of one's own, and one worker, which is enough."""
    with ExitStack() as stack:
        yield lambda **changed: stack.enter_context(serving(**{"workers": 1, **changed}))


@pytest.fixture
def bare():
    """A server without workers: it answers at once, after a second, or when the whole request came."""
    import asyncio

    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse
    from starlette.routing import Route

    async def answer(request):
        await {"/now": lambda: asyncio.sleep(0), "/late": lambda: asyncio.sleep(1), "/whole": request.body}[
            request.url.path
        ]()
        return PlainTextResponse("done")

    with running_app(Starlette(routes=[Route(f"/{name}", answer) for name in ("now", "late", "whole")])) as server:
        yield server


@pytest.fixture
def get(running):
    def ask(task, model="betting-game", **values):
        return running.client.get(f"/api/{task}", params={"model": model, **values})

    return ask
