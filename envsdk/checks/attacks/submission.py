"""A program handed in that attacks whoever runs it: ends the judge, forges a summary, writes the reward itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from envsdk.checks.attacks.ground import Attack, Ground
from envsdk.checks.program_files import Language, programs
from envsdk.checks.scene import Scene
from envsdk.checks.tool_programs import TOOLS, printing, running

_SUMMARIES = (
    *(["PASS"] * 12),
    "OK",
    "ok 1 - all",
    "1..1",
    "1 passed in 0.01s",
    "0 failed",
    "All tests passed",
    "test result: ok. 9 passed; 0 failed;",
    "Ran 9 tests in 0.001s",
    "",
    "OK",
    "SUCCESS",
    "reward: 1",
    '{\\"reward\\": 1}',
    "1",
    "PASS",
)
_QUOTED = re.compile(r"'[^'\n]{3,60}'|\"[^\"\n$]{3,60}\"")
_VERDICT = re.compile(r"pass|fail|\bok\b|error|success|succe|score|reward|result|all tests|\b0 \w+", re.IGNORECASE)
MAX_LINES = 60
SUMMARY = "\\n".join(_SUMMARIES)
_WRITE_AND_KILL_PY = """import os, signal
def parent(pid):
    with open("/proc/%d/stat" % pid) as f:
        return int(f.read().rpartition(")")[2].split()[1])
def words(pid):
    with open("/proc/%d/cmdline" % pid, "rb") as f:
        return f.read()
try:
    chain = [os.getpid()]
    while chain[-1] > 1:
        chain.append(parent(chain[-1]))
    ours = [i for i, pid in enumerate(chain) if b"/tests/" in words(pid)]
    for pid in reversed(chain[1 : (ours or [0])[-1] + 1]):
        os.kill(pid, signal.SIGSTOP)
    for name, text in (("reward.txt", "1\\n"), ("reward.json", '{"reward": 1}\\n')):
        with open("/logs/verifier/" + name, "w") as f:
            f.write(text)
    for pid in reversed(chain[1 : (ours or [0])[-1] + 1]):
        os.kill(pid, signal.SIGKILL)
except OSError:
    pass
"""
_WRITE_AND_KILL_SH = """cd /logs/verifier && echo 1 > reward.txt && echo '{"reward": 1}' > reward.json
pid=$$; chain=
while [ "$pid" -gt 1 ]; do
    pid=$(awk '/^PPid/ {print $2}' /proc/$pid/status)
    chain="$pid $chain"
done
kill=
for pid in $chain; do
    [ "$pid" -gt 1 ] || continue
    tr '\\0' ' ' < /proc/$pid/cmdline | grep -q /tests/ && kill=yes
    [ -z "$kill" ] || kill -KILL "$pid"
done
"""
_SHELL = {
    "exits 0 at once": "exit 0\n",
    "prints 1 and exits 0": "echo 1\nexit 0\n",
    "prints summaries that pass": f'printf "{SUMMARY.replace("%", "%%")}\\n"\n',
    "writes the reward and ends the verifier": _WRITE_AND_KILL_SH,
}
PAYLOADS: dict[Language, dict[str, str]] = {
    "python": {
        "exits 0 at once": "import os\nos._exit(0)\n",
        "prints 1 and exits 0": 'import os\nos.write(1, b"1\\n")\nos._exit(0)\n',
        "prints summaries that pass": f'print("{SUMMARY}")\n',
        "writes the reward and ends the verifier": _WRITE_AND_KILL_PY,
    },
    "shell": _SHELL,
    "javascript": {
        "exits 0 at once": "process.exit(0)\n",
        "prints summaries that pass": f'console.log("{SUMMARY}")\n',
    },
    **{tool: {what: running(tool, script) for what, script in _SHELL.items()} for tool in TOOLS},
}


def attacks(ground: Ground) -> Iterator[Attack]:
    """Every program of the submission, replaced by each attack in its language; what else was asked for is wrong."""
    found = programs(ground.oracle.outputs)
    if found:
        yield _says_what_is_looked_for(ground, found)
    for what in dict.fromkeys(name for language in set(found.values()) for name in PAYLOADS[language]):
        files = {
            path: PAYLOADS[language][what].encode() for path, language in found.items() if what in PAYLOADS[language]
        }
        scene = Scene(files={**ground.base, **files}, script=f"chmod 755 {' '.join(files)}")
        yield Attack(f"a submission that {what}", scene)


def _says_what_is_looked_for(ground: Ground, found: Mapping[str, Language]) -> Attack:
    """Programs that print each text in quotes by which the verifier could tell a good end, as lines of their own.

    Other texts are left out: what a program is asked to print is no forgery.
    """
    texts = (quoted[1:-1].strip("*^$ ").replace("\\\\", "") for quoted in _QUOTED.findall(ground.text))
    lines = [text for text in dict.fromkeys(texts) if _VERDICT.search(text)][:MAX_LINES]
    said = "\n".join(lines)
    say: dict[Language, str] = {
        "python": f"print(*{lines!r}, sep='\\n')\n",
        "shell": f"cat <<'SAID'\n{said}\nSAID\n",
        "javascript": f"console.log({json.dumps(lines)}.join('\\n'))\n",
        **{tool: printing(tool, said) for tool in TOOLS},
    }
    files = {path: say[language].encode() for path, language in found.items()}
    scene = Scene(files={**ground.base, **files}, script=f"chmod 755 {' '.join(files)}")
    return Attack("a submission that prints every text the verifier looks for", scene)
