"""Licences of what is in the binaries and others wrote, and the bill of materials (CycloneDX)."""

import hashlib
import json
import re
import subprocess
import time
from pathlib import Path

from . import place

# A file of a crate's sources whose name begins so is its licence.
NAMES = ("licen", "copying", "notice", "unlicense", "copyright")

HEAD = """\
refault has parts that others wrote. Each is listed with its licence, and below are their texts.

Beside them binaries have in them the standard library of Rust (MIT OR Apache-2.0, the Rust project
developers) and the start-up and unwinding code of zig's toolchain (MIT, and Apache-2.0 WITH
LLVM-exception).
"""


class Dependencies:
    """Crates that some packages of a workspace are made of."""

    def __init__(self, manifest, target, roots):
        words = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
        found = json.loads(subprocess.check_output([*words, "--manifest-path", manifest]))
        self.packages = {package["id"]: package for package in found["packages"]}
        nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
        self.roots = [key for key, package in self.packages.items() if package["name"] in roots]
        self.needs = {}
        todo = list(self.roots)
        while todo:
            key = todo.pop()
            if key in self.needs:
                continue
            # Build scripts and tests are in no binary.
            plain = [dep["pkg"] for dep in nodes[key]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
            self.needs[key] = sorted(plain)
            todo += plain
        self.sums = checksums(manifest.with_name("Cargo.lock"))

    def named(self, foreign):
        """All by name and version; `foreign`: without those of this workspace."""
        chosen = [self.packages[key] for key in self.needs if self.packages[key]["source"] or not foreign]
        return sorted(chosen, key=lambda package: (package["name"], package["version"]))


def checksums(lock):
    """SHA-256 of each crate's archive, by name and version."""
    found = re.findall(r'name = "([^"]+)"\nversion = "([^"]+)"\n(?:source = .*\n)?checksum = "([^"]+)"', lock.read_text())
    return {(name, version): digest for name, version, digest in found}


def texts(package):
    """Licence texts in the sources of a crate."""
    folder = Path(package["manifest_path"]).parent
    files = [file for file in folder.iterdir() if file.is_file() and file.name.lower().startswith(NAMES)]
    return [file.read_text(errors="replace").strip() for file in sorted(files) if file.suffix not in (".html", ".rs")]


def licences(dependencies):
    """Every crate with its licence, and each text once, below the crates that have it."""
    listed, by_text = [HEAD], {}
    for package in dependencies.named(foreign=True):
        name = f"{package['name']} {package['version']}"
        own = texts(package)
        without = "" if own else " (text: that of SPDX, the crate has none)"
        listed.append(f"  {name}: {package['license'] or 'see its text'}{without}")
        for text in own:
            by_text.setdefault(text, []).append(name)
    for text, names in by_text.items():
        listed.append(f"\n{'=' * 80}\n{', '.join(names)}\n{'-' * 80}\n{text}")
    return "\n".join(listed) + "\n"


def reference(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package, sums):
    """A crate as CycloneDX has it."""
    described = {
        "type": "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(package),
    }
    if package["license"]:
        described["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    digest = sums.get((package["name"], package["version"]))
    if digest:
        described["hashes"] = [{"alg": "SHA-256", "content": digest}]
    return described


def materials(dependencies):
    """The bill of materials as JSON."""
    own = {"type": "application", "bom-ref": "refault", "name": "refault", "version": place.version()}
    own["licenses"] = [{"expression": "MIT OR Apache-2.0"}]
    packages = dependencies.packages
    arrows = [{"ref": "refault", "dependsOn": sorted(reference(packages[key]) for key in dependencies.roots)}]
    for key, needs in sorted(dependencies.needs.items()):
        arrows.append({"ref": reference(packages[key]), "dependsOn": sorted({reference(packages[n]) for n in needs})})
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(place.epoch()))
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"timestamp": made, "component": own},
        "components": [component(package, dependencies.sums) for package in dependencies.named(foreign=False)],
        "dependencies": sorted(arrows, key=lambda arrow: arrow["ref"]),
    }
    # The same sources have the same number.
    digest = hashlib.sha256(json.dumps(bill, sort_keys=True).encode()).hexdigest()
    bill["serialNumber"] = f"urn:uuid:{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
    return json.dumps(bill, indent=1, sort_keys=True) + "\n"
