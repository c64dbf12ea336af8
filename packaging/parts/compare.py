"""Two builds, byte by byte."""

import hashlib


def folders(first, second):
    """Compares files of the same name, and says what each is; true: all are equal."""
    names = {file.name for file in second.iterdir()}
    same = True
    for name in sorted(names):
        sums = [hashlib.sha256((folder / name).read_bytes()).hexdigest() for folder in (first, second)]
        same = same and sums[0] == sums[1]
        print(f"{'equal    ' if sums[0] == sums[1] else 'different'}  {sums[0][:16]}  {sums[1][:16]}  {name}")
    return same
