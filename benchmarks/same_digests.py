"""The same digests by every Python: draw the bundled families and load the case directories with each, and compare.

    python benchmarks/same_digests.py python3.11 python3.12 python3.13

Each interpreter gets a virtual environment of its own in a temporary folder with the project's core dependencies, and
runs twice: with umask 022, LANG=C.UTF-8 and hash seed 0, and with umask 077, LANG=C, another hash seed, another time
zone and another checkout folder. All runs must print the same. Exits 1 where they do not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SURROUNDINGS: tuple[dict[str, str], ...] = (
    {"LANG": "C.UTF-8", "PYTHONHASHSEED": "0", "TZ": "UTC", "UMASK": "022"},
    {"LANG": "C", "PYTHONHASHSEED": "4242", "TZ": "Pacific/Auckland", "UMASK": "077", "PYTHONUTF8": "0"},
)
REPORT = """
import json, os, sys, tempfile
from pathlib import Path

os.umask(int(os.environ["UMASK"], 8))
from envsdk.authoring.families import Family
from envsdk.authoring.find import declared_in
from envsdk.spec.load import load_tasks
import tasks

found = {}
with tempfile.TemporaryDirectory(prefix=os.environ["PYTHONHASHSEED"]) as folder:
    for declaration in declared_in("tasks"):
        if not declaration.is_family:
            continue
        family = Family(declaration)
        for level in ({}, {knob: values[-1] for knob, values in family.levels.items()}):
            for seed in range(3):
                slug = family.slug(family.complete(level), seed)
                task = family.draw(seed=seed, level=level, dest=Path(folder) / slug)
                found[slug] = task.digests.model_dump()
for task in load_tasks([Path(sys.argv[1])]).tasks:
    found[f"case {task.slug}"] = task.digests.model_dump()
print(json.dumps(found, sort_keys=True))
"""


def main() -> int:
    """Compare; print one line an interpreter and the digest count, or the differences."""
    parser = argparse.ArgumentParser(description="Compare digests over interpreters.")
    parser.add_argument("python", nargs="+", help="interpreters, by name or path")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    said: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="envsdk-digests-") as folder:
        for number, python in enumerate(options.python):
            program = _environment(python, Path(folder, f"venv{number}"))
            version = subprocess.run(
                [program, "-c", "import sys; print(sys.version.split()[0])"], capture_output=True, text=True, check=True
            ).stdout.strip()
            for surroundings in SURROUNDINGS:
                name = f"Python {version}, {surroundings['LANG']}, umask {surroundings['UMASK']}"
                said[name] = _report(program, surroundings, Path(folder, f"checkout{number}{surroundings['UMASK']}"))
                print(f"{name}: {len(said[name])} tasks", file=sys.stderr)
    first = next(iter(said.values()))
    different = sorted({task for one in said.values() for task in {**first, **one} if one.get(task) != first.get(task)})
    result = {"runs": list(said), "tasks": len(first), "different": different}
    print(json.dumps(result) if options.json else f"{len(first)} tasks, {len(said)} runs, {len(different)} differ")
    return 1 if different else 0


def _environment(python: str, place: Path) -> str:
    """A virtual environment with the core dependencies; the project itself is not installed."""
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    subprocess.run([python, "-m", "venv", str(place)], check=True)
    program = str(place / "bin" / "python")
    subprocess.run([program, "-m", "pip", "install", "-q", *dependencies], check=True, stdout=sys.stderr)
    return program


def _report(program: str, surroundings: dict[str, str], checkout: Path) -> dict[str, Any]:
    """What one interpreter says in one kind of surroundings, from a checkout made under that umask."""
    files = subprocess.run(
        ["git", "ls-files", "-z", "envsdk", "tasks", "tests/conformance/cases"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    mask = int(surroundings["UMASK"], 8)
    for name in filter(None, files.decode().split("\0")):
        source, target = ROOT / name, checkout / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(source.readlink())
        else:
            target.write_bytes(source.read_bytes())
            target.chmod((0o777 if os.access(source, os.X_OK) else 0o666) & ~mask)
    ended = subprocess.run(
        [program, "-W", "error", "-c", REPORT, str(checkout / "tests" / "conformance" / "cases" / "verifier_defects")],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(checkout), **surroundings},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise SystemExit(f"{program} failed:\n{ended.stderr}")
    return dict(json.loads(ended.stdout))


if __name__ == "__main__":
    sys.exit(main())
