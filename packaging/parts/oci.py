"""An image for containers, as an archive of the layout that OCI has: layers and their descriptions, made without
a daemon. The program takes a C library, which is Debian's: apt's client brings it."""

import gzip
import hashlib
import io
import json
import re
import subprocess
import tarfile
import time

from . import apt, place

# Libraries that the program is linked with, and their loader.
LIBRARIES = re.compile(r"(ld-linux[^/]*|lib(c|m|dl|pthread|rt))\.so(\.\d+)?$")
COPYRIGHT = "usr/share/doc/libc6/copyright"
TYPE = "application/vnd.oci.image"


def make(kit, arch, tree, out):
    """Packs the command; `refault run` is no part of it."""
    names = place.ARCHES[arch]["deb"]
    libc, version = c_library(kit, names)
    layers = [libc, command(tree)]
    blobs = {}
    described = [described_layer(blobs, layer) for layer in layers]
    config = store(blobs, configuration(names, version, layers))
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{TYPE}.manifest.v1+json",
        "config": {"mediaType": f"{TYPE}.config.v1+json", **config},
        "layers": described,
    }
    # Podman's name of it, and containerd's, which is that of the manifests of Kubernetes.
    name = f"refault:{place.version()}"
    named = {"org.opencontainers.image.ref.name": name, "io.containerd.image.name": f"docker.io/library/{name}"}
    entry = {"mediaType": manifest["mediaType"], **store(blobs, encoded(manifest)), "annotations": named}
    entry["platform"] = {"architecture": names, "os": "linux"}
    index = {"schemaVersion": 2, "mediaType": f"{TYPE}.index.v1+json", "manifests": [entry]}
    files = {f"blobs/sha256/{digest}": content for digest, content in blobs.items()}
    files |= {"index.json": encoded(index), "oci-layout": encoded({"imageLayoutVersion": "1.0.0"})}
    (out / f"refault-{place.version()}-{arch}-oci.tar").write_bytes(packed(sorted(files.items())))


def encoded(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def store(blobs, content):
    """Keeps content by its digest; how descriptors say it."""
    digest = hashlib.sha256(content).hexdigest()
    blobs[digest] = content
    return {"digest": f"sha256:{digest}", "size": len(content)}


def described_layer(blobs, layer):
    return {"mediaType": f"{TYPE}.layer.v1.tar+gzip", **store(blobs, gzip.compress(layer, 9, mtime=0))}


def configuration(names, libc, layers):
    """The description of the whole."""
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(place.epoch()))
    labels = {
        "org.opencontainers.image.title": "refault",
        "org.opencontainers.image.version": place.version(),
        "org.opencontainers.image.licenses": "(MIT OR Apache-2.0) AND LGPL-2.1-or-later",
        "refault.libc6": libc,
    }
    if place.repository():
        labels["org.opencontainers.image.source"] = place.repository()
    settings = {"Entrypoint": ["/usr/bin/refault"], "Env": ["PATH=/usr/bin"], "Labels": labels, "WorkingDir": "/"}
    history = [{"created": created, "created_by": f"libc6 {libc} of Debian"}]
    history.append({"created": created, "created_by": f"refault {place.version()}"})
    sums = [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]
    whole = {"architecture": names, "os": "linux", "created": created, "config": settings}
    return encoded({**whole, "rootfs": {"type": "layers", "diff_ids": sums}, "history": history})


def packed(files, links=(), folders=()):
    """A tar archive of root's, with the time of the sources."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, mode in folders:
            tar.addfile(entry(name, mode, tarfile.DIRTYPE))
        for name, to in links:
            link = entry(name, 0o777, tarfile.SYMTYPE)
            link.linkname = to
            tar.addfile(link)
        for name, content in files:
            file = entry(name, 0o755 if "bin/" in name or ".so" in name else 0o644, tarfile.REGTYPE)
            file.size = len(content)
            tar.addfile(file, io.BytesIO(content))
    return whole.getvalue()


def entry(name, mode, kind):
    info = tarfile.TarInfo(name)
    info.mode, info.type, info.mtime = mode, kind, place.epoch()
    info.uname = info.gname = "root"
    return info


def parents(files):
    """Folders of files, from the top."""
    found = {"/".join(name.split("/")[:depth]) for name in files for depth in range(1, name.count("/") + 1)}
    return [(name, 0o755) for name in sorted(found)]


def command(tree):
    """The layer of the command, its licences, and what programs look for in a system."""
    files = {"usr/bin/refault": (tree.refault / "bin/refault").read_bytes()}
    for file in sorted((tree.refault / "share/doc/refault").iterdir()):
        files[f"usr/share/doc/refault/{file.name}"] = file.read_bytes()
    files["etc/passwd"] = b"root:x:0:0:root:/root:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
    files["etc/group"] = b"root:x:0:\nnogroup:x:65534:\n"
    return packed(sorted(files.items()), folders=[*parents(files), ("root", 0o700), ("tmp", 0o1777)])


def c_library(kit, names):
    """The layer of Debian's C library for an architecture, and its version."""
    [file] = apt.download(kit.work / f"apt-{names}", names, "libc6")
    version = subprocess.check_output(["dpkg-deb", "--field", file, "Version"], text=True).strip()
    content = subprocess.check_output(["dpkg-deb", "--fsys-tarfile", file])
    files, links = {}, {"lib": "usr/lib"}
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        for member in tar:
            # Folders of libraries are below /usr here, as newer releases have them.
            name = re.sub(r"^(lib\d*)/", r"usr/\1/", member.name.removeprefix("./"))
            if name != COPYRIGHT and not (LIBRARIES.search(name) and re.match(r"usr/lib\d*/", name)):
                continue
            if name.startswith("usr/lib64/"):
                links["lib64"] = "usr/lib64"
            if member.issym():
                links[name] = member.linkname
            else:
                files[name] = tar.extractfile(member).read()
    return packed(sorted(files.items()), sorted(links.items()), parents([*files, *links])), version


def unpack(path, root):
    """Unpacks an image into a folder; an error where a digest is another one."""
    with tarfile.open(path) as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}
    for name, content in files.items():
        if name.startswith("blobs/") and hashlib.sha256(content).hexdigest() != name.split("/")[-1]:
            raise SystemExit(f"error: {path.name}: {name}: has another digest")
    blob = lambda about: files["blobs/sha256/" + about["digest"].removeprefix("sha256:")]  # noqa: E731
    manifest = json.loads(blob(json.loads(files["index.json"])["manifests"][0]))
    root.mkdir(parents=True)
    for layer in manifest["layers"]:
        subprocess.run(["tar", "-xz", "-C", root], input=blob(layer), check=True)
