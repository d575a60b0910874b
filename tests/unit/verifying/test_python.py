"""Python verifiers: their own process, their limits, and the contract on what they return."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from envsdk.sandboxes.base import SandboxSpec
from envsdk.spec.model import Budget
from envsdk.verifying.isolation import isolation
from envsdk.verifying.verdict import EndState, Verdict
from envsdk.verifying.verify import verify
from tests.fakes.sandbox import FakeProvider
from tests.fakes.tasks import text_task


async def judged(tmp_path: Path, source: str, answer: bytes | None = b"5", *, verify_s: float = 5.0) -> Verdict:
    task = text_task(tmp_path, source=f"def judge(answer):\n    {source}\n", budget=Budget(verify_s=verify_s))
    return await verify(task, EndState(answer=answer), None)


@pytest.mark.parametrize(
    ("source", "reward"),
    [
        ("return 1", 1.0),
        ("return answer == '5'", 1.0),
        ("return False", 0.0),
        ("return {'reward': 0.5, 'style': True}", 0.5),
        ("return {'score': 0.25}", 0.25),
        ("print('reward: 1'); return 0.0", 0.0),
    ],
)
async def test_numbers_bools_and_named_numbers_are_rewards(tmp_path: Path, source: str, reward: float) -> None:
    assert (await judged(tmp_path, source)).reward == reward


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("return 'high'", "wrong_type_reward"),
        ("return None", "wrong_type_reward"),
        ("return [1]", "wrong_type_reward"),
        ("return float('nan')", "non_finite_reward"),
        ("return 2", "out_of_range_reward"),
        ("return {}", "empty_reward"),
        ("return {'a': 1, 'b': 0}", "ambiguous_reward"),
        ("return int('x')", "verifier_exit"),
        ("raise SystemExit(0)", "verifier_exit"),
        ("import os; os._exit(0)", "verifier_exit"),
        ("import os; os.kill(os.getpid(), 9)", "verifier_exit"),
        ("return bytearray(4 << 30) and 1", "verifier_exit"),
    ],
)
async def test_everything_else_is_an_error_and_never_a_zero(tmp_path: Path, source: str, code: str) -> None:
    verdict = await judged(tmp_path, source)
    assert (verdict.status, verdict.code, verdict.reward) == ("error", code, None)


async def test_what_the_verifier_raised_is_the_evidence(tmp_path: Path) -> None:
    verdict = await judged(tmp_path, "print('checking'); raise ValueError('odd answer')")
    assert "odd answer" in verdict.evidence.message
    assert verdict.evidence.stdout_tail == "checking\n"


@pytest.mark.parametrize("source", ["while True: pass", "import time; time.sleep(60)"])
async def test_an_endless_verifier_is_killed_at_its_budget(tmp_path: Path, source: str) -> None:
    assert (await judged(tmp_path, source, verify_s=0.3)).status == "timeout"


async def test_endless_printing_leaves_a_bounded_tail(tmp_path: Path) -> None:
    source = "while True:\n        print('a' * 999)"
    verdict = await judged(tmp_path, source, verify_s=2)
    assert verdict.status == "timeout"
    assert 0 < len(verdict.evidence.stdout_tail) <= 8 << 10


async def test_processes_that_it_leaves_behind_do_not_delay_the_verdict(tmp_path: Path) -> None:
    source = "import os, time\n    if os.fork() == 0:\n        time.sleep(60)\n    return 1"
    verdict = await judged(tmp_path, source, verify_s=30)
    assert verdict.reward == 1.0


async def test_a_run_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    source = "SEEN = []\ndef judge(answer):\n    SEEN.append(answer)\n    return float(len(SEEN) == 1)\n"
    task = text_task(tmp_path, source=source)
    verdicts = [await verify(task, EndState(answer=b"5"), None) for _ in range(3)]
    assert [verdict.reward for verdict in verdicts] == [1.0, 1.0, 1.0]


async def test_many_at_once_each_get_their_own_verdict(tmp_path: Path) -> None:
    task = text_task(tmp_path, source="def judge(answer):\n    return float(answer) / 100\n")
    states = [EndState(answer=str(number).encode()) for number in range(40)]
    verdicts = await asyncio.gather(*(verify(task, state, None) for state in states))
    assert [verdict.reward for verdict in verdicts] == [number / 100 for number in range(40)]


async def test_params_are_given_by_keyword_and_do_not_cost_a_process_each(tmp_path: Path) -> None:
    from envsdk.verifying.workers import WORKERS

    before = len(WORKERS._workers)
    for number in range(3):
        task = text_task(tmp_path / str(number), params={"expected": str(number)})
        assert (await verify(task, EndState(answer=str(number).encode()), None)).reward == 1.0
    assert len(WORKERS._workers) <= before + 1


async def test_an_answer_that_was_never_given_is_the_empty_text(tmp_path: Path) -> None:
    assert (await judged(tmp_path, "return answer == ''", None)).reward == 1.0


async def test_bytes_that_are_no_text_reach_the_function_as_replacement_characters(tmp_path: Path) -> None:
    assert (await judged(tmp_path, "return answer == '\\ufffd\\ufffd'", b"\xff\xfe")).reward == 1.0


async def test_a_module_that_cannot_be_imported_is_the_verifiers_error(tmp_path: Path) -> None:
    task = text_task(tmp_path, source="import no_such_module\n")
    verdict = await verify(task, EndState(answer=b"5"), None)
    assert verdict.code == "verifier_exit"
    assert "no_such_module" in verdict.evidence.message


async def test_the_answer_is_read_from_the_box_where_it_was_stored_there(tmp_path: Path) -> None:
    provider = FakeProvider()
    box = await provider.acquire(SandboxSpec(image="fake"))
    await box.write("/app/answer.txt", b"5\n")
    assert (await verify(text_task(tmp_path), EndState(sandbox=box), provider)).reward == 1.0
    await provider.close()


async def test_a_state_verifier_reads_the_declared_files_and_no_others(tmp_path: Path) -> None:
    provider = FakeProvider()
    box = await provider.acquire(SandboxSpec(image="fake"))
    await box.exec("mkdir /app/out; echo hi > /app/out/x; echo no > /app/y; ln -s x /app/out/link")
    source = (
        "def judge(state):\n"
        "    print(state.list('/app/out'))\n"
        "    return state.read('/app/out/link') == b'hi\\n' and not state.exists('/app/y')\n"
    )
    task = text_task(tmp_path, source=source, kind="state", protocol="shell", artifacts=("/app/out",))
    verdict = await verify(task, EndState(sandbox=box), provider)
    assert verdict.reward == 1.0, verdict.evidence
    assert verdict.evidence.stdout_tail == "['link', 'x']\n"
    await provider.close()


async def test_a_file_that_is_too_large_to_read_is_there_and_cannot_be_read(tmp_path: Path) -> None:
    provider = FakeProvider()
    box = await provider.acquire(SandboxSpec(image="fake"))
    await box.exec("head -c 17000000 /dev/zero > /app/big")
    source = "def judge(state):\n    assert state.exists('/app/big')\n    state.read('/app/big')\n"
    task = text_task(tmp_path, source=source, kind="state", protocol="shell", artifacts=("/app/big",))
    verdict = await verify(task, EndState(sandbox=box), provider)
    assert verdict.code == "verifier_exit"
    assert "larger than" in verdict.evidence.message
    await provider.close()


@pytest.mark.skipif(isolation() != "bubblewrap", reason="no bubblewrap here")
async def test_in_its_box_it_sees_neither_the_network_nor_files_of_the_machine(tmp_path: Path) -> None:
    secret = tmp_path / "other-episode.txt"
    secret.write_text("x")
    source = "\n    ".join(
        [
            "import os, socket",
            "names = [name for _, name in socket.if_nameindex()]",
            f"return names == ['lo'] and not os.path.exists({str(secret)!r})",
        ]
    )
    verdict = await judged(tmp_path / "task", source)
    assert verdict.reward == 1.0, verdict.evidence
    assert "bubblewrap" in verdict.evidence.message


AUTHORED = """
import sys

