"""What the README and the docs tell a reader to type works, and prints what they show: marked blocks, page by page."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import blocks

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _pages_with_blocks() -> list:
    params = []
    for page in PAGES:
        found = list(blocks.marked_blocks(page))
        needs = sorted({need for block in found for need in block.needs})
        marks = [getattr(pytest.mark, need) for need in needs]
        if found:
            params.append(pytest.param(found, id=str(page.relative_to(ROOT)), marks=marks))
    return params


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("found", _pages_with_blocks())
def test_a_page_does_what_it_says(found: list, tmp_path: Path) -> None:
    programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = os.environ | {"PATH": programs, "ENVSDK_REGISTRY": f"sqlite:///{tmp_path}/registry.sqlite"}
    for block in found:
        if block.verb == "file":
            target = tmp_path / block.rest
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text)
            continue
        commands = block.commands()
        assert commands, f"{block.path}:{block.line}: no command in a block that is marked to run"
        for number, command in enumerate(commands):
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", command.text],
                cwd=tmp_path,
                env=env,
                capture_output=True,
                text=True,
                check=False,
                stdin=subprocess.DEVNULL,
            )
            expected = block.status if number == len(commands) - 1 else 0
            said = f"{block.path}:{block.line}: {command.text}\n{done.stdout}\n{done.stderr}"
            assert done.returncode == expected, said
            lines = {line.strip() for line in (done.stdout + done.stderr).splitlines()}
            assert set(command.printed) <= lines, f"the page shows {command.printed}: {said}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_links_only_to_what_exists(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [found.partition("#")[0] for found in re.findall(r"\]\(([^)\s]+)\)", text)]
    local = [target for target in targets if target and not re.match(r"[a-z]+:", target)]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_every_page_is_reachable_from_the_index() -> None:
    index = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("index.md"))
    pages = [page.relative_to(ROOT / "docs").with_suffix("") for page in PAGES if page.is_relative_to(ROOT / "docs")]
    assert [str(page) for page in pages if page.name != "index" and str(page) not in index] == []
