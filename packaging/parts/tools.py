"""Programs that build packages, in versions that are pinned."""

import os
import sys
from pathlib import Path

from . import place

# From PyPI. A newer zig is not always what a release of cargo-zigbuild knows.
PYTHON = {"ziglang": "0.15.2", "cargo-zigbuild": "0.24.1", "maturin": "1.16.0"}
# From crates.io, by the part that wants it.
CARGO = {"deb": ("cargo-deb", "3.8.0"), "rpm": ("cargo-generate-rpm", "0.21.1")}


class Kit:
    """The programs, the folder in which is built, and the environment of a build."""

    def __init__(self, work, parts):
        self.work = work
        # Kept between clones where it is named.
        self.folder = Path(os.environ.get("REFAULT_PACKAGING_TOOLS", place.ROOT / "target/packaging/tools"))
        self.python = self.folder / "venv"
        self._venv()
        for part in parts:
            if part in CARGO:
                self._cargo(*CARGO[part])
        self.env = self._environment()

    def _venv(self):
        wanted = [f"{name}=={version}" for name, version in PYTHON.items()]
        stamp = self.python / "refault-tools"
        if not stamp.exists() or stamp.read_text().split() != wanted:
            place.run(sys.executable, "-m", "venv", "--clear", self.python)
            place.run(self.python / "bin/pip", "-q", "install", *wanted)
            stamp.write_text("\n".join(wanted))

    def _cargo(self, name, version):
        if (self.folder / f"bin/{name}").exists() and f'"{name} {version} ' in self._installed():
            return
        # It runs for seconds: not worth minutes of the compiler.
        fast = {"OPT_LEVEL": "1", "LTO": "off", "CODEGEN_UNITS": "16"}
        env = {**os.environ, **{f"CARGO_PROFILE_RELEASE_{key}": value for key, value in fast.items()}}
        place.run("cargo", "install", "-q", name, "--version", version, "--locked", "--root", self.folder, env=env)

    def _installed(self):
        file = self.folder / ".crates.toml"
        return file.read_text() if file.exists() else ""

    def _environment(self):
        cargo_home = os.environ.get("CARGO_HOME", Path.home() / ".cargo")
        # Paths of this machine are not in the binaries.
        remaps = {place.ROOT: "/refault", cargo_home: "/cargo", self.work: "/build"}
        env = {
            **os.environ,
            "PATH": f"{self.python}/bin:{self.folder}/bin:{os.environ['PATH']}",
            "SOURCE_DATE_EPOCH": str(place.epoch()),
            "CARGO_TARGET_DIR": str(self.work / "build"),
            "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(f"--remap-path-prefix={path}={name}" for path, name in remaps.items()),
            "CARGO_INCREMENTAL": "0",
            # Linker of Rust: that of zig defines no symbols, which the agent of `refault run` wants.
            "REFAULT_PRELOAD_LINKER": "rust-lld",
            "TZ": "UTC",
            "LC_ALL": "C",
        }
        return env

    def run(self, *words, **settings):
        """Runs a program of the kit in the root of the clone."""
        return place.run(*words, **{"env": self.env, "cwd": place.ROOT, **settings})
