"""Packages of RPM, by cargo-generate-rpm: `[package.metadata.generate-rpm]` of the crates says what is in them."""

from . import debian, place


def make(kit, arch, tree, out):
    """Packs both."""
    debian.link(kit, tree)
    for crate, folder in (("refault", "crates/cli"), ("refault-run", "crates/run")):
        name = place.ARCHES[arch]["rpm"]
        file = out / f"{crate}-{place.version()}-1.{name}.rpm"
        # RPM of ten years ago reads gzip; needs of libraries stand in the manifests.
        kit.run(
            "cargo", "generate-rpm", "-p", folder, "-a", name, "-o", file, "--payload-compress", "gzip",
            "--auto-req", "disabled", "--source-date", place.epoch(), "--target", place.ARCHES[arch]["target"],
        )
