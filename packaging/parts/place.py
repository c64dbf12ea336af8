"""Names, versions and times of packages."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# By architecture: the target of Rust, and the names that Debian and RPM have for it.
ARCHES = {
    "x86_64": {"target": "x86_64-unknown-linux-gnu", "deb": "amd64", "rpm": "x86_64"},
    "aarch64": {"target": "aarch64-unknown-linux-gnu", "deb": "arm64", "rpm": "aarch64"},
}

# The oldest glibc that the binaries run with: that of Rust's own standard library, of CentOS 7 and
# of manylinux2014.
GLIBC = "2.17"


def version():
    """The version of the workspace."""
    text = (ROOT / "Cargo.toml").read_text()
    return re.search(r'^version = "([^"]+)"', text, re.M)[1]


def repository():
    """The address of the project; none until `packaging/repository` was run."""
    found = re.search(r'^repository = "([^"]+)"', (ROOT / "Cargo.toml").read_text(), re.M)
    return found and found[1]


def epoch():
    """The time of the sources in seconds: that of the commit, or SOURCE_DATE_EPOCH."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    return int(subprocess.check_output(["git", "-C", ROOT, "log", "-1", "--format=%ct"], text=True))


def run(*words, **settings):
    """Runs a program; an error ends this one."""
    words = [str(word) for word in words]
    print("+", " ".join(words), flush=True)
    return subprocess.run(words, check=True, **settings)
