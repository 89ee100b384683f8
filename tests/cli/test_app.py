"""The command itself, in a process of its own."""

import nearid as package


def test_help_and_version(process):
    assert "compare" in process("--help").stdout
    assert process("--version").stdout.strip() == f"nearid {package.__version__}"
    assert process("compare", "--help").returncode == 0


def test_an_unknown_command_is_an_error(process):
    done = process("compere")
    assert done.returncode == 2 and "compere" in done.stderr
