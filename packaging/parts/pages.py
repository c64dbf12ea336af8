"""Manual pages and completions, by the crate `refault-packaging`."""


def write(kit):
    """Writes them for this machine's own build of the command lines; their folder."""
    folder = kit.work / "pages"
    # Help is folded to the terminal's width.
    env = {**kit.env, "COLUMNS": "100", "CARGO_PROFILE_DEV_DEBUG": "false", "CARGO_PROFILE_DEV_OPT_LEVEL": "0"}
    kit.run("cargo", "run", "-q", "--locked", "-p", "refault-packaging", "--", folder, env=env)
    return folder
