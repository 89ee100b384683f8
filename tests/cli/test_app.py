"""The command itself."""

import nearid as package


def test_help_and_version(nearid):
    assert "compare" in nearid("--help").stdout
    assert nearid("--version").stdout.strip() == f"nearid {package.__version__}"
    assert nearid("compare", "--help").returncode == 0


def test_an_unknown_command_is_an_error(nearid):
    done = nearid("compere")
    assert done.returncode == 2 and "compere" in done.stderr
