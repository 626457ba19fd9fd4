"""Many people at the sliders of one server on loopback: every answer right or a clean 503, and memory that stays level.

    python benchmarks/web_load.py [--clients 200] [--seconds 60] [--every 0.5]

Each client moves its slider every half second, on one of three domains, and gives up what it asked before if that has
not come yet, as the page does: it hangs up.  Answers are compared with ``prudent.solve``, number for number.  One
question in fifty is for one of the paper's slow methods, so that there is something to give up.  At the end nothing may
be at work any more.
"""

import argparse
import asyncio
import json
import math
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

import prudent
from web_latency import serve

MODELS = {
    "betting-game": prudent.domains.betting_game,
    "deep-sea-treasure": prudent.domains.deep_sea_treasure,
    "inventory-control": prudent.domains.inventory_control,
}
POSITIONS = 240


def alpha_at(position: int) -> float:
    """Return the slider's alpha, as the page does."""
    return float(f"{0.005 ** (1 - position / POSITIONS):.3g}")


def memory(pid: int) -> float:
    """Return the megabytes that a process and its children hold."""
    held, todo = 0, [pid]
    while todo:
        one = todo.pop()
        try:
            status = Path(f"/proc/{one}/status").read_text()
            held += next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
            todo += [int(child) for child in Path(f"/proc/{one}/task/{one}/children").read_text().split()]
        except (OSError, StopIteration):
            continue
    return held / 1000


class Line:
    """A client's connection, kept open from one question to the next, and closed to give one up."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.writer: asyncio.StreamWriter | None = None

    async def get(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body; who is cancelled has hung up."""
        try:
            if self.writer is None:
                self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
            self.writer.write(f"GET {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\n\r\n".encode())
            first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            body = await self.reader.readexactly(int(headers["content-length"]))
            return int(first.split()[1]), headers, body
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Hang up."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None


class Load:
    """The clients and what they saw."""

    def __init__(self, address: str, seconds: float, every: float) -> None:
        self.host, port = address.removeprefix("http://").split(":")
        self.port, self.end, self.every = int(port), time.monotonic() + seconds, every
        self.seen: Counter[str] = Counter()
        self.times: list[float] = []
        self.answers: dict[tuple[str, str, float], set[bytes]] = {}

    async def client(self, number: int) -> None:
        """Move a slider twice a second."""
        rng = random.Random(number)
        model, line = list(MODELS)[number % len(MODELS)], Line(self.host, self.port)
        position, asked = rng.randrange(POSITIONS + 1), None
        await asyncio.sleep(rng.random() * self.every)
        while time.monotonic() < self.end:
            position = min(max(position + rng.randint(-12, 12), 0), POSITIONS)
            if asked is not None and not asked.done():
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)
                self.seen["given up for a newer one"] += 1
            slow = rng.random() < 0.02
            method = rng.choice(["cvar-wc", "cvar-ev"]) if slow else rng.choice(["exact", "expected"])
            asked = asyncio.create_task(self.ask(line, model, method, alpha_at(position)))
            await asyncio.sleep(self.every)
        if asked is not None:
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
        line.close()

    async def ask(self, line: Line, model: str, method: str, alpha: float) -> None:
        """Ask once and keep what came."""
        began = time.monotonic()
        try:
            path = f"/api/solve?model={model}&method={method}&alpha={alpha:g}"
            status, headers, body = await line.get(path)
        except (OSError, EOFError) as error:
            self.seen[f"WRONG: {type(error).__name__}"] += 1
            return
        if status == 503 and "retry-after" in headers and b"busy" in body:
            self.seen["503, come back"] += 1
        elif status == 200:
            self.seen["answered"] += 1
            self.times.append(time.monotonic() - began)
            self.answers.setdefault((model, method, alpha), set()).add(body)
        else:
            self.seen[f"WRONG: status {status}"] += 1


def check(load: Load, most: int) -> tuple[int, int]:
    """Compare answers with solves of one's own; return how many were checked and how many were wrong."""
    models = {name: make() for name, make in MODELS.items()}
    quick = [key for key in load.answers if key[1] in ("exact", "expected")]
    slow = [key for key in load.answers if key[1] not in ("exact", "expected")]
    random.Random(0).shuffle(quick)
    wrong, checked = 0, [*quick[:most], *slow[: most // 20]]
    for model, method, alpha in checked:
        own = json.loads(json.dumps(prudent.solve(models[model], alpha, method=method).to_dict()))
        own.pop("seconds")
        for body in load.answers[model, method, alpha]:
            answer = json.loads(body)
            plan = answer["plan"]
            plan.pop("seconds")
            if not answer["sure"]:  # from the sweep for every alpha: a bound may differ in its last digits
                plan["upper"] = own["upper"] if math.isclose(plan["upper"], own["upper"], rel_tol=1e-12) else math.nan
            wrong += plan != own
    return len(checked), wrong


async def run(
    address: str, clients: int, seconds: float, every: float, pid: int
) -> tuple[Load, list[float], dict[str, dict[str, int]]]:
    """Let the clients loose; return what they saw, memory over time, and the server's own counts afterwards."""
    load, held = Load(address, seconds, every), list[float]()
    line = Line(load.host, load.port)

    async def watch() -> None:
        while time.monotonic() < load.end:
            held.append(memory(pid))
            await asyncio.sleep(seconds / 12)

    await asyncio.gather(watch(), *(load.client(number) for number in range(clients)))
    end, told = time.monotonic() + 15, {}
    while time.monotonic() < end:
        told = json.loads((await line.get("/api/status"))[2])
        if not told["quick"]["at work"] and not told["slow"]["at work"]:
            break
        await asyncio.sleep(0.25)
    line.close()
    held.append(memory(pid))
    return load, held, told


def main() -> None:
    """Run and print; exit with 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--every", type=float, default=0.5)
    parser.add_argument("--checked", type=int, default=400, help="how many answers to compare with solves of one's own")
    options = parser.parse_args()
    process, address = serve()
    try:
        work = run(address, options.clients, options.seconds, options.every, process.pid)
        load, held, told = asyncio.run(work)
    finally:
        process.terminate()
        process.wait()
    times = sorted(load.times) or [float("nan")]
    print(
        f"{options.clients} clients, a move every {options.every:g} s for {options.seconds:g} s, {os.cpu_count()} cores"
    )
    for what, count in sorted(load.seen.items()):
        print(f"  {what:<28}{count:>8,}")
    middle, late = (1e3 * times[int(part * len(times))] for part in (0.5, 0.99))
    print(f"  answers after (ms)             median {middle:.0f}, 99% {late:.0f}")
    print(f"  memory of all processes (MB)   {', '.join(f'{amount:,.0f}' for amount in held)}")
    print(f"  the server's counts            {told}")
    checked, wrong = check(load, options.checked)
    print(f"  {checked} different answers compared with prudent.solve: {wrong} wrong")
    idle = not told["quick"]["at work"] and not told["slow"]["at work"]
    bad = wrong or any(what.startswith("WRONG") for what in load.seen) or not idle
    print("  " + ("WRONG" if bad else "all answers right or a clean 503; no task is left running"))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
