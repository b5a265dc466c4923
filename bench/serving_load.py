"""A load generator for HTTP services, a process of its own: `python -m bench.serving_load < plan.json > found.json`.

The plan: {"port", "path", "bodies": [...], "expected": [...], "field", "connections", "seconds", "rate"}. Without a rate each connection asks
again as soon as it has its answer; with one, requests begin at that rate whatever becomes of those before, on whatever connection is
free. Each answer is compared with the one that is expected of its own question.
"""

import asyncio
import json
import random
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import uvloop


@dataclass
class Found:
    """What came of it. Times are in seconds, from the first byte sent to the last received."""

    answered: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    no_retry: int = 0
    unsent: int = 0  # no connection was free
    late: list[float] = field(default_factory=list)  # how late the generator itself woke up


class Connection:
    """One that is kept alive."""

    def __init__(self, port: int):
        self.port, self.reader, self.writer = port, None, None

    async def ask(self, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)
        }
        said = await self.reader.readexactly(int(headers.get("content-length", 0)))
        if headers.get("connection", "").lower() == "close":
            self.close()
        return int(lines[0].split()[1]), headers, said

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.writer = None


class Load:
    """One plan, carried out."""

    def __init__(self, plan: dict[str, Any]):
        self.plan, self.found = plan, Found()
        self.bodies = [json.dumps(body, ensure_ascii=False).encode() for body in plan["bodies"]]
        self.end = time.perf_counter() + plan["seconds"]
        self.chance = random.Random(1)

    async def one(self, connection: Connection) -> None:
        number = self.chance.randrange(len(self.bodies))
        start = time.perf_counter()
        try:
            async with asyncio.timeout(120):
                status, headers, said = await connection.ask(self.plan["path"], self.bodies[number])
        except (OSError, EOFError, ValueError, TimeoutError) as error:
            self.found.broken.append(f"{type(error).__name__}: {error}")
            connection.close()
            return
        seconds = time.perf_counter() - start
        if status == 200:
            self.found.answered.append(seconds)
            answer = json.loads(said)[self.plan["field"]]
            if answer != self.plan["expected"][number]:
                self.found.wrong.append(f"{answer!r} for {self.plan['expected'][number]!r}")
        elif status == 503:
            self.found.refused.append(seconds)
            self.found.no_retry += "retry-after" not in headers
        else:
            self.found.broken.append(f"{status}: {said[:200]!r}")

    async def again_and_again(self) -> None:
        connection = Connection(self.plan["port"])
        while time.perf_counter() < self.end:
            await self.one(connection)
        connection.close()

    async def at_a_rate(self) -> None:
        free = [Connection(self.plan["port"]) for _ in range(self.plan["connections"])]
        start, sent, tasks = time.perf_counter(), 0, set()

        async def use(connection: Connection) -> None:
            await self.one(connection)
            free.append(connection)

        while (now := time.perf_counter()) < self.end:
            due = int((now - start) * self.plan["rate"])
            for _ in range(due - sent):
                if free:
                    task = asyncio.create_task(use(free.pop()))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
                else:
                    self.found.unsent += 1
            sent = due
            slept = time.perf_counter()
            await asyncio.sleep(0.002)
            self.found.late.append(time.perf_counter() - slept - 0.002)
        await asyncio.gather(*tasks)
        for connection in free:
            connection.close()

    async def run(self) -> dict[str, Any]:
        start = time.perf_counter()
        if self.plan.get("rate"):
            await self.at_a_rate()
        else:
            await asyncio.gather(*(self.again_and_again() for _ in range(self.plan["connections"])))
        return {**vars(self.found), "seconds": time.perf_counter() - start}


if __name__ == "__main__":
    json.dump(uvloop.run(Load(json.load(sys.stdin)).run()), sys.stdout)
