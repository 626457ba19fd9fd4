"""The server is safe: who may ask, how much, how long, and what stops."""

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack
from functools import partial

import pytest
from click.testing import CliRunner

import prudent
from prudent.apps.cli.main import main

for needs in ("plotly", "starlette", "uvicorn"):
    pytest.importorskip(needs)
httpx = pytest.importorskip("httpx")

LONG = {"model": "betting-game", "set": ["stages=60", "cap=1000", "money=50"], "alpha": 0.01, "method": "cvar-ev"}


def test_headers_are_strict(running):
    for path in ("/", "/static/main.js", "/api/domains", "/api/nothing", "/nowhere"):
        headers = running.client.get(path).headers
        rules = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
        assert rules["default-src"] == "'none'" and rules["script-src"] == "'self'"
        assert rules["connect-src"] == "'self'" and rules["frame-ancestors"] == "'none'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
    page = running.client.get("/").text
    assert "<style" not in page and "style=" not in page and "onclick" not in page
    assert page.count("<script") == page.count("<script src=")


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example:80", "10.0.0.7"]
)
def test_strange_hosts_are_not_answered(running, host):
    for path in ("/", "/api/solve?model=figure-2&alpha=0.1"):
        answer = running.client.get(path, headers={"Host": host})
        assert answer.status_code == 421 and "plan" not in answer.text


@pytest.mark.parametrize(
    "host",
    """localhost:abc [::1].evil.example 127.0.0.1:80:evil localhost:80@evil.example [::1 [localhost] [127.0.0.1]
    127.0.0.1:99999 localhost/x localhost\\x [:::1] [::1%eth0] 127.0.0.1:80, user@localhost ::1""".split(),
)
def test_malformed_hosts_are_refused(running, host):
    answer = running.client.get("/api/status", headers={"Host": host})
    assert answer.status_code == 400 and "one name or address" in answer.json()["error"]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1234", "[::1]:8000", "LocalHost:80", "localhost:"])
def test_names_of_this_machine_are_answered(running, host):
    assert running.client.get("/", headers={"Host": host}).status_code == 200


def test_hosts_when_others_are_let_in():
    from prudent.apps.web.server import Guard, allowed_hosts

    local = allowed_hosts("127.0.0.1")
    assert local == allowed_hosts("localhost") == allowed_hosts("::1")
    guard = Guard(None, allowed_hosts("0.0.0.0"), open_to_all=True)

    def wrong(host):
        return guard._wrong({"headers": [(b"host", host)], "path": "/", "query_string": b""})

    assert wrong(b"192.168.1.5:8000") is None and wrong(b"[fe80::1]:8000") is None
    assert wrong(b"rebound.example:8000")[0] == 421
    assert wrong(b"192.168.1.5:8000@rebound.example")[0] == wrong(b"[fe80::1].rebound.example")[0] == 400
    twice = [(b"host", b"192.168.1.5"), (b"host", b"192.168.1.5")]
    assert guard._wrong({"headers": twice, "path": "/", "query_string": b""})[0] == 400


def test_other_sites_may_link_but_not_use(running):
    for site in ("cross-site", "same-site"):
        headers = {"Sec-Fetch-Site": site}
        assert running.client.get("/", headers=headers).status_code == 200
        assert running.client.get("/api/solve?model=figure-2&alpha=0.1", headers=headers).status_code == 403
        assert running.client.post("/api/models?name=a.json", content=b"{}", headers=headers).status_code == 403


def test_uploads_come_from_the_page_itself(running):
    def sent(origin, **more):
        headers = {"Origin": origin, **more}
        return running.client.post("/api/models?name=a.json", content=b"{}", headers=headers).status_code

    port = int(running.address.rpartition(":")[2])
    foreign = ["https://evil.example", "null", "", f"http://localhost:{port}", f"http://127.0.0.1:{port + 1}"]
    assert {origin: sent(origin) for origin in foreign} == dict.fromkeys(foreign, 403)
    assert sent("https://evil.example", **{"Sec-Fetch-Site": "same-origin"}) == 403
    assert sent(running.address) == 400  # as what was sent is no model
    assert sent("https://Prudent.localhost", Host="prudent.localhost") == 421
    assert running.client.get("/", headers={"Origin": "https://evil.example"}).status_code == 200


def ends_within(connection, seconds):
    """Whether the server closes a connection within some seconds."""
    connection.settimeout(seconds)
    try:
        while connection.recv(4096):
            pass
    except TimeoutError:
        return False
    except ConnectionResetError:
        pass
    return True


