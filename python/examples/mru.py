"""Most recently used: for searches that go through the same files again and again."""

import refault


class Mru(refault.Policy):
    """What was used last goes first."""

    def init(self, cache):
        self.order = {}  # the last one is the one used last

    def folios_added(self, cache, folios):
        for folio in folios.tolist():
            self.order.pop(folio, None)
            self.order[folio] = None

    folios_accessed = folios_added

    def folios_removed(self, cache, folios, evicted):
        for folio in folios.tolist():
            del self.order[folio]

    def evict_folios(self, cache, n):
        return reversed(self.order)


if __name__ == "__main__":
    search = refault.Trace.generate("40960: files:loop:4096")
    result = refault.replay(search, "70%", ["lru", "mru", Mru])
    for row in result.rows:
        print(f"{row['policy']:<5} {row['hit_rate']:.2%}")
