"""SIEVE (NSDI 2024), with hooks taken by the batch: the same hits as ``sieve`` of the engine."""

from __future__ import annotations

import numpy as np

import refault


class Sieve(refault.Policy):
    """A queue whose hand passes over what was accessed, and leaves it where it is."""

    name = "sieve.py"

    def init(self, cache: refault.Cache) -> None:
        """The queue is a list, the oldest first, with -1 where a folio has left it."""
        self.queue: list[int] = []
        self.place: dict[int, int] = {}
        self.visited = np.zeros(cache.folios, dtype=np.bool_)
        self.hand: int | None = None  # none: it begins again at the oldest

    def folios_added(self, cache: refault.Cache, folios: np.ndarray) -> None:
        """New ones go to the end."""
        self.visited[folios] = False
        for folio in folios.tolist():
            self.place[folio] = len(self.queue)
            self.queue.append(folio)

    def folios_accessed(self, cache: refault.Cache, folios: np.ndarray) -> None:
        """One assignment for all of them."""
        self.visited[folios] = True

    def folios_removed(self, cache: refault.Cache, folios: np.ndarray, evicted: bool) -> None:
        """They leave the queue; a hand that is at one goes on."""
        for folio in folios.tolist():
            at = self.place.pop(folio)
            self.queue[at] = -1
            if at == self.hand:
                self.hand = self.after(at)

    def evict_folios(self, cache: refault.Cache, n: int) -> list[int]:
        """Twice round at most: the first time clears what was visited."""
        self.close_gaps()
        victims: list[int] = []
        for _ in range(2 * len(self.place)):
            at = self.after(-1) if self.hand is None else self.hand
            if at is None or len(victims) == n:
                break
            folio = self.queue[at]
            self.hand = self.after(at)
            if self.visited[folio]:
                self.visited[folio] = False
            else:
                victims.append(folio)
        return victims

    def after(self, at: int) -> int | None:
        """The next place with a folio."""
        for place in range(at + 1, len(self.queue)):
            if self.queue[place] >= 0:
                return place
        return None

    def close_gaps(self) -> None:
        """The queue without gaps, once it is half of them."""
        if len(self.queue) < 2 * len(self.place) + 64:
            return
        at_hand = None if self.hand is None else self.queue[self.hand]
        self.queue = [folio for folio in self.queue if folio >= 0]
        self.place = {folio: at for at, folio in enumerate(self.queue)}
        self.hand = None if at_hand is None else self.place[at_hand]


if __name__ == "__main__":
    trace = refault.Trace.generate("400000: files:zipf:20000:skew=0.8")
    result = refault.replay(trace, ["10%", "50%"], ["sieve", Sieve], threads=1)
    for row in result.rows:
        print(f"{row['memory_pages']:>6} pages, {row['policy']:<8} {row['hits']} hits, {row['maccesses_per_s']} M/s")