def test_connections_that_ask_nothing_are_closed(bare, monkeypatch):
    """Nothing, half a head, half a head after an answer, a body that never ends, a head that comes a byte at a time."""
    monkeypatch.setattr("prudent.apps.web.server.Connection.seconds", 0.3)
    port = int(bare.address.rpartition(":")[2])
    head = b"GET /now HTTP/1.1\r\nHost: localhost\r\n"
    with ExitStack() as stack:
        made = []
        for sent in (b"", head, head + b"\r\n" + head, head + b"Content-Length: 9999\r\n\r\n{"):
            made.append(stack.enter_context(socket.create_connection(("127.0.0.1", port))))
            made[-1].sendall(sent)
        late = bare.client.get("/late")  # at work longer than that, then idle, and asked again
        assert late.text == bare.client.get("/now").text == "done"
        assert [ends_within(connection, 20) for connection in made] == [True] * len(made)
        slow = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        with pytest.raises(ConnectionError):
            for _ in range(200):
                slow.sendall(b"G")
                time.sleep(0.05)


def test_connections_that_ask_nothing_do_not_shut_others_out(bare):
    port = int(bare.address.rpartition(":")[2])
    part = b"POST /whole HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n{"
    with ExitStack() as stack:
        many = []
        for i in range(1000):
            many.append(stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30)))
            with contextlib.suppress(ConnectionError):
                many[-1].sendall(part if i % 2 else b"")
            if i % 50 == 0:  # let the server take them in
                assert httpx.get(f"{bare.address}/now", timeout=30).text == "done"
        assert httpx.get(f"{bare.address}/now", timeout=30).text == "done"
        assert len(bare.server.server_state.connections) <= 200
        assert ends_within(many[0], 5)  # the oldest made room


def test_no_file_is_opened_for_a_request(running, tmp_path):
    secret = tmp_path / "secret.json"
    prudent.save(prudent.domains.figure_2(), secret)
    for model in (str(secret), f"file://{secret}", "../secret.json", "betting-game/../../x"):
        answer = running.client.get("/api/solve", params={"model": model, "alpha": 0.1})
        assert answer.status_code == 400 and "neither a domain nor a file" in answer.json()["error"]
    answer = running.client.get(
        "/api/solve", params={"model": "autonomous-navigation", "set": "traffic=/etc/passwd", "alpha": 0.1}
    )
    assert answer.status_code == 400 and "opens no files" in answer.json()["error"]
    for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/app.py"):
        assert running.client.get(path).status_code == 404
    for name in ("model.prism", "model.pkl", "model", "..", "a\nb.json"):
        answer = running.client.post("/api/models", params={"name": name}, content=b"{}")
        assert answer.status_code == 400 and "unknown kind of file" in answer.json()["error"]
    answer = running.client.post("/api/models", params={"name": "../../etc/x.json"}, content=b"{")
    assert answer.json()["error"].startswith("x.json: ")


def test_other_ways_of_asking_are_refused(running):
    assert running.client.post("/api/solve").status_code == 405
    assert running.client.delete("/").status_code == 405
    assert running.client.get("/api/models").status_code == 404
    assert running.client.get("/api/solve?" + "x" * 3000).status_code == 414


def test_large_uploads_are_refused_whether_or_not_they_say_so(strict):
    refused = strict.client.post("/api/models?name=a.json", content=b" " * 1001)
    assert (refused.status_code, "more than 1,000 bytes; upload it as .json.gz" in refused.text) == (413, True)

    def pieces():
        for _ in range(100):
            yield b" " * 1000

    assert strict.client.post("/api/models?name=a.json", content=pieces()).status_code == 413
    assert strict.client.get("/api/solve?model=figure-2&alpha=0.1").status_code == 200


def test_uploads_are_bounded_and_only_their_number_leads_to_them(strict, running):
    ids = []
    for money in range(8):
        text = json.dumps(
            {
                "format": "prudent-ssp",
                "version": 1,
                "initial": "a",
                "goals": ["g"],
                "transitions": [{"state": "a", "action": "x", "outcomes": [{"p": 1, "to": "g", "cost": money}]}],
            }
        )
        ids.append(strict.client.post("/api/models?name=m.json", content=text + " " * 600).json()["model"])
    assert len(set(ids)) == 8 and all(len(number) == 39 for number in ids)
    first, last = (strict.client.get("/api/solve", params={"model": n, "alpha": 0.5}) for n in (ids[0], ids[-1]))
    assert first.status_code == 404 and "upload it again" in first.json()["error"]
    assert last.json()["plan"]["cvar"] == 7
    guess = ids[-1][:-1] + ("0" if ids[-1][-1] != "0" else "1")
    assert strict.client.get("/api/solve", params={"model": guess, "alpha": 0.5}).status_code == 404
    text = b'{"format": "prudent-ssp", "version": 1, "initial": "g", "goals": ["g"], "transitions": []}'
    numbers = {s.client.post("/api/models?name=m.json", content=text).json()["model"] for s in (strict, running)}
    assert len(numbers) == 2  # a key of each process: nobody can work a number out from a model


