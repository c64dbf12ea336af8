"""The Python package: wheels, whose library has the command in it, and its sources."""

import shutil
from contextlib import contextmanager

from . import compiled, notices, place

# Bytes that a wheel has at most.
MOST = 10_000_000
FOLDER = place.ROOT / "python"


def make(kit, arch, out):
    """A wheel for every CPython from 3.10 on."""
    target = compiled.library(arch)
    before = set(out.glob("*.whl"))
    # The linker has another name than that of the binaries: in one folder each would compile anew what the other has.
    env = {**kit.env, "CARGO_TARGET_DIR": str(kit.work / "build-wheel")}
    with licences(notices.Dependencies(FOLDER / "Cargo.toml", target, ("refault-python",))):
        kit.run(
            "maturin", "build", "--locked", "--zig", "--profile", "dist", "--compatibility", "manylinux2014",
            "--target", target, "-m", "python/Cargo.toml", "-o", out,
            "--compression-level", "9", env=env,
        )
    for file in set(out.glob("*.whl")) - before:
        size = file.stat().st_size
        if size > MOST:
            raise SystemExit(f"error: {file}: {size:,} bytes, {MOST:,} at most")


def make_sdist(kit, out):
    """The sources, of which pip makes a wheel where there is a Rust toolchain."""
    with licences():
        kit.run("maturin", "sdist", "-m", "python/Cargo.toml", "-o", out)


@contextmanager
def licences(dependencies=None):
    """Lays licences where maturin looks for them, beside the manifest; those of others in what is compiled, too."""
    files = [FOLDER / name for name in ("LICENSE-APACHE", "LICENSE-MIT")]
    for file in files:
        shutil.copyfile(place.ROOT / file.name, file)
    if dependencies:
        files.append(FOLDER / "LICENSES-THIRD-PARTY")
        files[-1].write_text(notices.licences(dependencies))
    try:
        yield
    finally:
        for file in files:
            file.unlink()
