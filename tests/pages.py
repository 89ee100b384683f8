"""A real browser to look at pages with."""

import shutil
import subprocess
from functools import partial

import pytest


@pytest.fixture(scope="session")
def browser():
    """Open a file in headless Chromium, with a folder for its profile and switches; gives the completed process."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium here: the report is not looked at in a browser (apt-get install chromium)")
    quiet = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    quiet += " --disable-component-update --disable-sync --hide-scrollbars --virtual-time-budget=20000"

    def run(profile, file, *switches):
        command = [program, *quiet.split(), f"--user-data-dir={profile}", *switches, f"file://{file}"]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    return run


@pytest.fixture
def chromium(tmp_path, browser):
    """Open a file in headless Chromium with some switches; gives the completed process."""
    return partial(browser, tmp_path / "profile")
