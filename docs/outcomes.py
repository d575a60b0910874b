"""Write the reference page of outcomes from the outcome table: ``python docs/outcomes.py``. A test compares the two."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from envsdk.outcome import clock_signs, reply_signs, verifier_signs  # noqa: F401 - each registers its signs
from envsdk.outcome.signs import SIGNS
from envsdk.outcome.table import Rule, outcome_table

PAGE = Path(__file__).parent / "reference" / "outcomes.md"
HEAD = """# Outcomes

Every episode records why it ended: a class, and a cause under it. Both follow from facts that the model cannot write,
by the table in `envsdk/outcome/table.yaml`; the facts are stored with the episode, so that the table can be applied
again (`envsdk outcomes reclassify RUN`). This page is written from the table by `python docs/outcomes.py`.

Two rules are behind all rows. An end that the *model* caused is graded on the state it left, whatever the end: its
reward decides between success and failure, and where nothing is left to grade, the bottom of the range counts. An end
that the *machinery* caused is excluded whatever a verifier says about the state. A fact that was not observed is never
read as "no": where it would decide, the outcome is unknown, and every unknown is listed.

## What follows from a class

"""
SIDES = {
    "model": "Of the model: graded, trained on, counted",
    "machinery": "Of the machinery: excluded, dispatched again",
    "undecided": "Undecided: excluded, listed, not dispatched again",
}
SAID = {
    "graded": "graded",
    "in_gradient": "in the gradient",
    "in_baseline": "in the baseline",
    "redispatch": "dispatched again",
    "counts_in_eval": "counts in evaluation",
}
MARK = {True: "yes", False: "no"}


def page() -> str:
    """The whole page."""
    table = outcome_table()
    parts = [HEAD, _consequences(), _exceptions()]
    for side, title in SIDES.items():
        rows = [
            (f"`{name}`", cause.sentence, cause.action) for name, cause in table.causes.items() if cause.side == side
        ]
        parts.append(f"\n## {title}\n\n{_table(('cause', 'what happened', 'what to do'), rows)}")
    parts.append("\n## Who ended it\n\nThe first row that fits gives the cause. *Signs* are below.\n\n")
    parts.append(_table(("row", "ended by", "phase", "signs", "cause"), [_end(rule) for rule in table.ends]))
    parts.append(
        "\n## What the verifier's word is worth\n\nAsked where the end is the model's; `keep` keeps its cause.\n\n"
    )
    parts.append(_table(("row", "signs", "cause", "reward"), [_grade(rule) for rule in table.grades]))
    parts.append("\n## Signs\n\nTrue only where observed.\n\n")
    signs = [(f"`{name}`", (function.__doc__ or "").partition("\n")[0]) for name, function in sorted(SIGNS.items())]
    parts.append(_table(("sign", "what it says"), signs))
    return "".join(parts)


def _consequences() -> str:
    rows = [
        (f"`{name}`", *(MARK[getattr(consequence, field)] for field in SAID))
        for name, consequence in outcome_table().classes.items()
    ]
    return _table(("class", *SAID.values()), rows)


def _exceptions() -> str:
    causes = outcome_table().causes.items()
    rows = [
        (f"`{name}`", ", ".join(f"{SAID[flag]}: {MARK[value]}" for flag, value in cause.flags.items()))
        for name, cause in causes
        if cause.flags
    ]
    return f"\nA cause may differ from its class:\n\n{_table(('cause', 'what differs'), rows)}"


def _end(rule: Rule) -> tuple[str, ...]:
    return (rule.name, ", ".join(rule.ended_by), ", ".join(rule.phase), _signs(rule), f"`{rule.cause}`")


def _grade(rule: Rule) -> tuple[str, ...]:
    return (rule.name, _signs(rule), f"`{rule.cause}`", rule.reward)


def _signs(rule: Rule) -> str:
    asked = [*rule.signs, *(f"not {name}" for name in rule.unless)]
    asked += [f"end is {' or '.join(rule.end)}"] if rule.end else []
    asked += [f"phase is {' or '.join(rule.phase)}"] if rule.phase and not rule.ended_by else []
    return ", ".join(asked)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