from envsdk import ContainerSpec, verifier

{head}


@verifier
def judge(answer: str) -> float:
    loaded = [name for name in sys.modules if name.startswith("pydantic")]
    return {{"reward": float(answer == "5"), "small": not loaded}}
"""


@pytest.mark.parametrize(
    ("head", "small"),
    [("BOX = ContainerSpec(workdir='/app')", 1.0), ("PLACE = ContainerSpec(workdir='/app').workdir + '/x'", 0.0)],
    ids=["declares", "computes with what is declared"],
)
async def test_a_task_that_was_written_out_meets_the_installed_package_only_where_it_needs_it(
    tmp_path: Path, head: str, small: float
) -> None:
    task = text_task(tmp_path, source=AUTHORED.format(head=head))
    (tmp_path / "tests/run_verifier.py").write_text("")
    verdict = await verify(task, EndState(answer=b"5"), None)
    assert verdict.rewards == {"reward": 1.0, "small": small}


async def test_a_run_finds_an_empty_folder_of_its_own_that_nobody_can_guess_and_that_is_gone_afterwards(
    tmp_path: Path,
) -> None:
    source = (
        "import os; names = os.listdir('.'); open('left', 'w').close(); raise SystemExit(repr((os.getcwd(), names)))"
    )
    said = []
    for _ in range(2):
        verdict = await judged(tmp_path, source)
        said.append(verdict.evidence.message)
        assert "/verify-" in verdict.evidence.message
        assert ", [])" in verdict.evidence.message
    assert said[0] != said[1]
    again = await judged(tmp_path, "import os; return len(os.listdir('.'))")
    assert again.reward == 0.0
