"""Thousands of clients of a remote cache, simulated: they run the real protocol of leases.

    python -m tests.unit.support.remote_cache.simulation --clients 10000 --variants 20

Time is simulated. The server does one operation at a time, each `service` seconds, after `latency`
seconds on the way; a kernel also takes the time of its bytes. A client that waits for an answer for
longer than `PATIENCE` compiles alone from then on. Objects that are written are visible `late`
seconds later. Holders of leases stop with the probability `deaths`.
"""

from __future__ import annotations

import argparse
import heapq
import random
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from tilewright.support.remote_cache import Lease
from tilewright.support.remote_cache.lease_protocol import (
    BEAT_SECONDS,
    Step,
    obtained,
    refreshed,
    released,
)
from tilewright.support.remote_cache.remote_tier import PATIENCE

Client = Generator[Step, Any, None]


@dataclass
class Pool:
    """Clients that all need all variants, and the server. See `main` for the fields."""

    clients: int
    variants: int
    compile: float = 0.3
    latency: float = 0.0005
    service: float = 0.00002
    object: float = 0.0
    bandwidth: float = 1.25e9
    late: float = 0.0
    deaths: float = 0.0
    spread: float = 1.0
    shuffled: bool = False
    seed: int = 0
    compiled: Counter[str] = field(default_factory=Counter[str])
    operations: Counter[str] = field(default_factory=Counter[str])
    longest_queue: float = 0.0
    gave_up: int = 0
    finished: list[float] = field(default_factory=list[float])

    def run(self) -> None:
        """Run all clients to their ends."""
        self._chance = random.Random(self.seed)
        self._objects: dict[str, list[tuple[float, bytes]]] = {}
        self._events: list[tuple[float, int, Client, Any]] = []
        self._count = 0
        self._free = self.now = 0.0
        for number in range(self.clients):
            self._start(self._client(number), self._chance.random() * self.spread)
        while self._events:
            self.now, _, client, result = heapq.heappop(self._events)
            try:
                step = client.send(result)
            except StopIteration:
                continue
            self._schedule(client, step)

    def _start(self, client: Client, time: float) -> None:
        self._add(time, client, None)

    def _add(self, time: float, client: Client, result: Any) -> None:
        self._count += 1
        heapq.heappush(self._events, (time, self._count, client, result))

    def _schedule(self, client: Client, step: Step) -> None:
        if step.kind == "clock":
            self._add(self.now, client, self.now)
        elif step.kind == "sleep":
            self._add(self.now + step.seconds, client, None)
        else:
            start = max(self.now + self.latency, self._free)
            self.longest_queue = max(self.longest_queue, start - self.now - self.latency)
            result = self._served(step, start)
            self._free = start + self.service
            if isinstance(result, bytes) and step.name.startswith("kernels/"):
                self._free += self.object / self.bandwidth
            self.operations[step.kind] += 1
            end = self._free + self.latency
            if end - self.now > PATIENCE and step.kind != "put":
                self.gave_up += 1
                self._start(self._alone(), self.now + PATIENCE)
            else:
                self._add(end, client, result)

    def _served(self, step: Step, time: float) -> bytes | bool | None:
        versions = self._objects.setdefault(step.name, [])
        if step.kind == "get":
            seen = [content for written, content in versions if written + self.late <= time]
            return seen[-1] if seen else None
        if step.kind == "create" and versions:
            return False
        versions[:] = [*versions[-1:], (time, step.content)]
        return True

    def _client(self, number: int) -> Client:
        keys = [str(variant) for variant in range(self.variants)]
        if self.shuffled:
            self._chance.shuffle(keys)
        for key in keys:
            entry = f"kernels/{key}"
            outcome = yield from obtained(entry, key, f"{number}", self._chance.random)
            if isinstance(outcome, bytes):
                continue
            self.compiled[key] += 1
            if isinstance(outcome, Lease):
                working = [True]
                self._start(self._beats(outcome, working), self.now + BEAT_SECONDS)
                yield Step("sleep", seconds=self.compile)
                working.clear()
                if self._chance.random() < self.deaths:
                    return
            else:
                yield Step("sleep", seconds=self.compile)
            yield Step("put", entry, b"kernel " + key.encode())
            if isinstance(outcome, Lease):
                yield Step("put", outcome.name, released(outcome, published=True))
        self.finished.append(self.now)

    def _alone(self) -> Client:
        """A client for which the remote counts as down. It compiles everything, for simplicity."""
        yield Step("sleep", seconds=self.compile * self.variants)
        self.finished.append(self.now)

    def _beats(self, lease: Lease, working: list[bool]) -> Client:
        while working:
            lease = refreshed(lease)
            yield Step("put", lease.name, lease.content())
            yield Step("sleep", seconds=BEAT_SECONDS)


def main() -> None:
    """Simulate one pool and print what happened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--variants", type=int, default=20)
    parser.add_argument("--compile", type=float, default=0.3, help="seconds of a compilation")
    parser.add_argument("--latency", type=float, default=0.0005, help="seconds, one way")
    parser.add_argument("--service", type=float, default=0.00002, help="seconds per operation")
    parser.add_argument("--object", type=float, default=0.0, help="bytes of a kernel")
    parser.add_argument("--bandwidth", type=float, default=1.25e9, help="bytes per second")
    parser.add_argument("--late", type=float, default=0.0, help="seconds until objects are seen")
    parser.add_argument("--deaths", type=float, default=0.0, help="probability of a holder's end")
    parser.add_argument("--spread", type=float, default=1.0, help="seconds in which clients start")
    parser.add_argument("--shuffled", action="store_true", help="variants in random orders")
    pool = Pool(**vars(parser.parse_args()))
    pool.run()
    last = max(pool.finished)
    print(
        f"{pool.clients} clients, {pool.variants} variants: {pool.compiled.total()} compilations, "
        f"last client at {last:.2f} s, {pool.operations.total()} operations "
        f"({pool.operations.total() / last:,.0f}/s), longest queue {pool.longest_queue:.3f} s, "
        f"{pool.gave_up} clients gave up"
    )


if __name__ == "__main__":
    main()
