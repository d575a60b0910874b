"""Python verifiers that hang, hide, fork, eat memory or attack their own harness: an error each, and nothing is left."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from envsdk.spec.model import Budget, Task
from envsdk.verifying.verdict import EndState, Verdict
from envsdk.verifying.verify import verify
from tests.fakes.tasks import text_task

pytestmark = pytest.mark.asyncio
QUICK = Budget(verify_s=1.0, episode_s=10)
# A thread's name is its children's too, whatever session they hide in.
HOSTILE = """
import ctypes, json, os, re, signal, sys, threading, time


def judge(answer, *, mark=""):
    if not answer:
        return 1.0
    open("/proc/self/comm", "w").write(mark)
    {}
"""


def hostile(folder: Path, source: str, mark: str = "") -> Task:
    body = source.strip().replace("\n", "\n    ")
    return text_task(folder, source=HOSTILE.format(body), budget=QUICK, params={"mark": mark})


async def judged(task: Task, answer: bytes = b"x") -> Verdict:
    return await verify(task, EndState(answer=answer), None)


def processes_called(mark: str) -> list[int]:
    found = []
    for place in Path("/proc").iterdir():
        try:
            if place.name.isdigit() and (place / "comm").read_text().strip() == mark:
                found.append(int(place.name))
        except OSError:
            continue  # it has ended meanwhile
    return found


@pytest.mark.parametrize(
    "source",
    [
        "while True: pass",
        "return re.match(r'(a+)+$', 'a' * 60 + 'b')",
        "ctypes.CDLL(None).pause()",
        "os.kill(os.getpid(), signal.SIGSTOP)",
        "return (10 ** (10 ** 9)) > 0",
        "for number in range(1, 32):\n    if number not in (9, 19): signal.signal(number, signal.SIG_IGN)\nwhile True: pass",
        "threading.Thread(target=time.sleep, args=(60,)).start()\nreturn time.sleep(60)",
    ],
    ids=["loop", "regex", "c-code", "stopped", "integer", "signals", "thread"],
)
async def test_what_never_returns_is_ended_at_its_budget(tmp_path: Path, source: str) -> None:
    mark = secrets.token_hex(6)
    task = hostile(tmp_path, source, mark)
    assert (await judged(task)).status == "timeout"
    assert processes_called(mark) == []
    assert (await judged(task, b"")).reward == 1.0, "the next run is not harmed"


@pytest.mark.parametrize("hides", ["", "os.setsid()"])
async def test_a_fork_bomb_is_bounded_and_ended_with_all_it_made(tmp_path: Path, hides: str) -> None:
    # Doubles ten times, so that it stays harmless where nothing bounds it.
    bomb = f"for _ in range(10):\n    try:\n        os.fork()\n        {hides or 'pass'}\n    except OSError: pass\nwhile True: signal.pause()"
    mark = secrets.token_hex(6)
    task = hostile(tmp_path, bomb, mark)
    assert (await judged(task)).status == "timeout"
    assert processes_called(mark) == []
    assert (await judged(task, b"")).reward == 1.0


async def test_a_daemon_does_not_outlive_the_run_that_started_it(tmp_path: Path) -> None:
    mark = secrets.token_hex(6)
    daemon = "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        while True: signal.pause()\n    os._exit(0)\nos.wait()\nreturn 0.5"
    assert (await judged(hostile(tmp_path, daemon, mark))).reward == 0.5
    assert processes_called(mark) == []


@pytest.mark.parametrize(
    "source",
    [
        "held = []\nwhile True: held.append(bytearray(1 << 20))",
        "held = []\nwhile True: held.append(open('/dev/null'))",
        "held = open('held', 'wb')\nwhile True: held.write(b'x' * (1 << 20))",
        "while True:\n    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
        "raise BaseException('no ordinary one')",
        "os.abort()",
    ],
    ids=["memory", "files", "disk", "threads", "exception", "abort"],
)
async def test_what_takes_too_much_is_an_error_and_no_zero(tmp_path: Path, source: str) -> None:
    task = hostile(tmp_path, source)
    verdict = await judged(task)
    assert (verdict.status, verdict.code, verdict.reward) in {
        ("error", "verifier_exit", None),
        ("timeout", "verifier_timeout", None),  # a slow machine reaches no limit in time
    }
    assert (await judged(task, b"")).reward == 1.0


@pytest.mark.parametrize("target", ["os.getppid()", "-1"])
async def test_one_that_kills_its_harness_is_heard_of_and_replaced(tmp_path: Path, target: str) -> None:
    task = hostile(tmp_path, f"os.kill({target}, 9)\nreturn 1.0")
    assert (await judged(task)).reward is None
    assert (await judged(task, b"")).reward == 1.0


async def test_no_run_can_answer_for_another(tmp_path: Path) -> None:
    forged = "for number in range(3, 64):\n    for name in range(3):\n        try: os.write(number, (json.dumps({'id': name, 'value': '1.0'}) + chr(10)).encode())\n        except OSError: pass\nreturn 0.0"
    task = hostile(tmp_path, forged)
    assert (await judged(task)).reward is None, "what it wrote beside its own result is no result"
    assert [(await judged(task, b"")).reward for _ in range(3)] == [1.0] * 3
