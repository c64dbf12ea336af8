"""Manual pages and completions, by the crate `refault-packaging`."""

import platform

from . import compiled


def write(kit, built):
    """Writes them, by a build for this machine of the command lines; their folder."""
    folder = kit.work / "pages"
    # Help is folded to the terminal's width.
    env = {**kit.env, "COLUMNS": "100", "CARGO_PROFILE_DEV_DEBUG": "false", "CARGO_PROFILE_DEV_OPT_LEVEL": "0"}
    here = built.get(platform.machine())
    if here:
        kit.run(here / compiled.PAGES, folder, env=env)
    else:
        kit.run("cargo", "run", "-q", "--locked", "-p", compiled.PAGES, "--", folder, env=env)
    return folder
