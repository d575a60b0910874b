"""Rewards that are written too early, in the wrong place, in the wrong form, or not at all."""

from __future__ import annotations

from tests.labelled.mini import REWARD, Labelled
from tests.labelled.statuses import CHECK_SUM, FRESH, NUMBERS, RUN, SOLVE_SUM, SUM

OUT = "/logs/verifier/reward.txt"


def _sum(case_id: str, test: str, *caught_by: str, why: str, lines: str = "") -> Labelled:
    return Labelled(
        case_id,
        SUM,
        SOLVE_SUM,
        test,
        "/app/total.txt",
        caught_by,
        why,
        f"{NUMBERS}\n{lines}",
        {"tests/check.py": CHECK_SUM},
    )


CASES = (
    _sum(
        "reward-before-tests",
        f"echo 1 > {OUT}\n[ -f /app/total.txt ] || exit 0\n{RUN} || echo 0 > {OUT}",
        "noop",
        why="a pass is written first, and stays where the script leaves early",
    ),
    _sum(
        "reward-kept-in-shell-default",
        f"reward=1\nif [ -s /app/total.txt ]; then {RUN} || reward=0; fi\necho $reward > {OUT}",
        "noop",
        why="the default is a pass; an absent answer is never judged",
    ),
    _sum(
        "reward-other-folder",
        f"mkdir -p /logs/verify\nif {RUN}; then echo 1; else echo 0; fi > /logs/verify/reward.txt",
        "oracle",
        why="another folder than the one that is read",
    ),
    _sum(
        "reward-relative-path",
        f"cd /tests\nif {RUN}; then echo 1; else echo 0; fi > reward.txt",
        "oracle",
        why="a relative path, after a change of folder",
    ),
    _sum(
        "reward-printed",
        f"if {RUN}; then echo 'reward: 1'; else echo 'reward: 0'; fi",
        "oracle",
        why="the reward is printed and not written",
    ),
    _sum(
        "reward-word",
        f"if {RUN}; then echo PASS; else echo FAIL; fi > {OUT}",
        "oracle",
        why="a word is no number",
    ),
    _sum(
        "reward-percent",
        f"if {RUN}; then echo 100; else echo 0; fi > {OUT}",
        "oracle",
        why="a percentage, out of the range",
    ),
    _sum(
        "reward-fraction",
        f"if {RUN}; then echo 1/1; else echo 0/1; fi > {OUT}",
        "oracle",
        why="a fraction is no number",
    ),
    _sum(
        "reward-json-true",
        f"if {RUN}; then v=true; else v=false; fi\necho '{{\"reward\": '$v'}}' > /logs/verifier/reward.json",
        "oracle",
        why="a truth value is no number",
    ),
    _sum(
        "reward-json-two-names",
        f"if {RUN}; then s=1; else s=0; fi\necho '{{\"score\": '$s', \"total\": 1}}' > /logs/verifier/reward.json",
        "oracle",
        why="two names, none of them the headline",
    ),
    _sum(
        "reward-two-files-disagree",
        f"if {RUN}; then r=1; else r=0; fi\necho $r > {OUT}\necho '{{\"reward\": 0.5}}' > /logs/verifier/reward.json",
        "oracle",
        why="the two files disagree",
    ),
    _sum(
        "reward-kept-if-newer",
        f"[ -f {OUT} ] || echo 0 > {OUT}\nif {RUN}; then echo 1 > {OUT}; fi",
        "planted_reward",
        why="0 is written only where nothing lies there yet",
    ),
    _sum(
        "reward-best-of",
        f"old=$(cat {OUT} 2>/dev/null || echo 0)\nif {RUN}; then new=1; else new=0; fi\n"
        f'[ "$new" -gt "${{old%%.*}}" ] && old=$new\nrm -f /logs/verifier/reward.json\necho "$old" > {OUT}',
        "planted_reward",
        why="keeps the best of what lies there and what was found",
    ),
    _sum(
        "reward-set-e-diff",
        f"set -eu\nprintf '42\\n' > /tmp/want\ndiff /tmp/want /app/total.txt\necho 1 > {OUT}",
        "noop",
        why="set -e ends the script at diff, before any reward",
    ),
    _sum(
        "reward-exit-in-function",
        f'fail() {{ echo "failed: $1"; exit 1; }}\n[ -f /app/total.txt ] || fail missing\n{RUN} || fail wrong\necho 1 > {OUT}',
        "noop",
        why="fail leaves without a reward",
    ),
    _sum(
        "reward-python-raises-on-bytes",
        "python3 -I - <<'EOF'\nimport os\ntext = open('/app/total.txt').read() if os.path.exists('/app/total.txt') else ''\n"
        f"with open('{OUT}', 'w') as f:\n    f.write(str(int(text.strip() == '42')))\nEOF",
        "malformed",
        why="bytes that are no UTF-8 raise before the reward is written",
    ),
    _sum(
        "reward-from-image",
        f"{RUN} || echo 0 > {OUT}",
        "oracle",
        why="the pass is made when the image is built",
        lines="RUN mkdir -p /logs/verifier && echo 1 > /logs/verifier/reward.txt",
    ),
    _sum(
        "good-reward-default-zero",
        f"{FRESH}echo 0 > {OUT}\n[ -f /app/total.txt ] || exit 0\nif {RUN}; then echo 1 > {OUT}; fi",
        why="looks like a reward written before the tests: it is a 0",
    ),
    _sum(
        "good-reward-trap-zero",
        f"{FRESH}trap '[ -s {OUT} ] || echo 0 > {OUT}' EXIT\nset -e\n{RUN}\necho 1 > {OUT}",
        why="looks like set -e before the reward: the trap writes a 0 where none is",
    ),
    _sum(
        "good-reward-in-variable",
        f"{FRESH}LOGS=/logs/verifier\nREWARD_FILE=$LOGS/reward.txt\n{RUN}{REWARD.replace('/logs/verifier/reward.txt', '$REWARD_FILE')}",
        why="looks like a wrong path: the name is put together",
    ),
    _sum(
        "good-reward-json-details",
        f"{FRESH}if {RUN}; then r=1; else r=0; fi\n"
        'printf \'{"reward": %s, "format": 1.0, "value": %s}\\n\' $r $r > /logs/verifier/reward.json',
        why="looks like several names: the headline is among them",
    ),
)
