"""Traces from any file system, kept on the worker with a bound."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

from .plan import Plan, local_path

PIECE = 1 << 20


def cache_folder() -> Path:
    """Where copies are: ``REFAULT_CACHE``, or a folder of temporary files."""
    given = os.environ.get("REFAULT_CACHE")
    folder = Path(given) if given else Path(tempfile.gettempdir()) / f"refault-cache-{os.getuid()}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def cache_bytes() -> int:
    """How much of them may stay: ``REFAULT_CACHE_BYTES``, 20 GiB if it is not set."""
    return int(os.environ.get("REFAULT_CACHE_BYTES", 20 << 30))


def expand(plan: Plan) -> list[str]:
    """The URL of each trace, each once, in order; a glob that finds nothing is an error."""
    import fsspec

    urls: dict[str, None] = {}
    for given in plan.traces:
        if not any(mark in given for mark in "*?["):
            urls[given] = None
            continue
        fs, path = fsspec.core.url_to_fs(given, **plan.storage)
        found = sorted(fs.glob(path))
        if not found:
            raise FileNotFoundError(f"{given}: no trace is there")
        local = local_path(given) is not None
        urls.update((name if local else fs.unstrip_protocol(name), None) for name in found)
    return list(urls)


def stamp(url: str, storage: dict[str, Any]) -> tuple[str, int]:
    """What tells the content at a URL from what it was, without reading it; and its bytes."""
    import fsspec

    fs, path = fsspec.core.url_to_fs(url, **storage)
    info = fs.info(path)
    seen = [str(info.get(name)) for name in ("size", "mtime", "ETag", "LastModified", "etag", "updated", "ino")]
    return blake2b("\0".join([url, *seen]).encode(), digest_size=16).hexdigest(), int(info.get("size") or 0)


def fetch(url: str, storage: dict[str, Any], name: str) -> Path:
    """A file of this machine with what is at the URL; ``name`` is its stamp."""
    import fsspec

    local = local_path(url)
    if local is not None:
        return Path(local)
    folder = cache_folder()
    # The ends of a name say which format it is.
    kept = folder / f"{name}-{os.path.basename(url.split('::')[0])}"
    if kept.exists():
        os.utime(kept)
        return kept
    part = folder / f".{uuid.uuid4().hex}"
    try:
        fs, path = fsspec.core.url_to_fs(url, **storage)
        with fs.open(path, "rb") as source, part.open("wb") as copy:
            while piece := source.read(PIECE):
                copy.write(piece)
        os.replace(part, kept)
    finally:
        part.unlink(missing_ok=True)
    bound(folder, keep=kept)
    return kept


def bound(folder: Path, keep: Path) -> None:
    """Removes copies, those that were not used for longest first. A reader of one is not hurt."""
    files = []
    for entry in os.scandir(folder):
        if not entry.name.startswith("."):
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue
            files.append((status.st_mtime, status.st_size, entry.path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= cache_bytes():
            break
        if path != str(keep):
            Path(path).unlink(missing_ok=True)
            total -= size


def digest(path: Path) -> str:
    """A hash of the content."""
    whole = sha256()
    for piece in _pieces(path):
        whole.update(piece)
    return whole.hexdigest()[:32]


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece
