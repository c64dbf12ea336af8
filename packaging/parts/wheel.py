"""The Python package: wheels with the command in them, and its sources."""

import shutil

from . import place

# Bytes that a wheel has at most.
MOST = 10_000_000
# Files of this folder go where pip puts programs (`.data/scripts` of a wheel).
SCRIPTS = place.ROOT / "python/refault._refault.data/scripts"


def make(kit, arch, tree, out):
    """A wheel for every CPython from 3.10 on."""
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    shutil.copy(tree.whole / "bin/refault", SCRIPTS)
    before = set(out.glob("*.whl"))
    try:
        kit.run(
            "maturin", "build", "--locked", "--zig", "--profile", "dist", "--compatibility", "manylinux2014",
            "--target", place.ARCHES[arch]["target"], "-m", "python/Cargo.toml", "-o", out,
        )
    finally:
        shutil.rmtree(SCRIPTS.parent)
    for file in set(out.glob("*.whl")) - before:
        size = file.stat().st_size
        if size > MOST:
            raise SystemExit(f"error: {file}: {size:,} bytes, {MOST:,} at most")


def make_sdist(kit, out):
    """The sources, of which pip makes a wheel where there is a Rust toolchain."""
    kit.run("maturin", "sdist", "-m", "python/Cargo.toml", "-o", out)
