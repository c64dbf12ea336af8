"""The settings of a replay, by the names of ``--set`` and of the flags."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypedDict, Union


class Settings(TypedDict, total=False):
    """Keyword arguments of ``replay`` and ``curve``; ``refault.settings()`` says what the keys of ``--set`` are."""

    kernel: str
    swap_max: Union[str, int]
    swap: str
    compression: str
    swappiness: int
    seed: int
    beyond_footprint: bool
    page_by_page: bool
    thp: Union[str, Iterable[str]]
    threads: int
    windows: int
    via: Literal["fd", "map"]
    max_accesses: int
    format: str
    raw_ids: bool
    block_bytes: int
    page_size: int
    instructions: bool
    # settings: begin
    clock: Literal["evictions-and-activations", "evictions"]
    bound: Literal["inclusive", "strict"]
    deactivation: Literal["inactive-low", "with-inactive"]
    inactive_ratio: int
    reclaim_cost: Literal["io", "io-and-rotation"]
    cache_protection: Literal["none", "second-oldest"]
    restore_refs: int
    retry_survivors: bool
    refault_counting: Literal["all", "recent-only"]
    recency: Literal["3bit", "literal"]
    writeback_sort: Literal["none", "next-generation"]
    activation_resets_refs: bool
    generations: Literal["linked", "independent"]
    scan_budget: Literal["per-batch", "once"]
    faulted_pages: Literal["active", "accessed"]
    leaf_walk: bool
    kswapd_revival: Literal["progress", "balanced"]
    kswapd_writes_files: bool
    retry_without_trim: bool
    stop_at_high_mark: bool
    memcgs: Literal["iterate", "first", "memcg-lru"]
    backoff: Literal["any-priority", "low-priorities", "avoid-swapping"]
    target_lowers_priority: bool
    memcg_walk: Literal["incremental", "whole"]
    lru_reparent: bool
    charge_batch: int
    charge_stocks: int
    charge_kernel: bool
    advice_recency: Literal["ignored", "sequential-only"]
    fault_around_pages: int
    fault_around_young: bool
    batch_folios: int
    swap_cluster_max: int
    swap_allocator: Literal["free-first", "nonfull-first", "one-frag", "free-only"]
    swap_slot_cache: bool
    swap_overflow: Literal["none", "try-next"]
    swap_rotational: Literal["cursor", "clusters"]
    swap_cluster_pages: int
    swap_zeromap: bool
    advice: Literal["normal", "random", "sequential", "noreuse"]
    one_list: bool
    vfs_cache_pressure: int
    reserved_pages: int
    swap_synchronous: bool
    swap_pages: int
    dirty_background_ratio: int
    total_pages: int
    nodes_shift: int
    eviction_bits_max: int
    # settings: end
