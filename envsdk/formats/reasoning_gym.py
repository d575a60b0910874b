"""Datasets of reasoning-gym in: one text task an entry, judged by the dataset's own scorer.

The scorer is called where the verifier runs, which therefore needs the package; only its full score passes, because
many scorers give a little for anything, and some a part for a wrong answer. An entry whose own answer does not get
the full score, once its metadata went through JSON, is rejected.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from envsdk.authoring.write import default_dockerfile, python_verifier_files, reply_files
from envsdk.errors import PrerequisiteError, UsageError
from envsdk.formats.result import ImportResult, Walk, free_place, quietly
from envsdk.spec.contents import FileContent
from envsdk.spec.dump import dump_task
from envsdk.spec.meaning import ANSWER_PATH, slug_of
from envsdk.spec.model import AgentSpec, Budget, Task, TaskSpec, VerifierSpec
from envsdk.suggest import did_you_mean

VERIFIER = b'''"""Scores an answer as the reasoning-gym dataset does that the task was drawn from."""


def score(answer: str, *, dataset: str, entry: dict) -> float:
    """The dataset's score, 0 to 1, for the answer without white space at its ends."""
    import reasoning_gym

    return float(reasoning_gym.get_score_answer_fn(dataset)(answer.strip(), entry))
'''


def import_reasoning_gym(
    name: str,
    dest: Path,
    *,
    size: int,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    walk: Walk = quietly,
) -> ImportResult:
    """Draw ``size`` entries of the dataset ``name`` as tasks ``dest/<slug>``.

    Raises:
        PrerequisiteError: reasoning-gym is not installed (code ``extra_missing``).
        UsageError: there is no such dataset, or it refuses the settings (codes ``no_dataset``, ``bad_settings``).
    """
    package = _package()
    known = package.factory.DATASETS
    if name not in known:
        hint = did_you_mean(name, known) or f"there are {len(known)}, such as {', '.join(sorted(known)[:3])}"
        raise UsageError(f"no dataset {name!r}", code="no_dataset", hint=hint)
    try:
        dataset = package.create_dataset(name, size=size, seed=seed, **(settings or {}))
    except (TypeError, ValueError, AssertionError) as error:
        raise UsageError(f"refuses its settings: {error}", code="bad_settings", where=name) from error
    result = ImportResult()
    score = package.get_score_answer_fn(name)
    for number in walk(range(size)):
        slug = f"{slug_of(name)}-{seed}-{number}"
        result.add(slug, lambda entry=dataset[number], slug=slug: _task(name, entry, score, dest, slug))  # type: ignore[misc]
    return result


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """``KEY=JSON`` texts as settings; what is no JSON is text.

    Raises:
        UsageError: a text has no ``=`` (code ``bad_settings``).
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not (key and separator):
            raise UsageError(f"{pair!r} is no KEY=JSON", code="bad_settings", hint="--set max_terms=3")
        try:
            settings[key] = json.loads(text)
        except ValueError:
            settings[key] = text
    return settings


def _package() -> ModuleType:
    try:
        import reasoning_gym
        import reasoning_gym.factory
    except ModuleNotFoundError as error:
        hint = "pip install 'envsdk[formats]'"
        raise PrerequisiteError("reasoning-gym is not installed", code="extra_missing", hint=hint) from error
    return reasoning_gym  # type: ignore[no-any-return]


def _task(name: str, entry: Mapping[str, Any], score: Any, dest: Path, slug: str) -> Task:
    answer = entry["answer"]
    plain = json.loads(json.dumps(entry, default=str))
    if not isinstance(answer, str) or score(answer, plain) != 1.0:
        raise UsageError(
            "its own answer does not get the full score", code="oracle_fails", hint="leave this entry out", where=slug
        )
    spec = TaskSpec(
        slug=slug,
        instruction=entry["question"],
        agent=AgentSpec(protocol="answer"),
        verifier=VerifierSpec(
            kind="text",
            entry="tests/verifier.py::score",
            params={"dataset": name, "entry": plain},
            pass_mark=1.0,
            exit_status="native",
        ),
        budget=Budget(turns=1),
        artifacts=(ANSWER_PATH,),
        tags=("reasoning-gym", name),
    )
    files = {
        "environment/Dockerfile": FileContent(default_dockerfile().encode()),
        **python_verifier_files(VERIFIER, "score", kind="text"),
        **reply_files(answer, protocol="answer"),
    }
    return dump_task(spec, files, free_place(dest, slug))
