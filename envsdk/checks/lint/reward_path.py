"""Where the verifier writes its reward: only ``/logs/verifier/reward.txt`` and ``reward.json`` are read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsdk.checks.lint.fault import Fault
from envsdk.checks.lint.files import TaskFiles

_NAMED = re.compile(r"\breward\.(?:txt\b|json\b|[\"']?[$%{+])")
_LIKE = (
    re.compile(r"[\w./$-]*(?:reward|score)[\w-]*\.(?:txt|json|text|jsonl)", re.IGNORECASE),
    re.compile(r"/logs/[\w./-]*"),
)


def rule(files: TaskFiles) -> Iterator[Fault]:
    """A script verifier none of whose files names a reward file that is read."""
    tests = files.under("tests")
    if files.task.spec.verifier.kind != "script" or not tests or any(map(_NAMED.search, tests.values())):
        return
    for pattern in _LIKE:
        for path, text in tests.items():
            for number, line in enumerate(text.splitlines(), 1):
                if like := pattern.search(line):
                    what = f"names {like[0]}, which no reader looks for: write /logs/verifier/reward.txt or reward.json"
                    yield Fault("wrong_reward_path", path, number, what)
                    return
    yield Fault("wrong_reward_path", "tests/test.sh", 0, "nothing under tests/ names reward.txt or reward.json")
