"""Packages of Debian, for any architecture, whatever this machine is itself: of the mirror that apt is set to, and
on other distributions of Debian's own."""

import platform
import shutil
from pathlib import Path

from . import place

KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
ELSEWHERE = f"deb [signed-by={KEYS}] http://deb.debian.org/debian bookworm main\n"


def sources(folder):
    """Settings of apt where it is not set to Debian."""
    if platform.freedesktop_os_release()["ID"] == "debian":
        return {}
    if not KEYS.exists():
        raise SystemExit(f"error: {KEYS}: not there; install the package debian-archive-keyring")
    (folder / "debian.list").write_text(ELSEWHERE)
    return {"Dir::Etc::sourcelist": folder / "debian.list", "Dir::Etc::sourceparts": "/dev/null"}


def download(folder, names, *packages, needs=False):
    """Brings packages, with `needs` those that they depend on, too; the files, sorted."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise SystemExit(f"error: {' '.join(packages)}: takes apt-get and dpkg-deb, which bring Debian's packages")
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    # None is installed, so that all that are needed come.
    (folder / "status").touch()
    settings = {
        "APT::Architecture": names,
        "APT::Architectures": names,
        "APT::Sandbox::User": "root",
        "APT::Install-Recommends": "false",
        "Dir::State::Lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Acquire::Languages": "none",
        **sources(folder),
    }
    apt = ["apt-get", "-qq", *(word for key, value in settings.items() for word in ("-o", f"{key}={value}"))]
    place.run(*apt, "update", cwd=folder)
    wanted = [f"{package}:{names}" for package in packages]
    if needs:
        place.run(*apt, "install", "-y", "--download-only", *wanted, cwd=folder)
        return sorted((folder / "cache/archives").glob("*.deb"))
    place.run(*apt, "download", *wanted, cwd=folder)
    return sorted(folder.glob("*.deb"))
