"""A line of progress."""

from __future__ import annotations

import sys
import time


class Progress:
    """Cells done, of how many, accesses a second, and how long still; on a terminal in one line."""

    def __init__(self, cells: int, shown: bool = True) -> None:
        self.cells, self.finished, self.failed, self.accesses = cells, 0, 0, 0
        self.before = 0
        """Cells that were there already."""
        self._shown = shown
        self._terminal = sys.stderr.isatty()
        self._started = self._last = time.monotonic()

    def known(self, cells: int) -> None:
        """So many are there already."""
        self.before += cells

    def done(self, cells: int, failed: int, accesses: int) -> None:
        """A task is done."""
        self.finished, self.failed, self.accesses = (
            self.finished + cells,
            self.failed + failed,
            self.accesses + accesses,
        )
        now = time.monotonic()
        if self._shown and now - self._last > (0.2 if self._terminal else 10):
            self._last = now
            self._print(self.text(), end="" if self._terminal else "\n")

    def text(self) -> str:
        """The line."""
        seconds = max(time.monotonic() - self._started, 1e-9)
        left = self.cells - self.before - self.finished
        remaining = f"{left * seconds / self.finished:.0f} s left" if self.finished else "?"
        failed = f", {self.failed:,} failed" if self.failed else ""
        rate = self.accesses / seconds / 1e6
        return f"{self.before + self.finished:,} of {self.cells:,} cells{failed}, {rate:.1f} M accesses/s, {remaining}"

    def end(self) -> None:
        """The last line."""
        if self._shown:
            seconds = time.monotonic() - self._started
            rate = 60 * self.finished / max(seconds, 1e-9)
            failed = f", {self.failed:,} failed" if self.failed else ""
            there = f", {self.before:,} were there" if self.before else ""
            self._print(f"{self.finished:,} cells in {seconds:.1f} s ({rate:,.0f} a minute){failed}{there}", end="\n")

    def _print(self, line: str, end: str) -> None:
        print(f"\r\x1b[K{line}" if self._terminal else line, end=end, file=sys.stderr, flush=True)
