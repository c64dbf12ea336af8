"""The tar archive, for any Linux."""

import gzip
import shutil
import tarfile

from . import place


def make(kit, arch, tree, out):
    """Packs the tree: sorted, of root, with the time of the sources."""
    name = f"refault-{place.version()}-{arch}-linux"
    path = out / f"{name}.tar.gz"
    tar_path = kit.work / f"{name}.tar"
    with tarfile.open(tar_path, "w", format=tarfile.PAX_FORMAT) as tar:
        for file in [tree.whole, *sorted(tree.whole.rglob("*"))]:
            inside = f"{name}/{file.relative_to(tree.whole)}".removesuffix("/.")
            info = tar.gettarinfo(file, inside)
            info.uid = info.gid = 0
            info.uname = info.gname = "root"
            info.mtime = place.epoch()
            info.mode = 0o755 if file.is_dir() or file.parent.name == "bin" else 0o644
            with (file.open("rb") if file.is_file() else open("/dev/null", "rb")) as content:
                tar.addfile(info, content if file.is_file() else None)
    # Without name and time of the file inside.
    with tar_path.open("rb") as plain, path.open("wb") as packed:
        with gzip.GzipFile("", "wb", 9, packed, mtime=0) as zipped:
            shutil.copyfileobj(plain, zipped)
    tar_path.unlink()
