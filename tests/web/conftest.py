"""A real server on a free port, for as long as the tests of one file last."""

import threading
import time

import pytest


class Running:
    """A server in a thread."""

    def __init__(self, limits=None):
        import httpx
        import uvicorn

        from prudent.web.app import make_app

        self.app = make_app(limits=limits)
        config = uvicorn.Config(self.app, host="127.0.0.1", port=0, log_level="warning", lifespan="on", ws="none")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        end = time.monotonic() + 180
        while not self.server.started:
            assert self.thread.is_alive() and time.monotonic() < end, "the server did not start"
            time.sleep(0.05)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self.client = httpx.Client(base_url=self.address, timeout=60)

    def close(self):
        self.client.close()
        self.server.should_exit = True
        self.thread.join(20)
        assert not self.thread.is_alive()


@pytest.fixture(scope="module")
def running():
    made = Running()
    yield made
    made.close()


@pytest.fixture
def start():
    """Start servers with limits of one's own."""
    from prudent.web.app import Limits

    made = []

    def begin(**changed):
        limits = Limits()
        for name, value in changed.items():
            assert hasattr(limits, name)
            setattr(limits, name, value)
        made.append(Running(limits))
        return made[-1]

    yield begin
    for server in made:
        server.close()


@pytest.fixture
def get(running):
    def ask(task, model="betting-game", **values):
        return running.client.get(f"/api/{task}", params={"model": model, **values})

    return ask
