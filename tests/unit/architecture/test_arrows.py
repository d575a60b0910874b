"""The map of packages holds: who may import whom, and what `import envsdk` must not load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("envsdk", "registry", "trainer", "tasks")
HEAVY = ("torch", "vllm", "transformers", "sqlalchemy", "fastapi", "docker", "numpy")
# A migration is written once, by a tool, and never edited: its length is nobody's to keep short.
MIGRATIONS = ROOT / "registry" / "migrations" / "versions"
SOURCES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def _loaded_by(statement: str) -> set[str]:
    probe = f"import sys\n{statement}\nprint(' '.join({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.splitlines()[-1].split())


def test_the_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("module", ["envsdk", "envsdk.cli.app", "envsdk.pytest_plugin", "tasks"])
def test_a_light_module_loads_nothing_heavy(module: str) -> None:
    assert _loaded_by(f"import {module}") & set(HEAVY) == set()


def test_asking_for_help_loads_nothing_heavy() -> None:
    assert _loaded_by("from envsdk.cli.app import run\nrun(['--help'])") & set(HEAVY) == set()


def test_the_registry_server_loads_no_model_code() -> None:
    assert _loaded_by("import registry.cli") & {"torch", "vllm", "transformers"} == set()


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_source_file_fits_on_a_few_screens_and_says_what_it_is_for(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400 or path.parent == MIGRATIONS
    assert ast.get_docstring(ast.parse(text)), "no module docstring"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_named_for_nothing(path: Path) -> None:
    assert path.stem not in {"utils", "helpers", "misc", "common", "manager", "base_utils"} or path.is_dir()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_ships_its_types(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()
