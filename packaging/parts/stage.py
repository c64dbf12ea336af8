"""The trees of files that packages have, as they are below /usr."""

import gzip
import shutil
from dataclasses import dataclass
from pathlib import Path

from . import notices, place

# Manual pages of the second package; the first has all others.
OF_RUN = ("refault-run.1", "refault-top.1")
COMPLETIONS = {
    "refault.bash": "share/bash-completion/completions/refault",
    "_refault": "share/zsh/site-functions/_refault",
    "refault.fish": "share/fish/vendor_completions.d/refault.fish",
}


@dataclass
class Tree:
    """Folders: all of it, and the parts of both packages, of which pages are packed."""

    whole: Path
    refault: Path
    run: Path


def copy(source, to, mode=0o644):
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, to)
    to.chmod(mode)


def page(source, folder, packed):
    """A manual page; `packed`: as distributions have it."""
    to = folder / "share/man/man1" / source.name
    copy(source, to)
    if packed:
        with open(f"{to}.gz", "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as zipped:
            zipped.write(to.read_bytes())
        to.unlink()


def documents(folder, name, notes):
    """Files in which a package says things of itself."""
    to = folder / "share/doc" / name
    for file in ("LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md"):
        copy(place.ROOT / file, to / file)
    for file, text in notes.items():
        (to / file).write_text(text)
    # Debian looks for this name.
    head = "refault is MIT OR Apache-2.0; its parts by others are in THIRD-PARTY-LICENSES beside this file.\n\n"
    (to / "copyright").write_text(head + (place.ROOT / "LICENSE-MIT").read_text())


def units(folder):
    """Services of systemd, which nothing starts by itself."""
    found = sorted((place.ROOT / "packaging/systemd").glob("*.service"))
    for file in found:
        copy(file, folder / "lib/systemd/system" / file.name)


def lay(kit, arch, binaries, written):
    """Lays the trees of an architecture anew."""
    stage = kit.work / "stage"
    shutil.rmtree(stage, ignore_errors=True)
    tree = Tree(stage / "whole", stage / "refault", stage / "refault-run")
    target = place.ARCHES[arch]["target"]
    deps = notices.Dependencies(place.ROOT / "Cargo.toml", target, ("refault-cli", "refault-run"))
    notes = {"THIRD-PARTY-LICENSES": notices.licences(deps), "sbom.cdx.json": notices.materials(deps)}
    for folder, packed in ((tree.whole, False), (tree.refault, True), (tree.run, True)):
        own = {tree.whole: ("refault", "refault-run"), tree.refault: ("refault",), tree.run: ("refault-run",)}[folder]
        for name in own:
            copy(binaries / name, folder / "bin" / name, 0o755)
        for source in sorted((written / "man").iterdir()):
            name = "refault-run" if source.name in OF_RUN else "refault"
            if name in own:
                page(source, folder, packed)
        if "refault" in own:
            units(folder)
            for source, to in COMPLETIONS.items():
                copy(written / "completions" / source, folder / to)
        documents(folder, own[0], notes)
    return tree
