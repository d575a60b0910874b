"""Runs of one state that must agree, and what they say where they do not."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping

from envsdk.checks.check import MACHINERY, Finding, fails, passes, said, shown, undecided
from envsdk.checks.interval import wilson
from envsdk.checks.scene import Scene
from envsdk.checks.stage import Stage
from envsdk.verifying.verdict import Verdict


async def compare(stage: Stage, scenes: Mapping[str, Scene], *, what: str) -> Finding:
    """Play every scene beside the oracle's own run; they must all say the same.

    ``scenes`` are named by what differs in them, ``what`` is the word for it in the finding.
    """
    run = await stage.oracle()
    assert run is not None
    verdicts = dict(zip(scenes, await asyncio.gather(*map(stage.play, scenes.values())), strict=True))
    broken = [verdict for verdict in (run.verdict, *verdicts.values()) if verdict.code in MACHINERY]
    if broken:
        return undecided(f"could not verify: {broken[0].code}", **shown(broken[0]))
    words = {"as it is": said(run.verdict)} | {name: said(verdict) for name, verdict in verdicts.items()}
    most = Counter(words.values()).most_common(1)[0][0]
    agree = sum(word == most for word in words.values())
    low, high = wilson(agree, len(words))
    share = {"agreement": f"{agree} of {len(words)}", "interval_95": [round(low, 3), round(high, 3)]}
    if agree == len(words):
        return passes(f"{len(words)} runs agree: {most}", **share)
    odd = {name: word for name, word in words.items() if word != most}
    return fails(
        f"the verdict depends on {what}: {most}, but {_listed(odd)}", runs=words, **share, **_first(verdicts, odd)
    )


def _listed(odd: Mapping[str, str]) -> str:
    shown_first = [word if name == "as it is" else f"{word} with {name}" for name, word in list(odd.items())[:3]]
    more = f" and {len(odd) - 3} more" if len(odd) > 3 else ""
    return ", ".join(shown_first) + more


def _first(verdicts: Mapping[str, Verdict], odd: Mapping[str, str]) -> dict[str, object]:
    name = next((name for name in odd if name in verdicts), None)
    return {f"odd_{key}": value for key, value in shown(verdicts[name]).items()} if name else {}