def counts(server, crew="slow"):
    return server.client.get("/api/status").json()[crew]


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def at_rest(server, crew="slow"):
    """What a server's workers have done so far, once they do nothing."""
    wait_for(lambda: counts(server, crew)["at work"] == 0, 10)
    return Counter(counts(server, crew))


def test_who_hangs_up_stops_the_solve(running):
    before = at_rest(running)
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(f"{running.address}/api/solve", params=LONG, timeout=1.0)
    told = at_rest(running) - before
    assert told["stopped"] + told["replaced"] == 1 and told["answered"] == 0
    answer = running.client.get("/api/solve?model=figure-2&alpha=0.13&method=cvar-wc")
    assert answer.json()["plan"]["cvar"] == prudent.solve(prudent.domains.figure_2(), 0.13, method="cvar-wc").cvar


def test_what_a_solve_has_so_far_is_told_until_it_is_stopped(running):
    """A gap for which steps get finer and finer: the solve goes on until nobody waits for it."""
    values = {"model": "autonomous-navigation", "set": "seed=5", "alpha": 0.2, "relative_gap": 1e-12}
    before = at_rest(running, "quick")

    def so_far(**changed):
        return running.client.get("/api/so-far", params={**values, **changed}).json()

    async def patient():
        async with httpx.AsyncClient(base_url=running.address, timeout=60) as client:
            solve = asyncio.create_task(client.get("/api/solve", params=values))
            while (best := so_far()) is None:
                assert not solve.done()
                await asyncio.sleep(0.05)
            assert so_far(alpha=0.3) is None
            solve.cancel()
            return best

    assert so_far() is None
    best = asyncio.run(patient())
    plan = best["plan"]
    final = prudent.solve(prudent.domains.autonomous_navigation(seed=5), 0.2)
    assert best["refining"] and best["refines"] and plan["status"] == "gap_not_reached"
    assert plan["lower"] <= final.upper and final.lower <= plan["upper"]
    assert sum(best["bars"]["p"]) == pytest.approx(1, abs=1e-9)
    told = at_rest(running, "quick") - before
    assert told["stopped"] == 1 and told["answered"] == told["replaced"] == 0
    assert so_far() is None
    answer = running.client.get("/api/solve", params={**values, "relative_gap": 0.01})
    assert answer.json()["plan"]["status"] == "within_gap"


def test_what_was_stopped_half_way_is_not_built_upon(start):
    from prudent.apps.web.tasks import played

    server = start()
    values = {"model": "inventory-control", "alpha": 0.2, "run": 3}
    for patience in (0.05, 0.4, 0.8):
        with contextlib.suppress(httpx.ReadTimeout):
            httpx.get(f"{server.address}/api/play", params=values, timeout=patience)
    plan = prudent.solve(prudent.domains.inventory_control(), 0.2)
    assert server.client.get("/api/play", params=values).json() == played(plan, 3)


def test_the_solve_goes_on_while_somebody_else_waits_for_it(running):
    before = at_rest(running)
    values = {"model": "inventory-control", "alpha": 0.07, "method": "cvar-wc"}
    kept = {}

    def patient():
        kept["answer"] = httpx.get(f"{running.address}/api/solve", params=values, timeout=100)

    thread = threading.Thread(target=patient)
    thread.start()
    wait_for(lambda: counts(running)["at work"] == 1)
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(f"{running.address}/api/solve", params=values, timeout=0.1)
    thread.join(100)
    assert kept["answer"].json()["plan"]["method"] == "cvar-wc"
    told = at_rest(running) - before
    assert told["stopped"] == 0 and told["answered"] == 1


def test_a_solve_may_not_take_longer_than_allowed(start):
    server = start(slow=0.5)
    answer = server.client.get("/api/solve", params=LONG)
    assert answer.status_code == 504 and "longer than this server allows" in answer.json()["error"]
    wait_for(lambda: counts(server)["at work"] == 0, 10)


