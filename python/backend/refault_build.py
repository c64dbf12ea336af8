"""Build backend: maturin's, with the command as a program of the wheel.

maturin builds a library or a program. Here the program is built first, and put where maturin finds files that pip
installs as programs.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import maturin
from maturin import (  # noqa: F401
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

SCRIPTS = Path("refault._refault.data/scripts")


def _build_command():
    # Sources for pip have the crates beside it.
    manifest = Path("python/Cargo.toml") if Path("python/Cargo.toml").exists() else Path("Cargo.toml")
    words = [os.environ.get("CARGO", "cargo"), "build", "--release", "--bin", "refault", "--message-format", "json"]
    words += ["--manifest-path", str(manifest)]
    built = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    programs = [message.get("executable") for message in map(json.loads, built.splitlines())]
    SCRIPTS.mkdir(parents=True, exist_ok=True)
    shutil.copy(next(program for program in programs if program), SCRIPTS / "refault")


def _with_command(build, *settings):
    _build_command()
    try:
        return build(*settings)
    finally:
        shutil.rmtree(SCRIPTS.parent)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """A wheel with the command in it."""
    return _with_command(maturin.build_wheel, wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Likewise, of sources in their place."""
    return _with_command(maturin.build_editable, wheel_directory, config_settings, metadata_directory)
