"""Answers that are programs, handed to Python verifiers: only where they could be taken for such, and only wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.checks import tamper
from envsdk.checks.attacks import expressions
from envsdk.checks.engine import ask_check
from envsdk.checks.report import CheckResult
from envsdk.checks.stage import Stage
from tests.fakes.tasks import text_task


async def tampered(tmp_path: Path, body: str) -> CheckResult:
    source = f"def judge(answer):\n{body}\n"
    async with Stage(text_task(tmp_path, source=source), None, repeats=2) as stage:
        return await ask_check(tamper.CHECK, stage)


async def test_an_answer_that_is_evaluated_may_compare_itself(tmp_path: Path) -> None:
    body = "    try:\n        return eval(answer) == 5\n    except Exception:\n        return False"
    result = await tampered(tmp_path, body)
    assert result.outcome == "fail"
    assert "equals everything" in result.why
    assert result.evidence["attacks"][0]["verdict"] == "reward 1"


async def test_an_answer_that_is_evaluated_in_a_box_of_its_own_earns_nothing(tmp_path: Path) -> None:
    body = (
        "    try:\n        value = eval(answer, {'__builtins__': {}})\n    except Exception:\n        return False\n"
        "    return type(value) is int and value == 5"
    )
    assert (await tampered(tmp_path, body)).outcome == "pass"


async def test_a_verifier_that_evaluates_nothing_is_not_asked(tmp_path: Path) -> None:
    result = await tampered(tmp_path, "    import ast\n    return answer.strip() == '5'")
    assert result.outcome == "skipped"
    assert result.evidence.get("assessed", True)


async def test_where_any_answer_passes_no_attack_is_needed(tmp_path: Path) -> None:
    result = await tampered(tmp_path, "    return 1.0 if eval('True') else 0.0")
    assert (result.outcome, result.evidence.get("assessed", True)) == ("skipped", True)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("ast.literal_eval(answer)", False),
        ("answer == 'evaluate'", False),
        ("eval(answer)", True),
        ("sympify(answer)", True),
        ("pickle.loads(data)", True),
        ("yaml.safe_load(text)", False),
        ("yaml.load(text)", True),
    ],
)
def test_ways_to_take_a_text_for_a_program_are_told_from_their_like(source: str, found: bool) -> None:
    assert expressions.evaluates(source) is found


def test_no_payload_is_a_right_answer_by_chance() -> None:
    for payload in expressions.PAYLOADS.values():
        text = payload.decode("latin-1").strip()
        assert not text.replace(".", "").isdigit()
        assert len(text.split()) > 1 or not text.isalnum()
