"""Binaries for an old glibc."""

import platform
import subprocess
from pathlib import Path

from . import place

BINARIES = ("refault", "refault-run")
# Writes manual pages.
PAGES = "refault-packaging"
# Bytes that a binary has at most.
MOST = 20_000_000


def library(arch):
    """Sees to Rust's standard library of an architecture; the name of its target."""
    target = place.ARCHES[arch]["target"]
    libraries = subprocess.check_output(["rustc", "--print", "target-libdir", "--target", target], text=True).strip()
    if not Path(libraries).is_dir():
        place.run("rustup", "target", "add", target)
    return target


def binaries(kit, arch):
    """Builds the binaries of an architecture; their folder."""
    target = library(arch)
    packages = ["refault-cli", "refault-run"]
    programs = [*BINARIES]
    if arch == platform.machine():
        # Its crates are compiled here anyway.
        packages.append(PAGES)
        programs.append(PAGES)
    words = [word for name in packages for word in ("-p", name)]
    words += [word for name in programs for word in ("--bin", name)]
    kit.run(
        "cargo", "zigbuild", "--locked", "--profile", "dist", "--target", f"{target}.{place.GLIBC}",
        *words,
    )
    folder = kit.work / "build" / target / "dist"
    for name in BINARIES:
        size = (folder / name).stat().st_size
        if size > MOST:
            raise SystemExit(f"error: {folder / name}: {size:,} bytes, {MOST:,} at most")
    return folder
