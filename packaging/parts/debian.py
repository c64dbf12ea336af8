"""Packages of Debian, by cargo-deb: `[package.metadata.deb]` of the crates says what is in them."""

from . import place

CRATES = ("refault-cli", "refault-run")


def make(kit, arch, tree, out):
    """Packs both."""
    link(kit, tree)
    for crate in CRATES:
        name = "refault" if crate == "refault-cli" else crate
        file = out / f"{name}_{place.version()}-1_{place.ARCHES[arch]['deb']}.deb"
        has_units = crate == "refault-cli" and (tree.refault / "lib/systemd").exists()
        kit.run(
            "cargo", "deb", "-q", "-p", crate, *(["--variant", "units"] if has_units else []),
            "--no-build", "--no-strip", "--no-separate-debug-symbols",
            "--target", place.ARCHES[arch]["target"], "--profile", "dist", "--output", file,
        )


def link(kit, tree):
    """Shows the trees where the manifests of the crates name them."""
    named = place.ROOT / "target/packaging/current"
    named.parent.mkdir(parents=True, exist_ok=True)
    named.unlink(missing_ok=True)
    named.symlink_to(tree.whole.parent)