def test_too_many_at_once_are_told_to_come_back(start):
    server = start(waiting=1)
    answers = []

    def ask(alpha):
        try:
            answers.append(httpx.get(f"{server.address}/api/solve", params={**LONG, "alpha": alpha}, timeout=4))
        except httpx.ReadTimeout:
            answers.append(None)

    threads = [threading.Thread(target=ask, args=(0.01 + i / 1000,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refused = [answer for answer in answers if answer is not None]
    assert len(refused) >= 3 and all(answer.status_code == 503 for answer in refused)
    assert all(answer.headers["retry-after"] == "1" and "busy" in answer.json()["error"] for answer in refused)
    quick = server.client.get("/api/solve?model=betting-game&alpha=0.2")
    assert quick.status_code == 200  # what is quick does not wait behind what is slow


def test_a_worker_that_dies_is_replaced(start):
    server = start()
    crew = server.app.state.server.quick
    before = {worker.process.pid for worker in crew.all}
    for worker in list(crew.all):
        worker.process.kill()
    answer = server.client.get("/api/solve?model=figure-2&alpha=0.1")
    assert answer.status_code == 500 and "ended" in answer.json()["error"]
    wait_for(lambda: server.client.get("/api/solve?model=figure-2&alpha=0.1").status_code == 200, 60)
    assert {worker.process.pid for worker in crew.all} != before


def test_a_model_too_large_is_refused_and_the_worker_lives_on(strict):
    answer = strict.client.get("/api/solve", params={"model": "inventory-control", "alpha": 0.01})
    assert answer.status_code == 400 and "memory" in answer.json()["error"]
    assert strict.client.get("/api/solve?model=figure-2&alpha=0.1").status_code == 200


def test_kept_answers_are_bounded_and_failures_are_not_kept():
    from prudent.apps.web.workers import Answers

    async def story():
        answers = Answers(100)

        async def body(text, hear):
            hear(102, b"not yet")
            hear(200, text)
            return text

        for i in range(50):
            assert await answers.get(str(i), partial(body, bytes([i]) * 20)) == bytes([i]) * 20
        assert len(answers.kept) == 5
        assert await answers.get("large", partial(body, b"x" * 99)) == b"x" * 99
        assert "large" not in answers.kept

        async def fail(hear):
            raise RuntimeError("once")

        with pytest.raises(RuntimeError):
            await answers.get("new", fail)
        assert await answers.get("new", partial(body, b"then")) == b"then"
        assert not answers.open

    asyncio.run(story())


def test_workers_end_with_the_server(start):
    server = start()
    crew = server.app.state.server.quick
    processes = [worker.process for worker in crew.all]
    server.server.should_exit = True
    server.thread.join(20)
    assert all(process.returncode is not None for process in processes)


def test_the_command_says_where_the_page_is():
    call = [sys.executable, "-m", "prudent.apps.cli.main", "serve", "--port", "0"]
    with subprocess.Popen(call, stderr=subprocess.PIPE, text=True) as process:
        said = ""
        for line in process.stderr:
            said += line
            if "the page is http://" in line:
                break
        port = said.rpartition(":")[2].split()[0]
        assert httpx.get(f"http://127.0.0.1:{port}/api/domains").status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    assert "WARNING" not in said


def test_the_command_warns_when_others_are_let_in(monkeypatch):
    listening = []
    monkeypatch.setattr("uvicorn.Server.run", lambda self, sockets: listening.extend(s.getsockname() for s in sockets))
    for options, host, warned in ((["--host", "0.0.0.0"], "0.0.0.0", True), ([], "127.0.0.1", False)):
        said = CliRunner().invoke(main, ["serve", "--port", "0", *options]).stderr
        assert listening.pop()[0] == host and "starting the workers" in said
        assert ("WARNING: everybody" in said) == warned


def test_a_port_that_cannot_be_had_is_an_error_of_the_user(running):
    port = running.address.rpartition(":")[2]
    result = CliRunner().invoke(main, ["serve", "--port", port])
    assert result.exit_code == 2 and f"cannot listen at 127.0.0.1:{port}" in result.stderr
    result = CliRunner().invoke(main, ["serve", "--port", "70000"])
    assert result.exit_code == 2 and "port is 70000" in result.stderr


def test_without_the_extra_the_command_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette", None)
    result = CliRunner().invoke(main, ["serve"])
    assert result.exit_code == 2 and "pip install 'prudent[web]'" in result.stderr
