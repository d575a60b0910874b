"""Verifying an end state, on a sandbox without isolation: what is carried, cleared, run and read."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.errors import SandboxError, VerifierError
from envsdk.sandboxes.base import Limits, Sandbox, SandboxSpec
from envsdk.spec.model import Budget, ContainerSpec
from envsdk.verifying.verdict import EndState
from envsdk.verifying.verify import verify
from tests.fakes.sandbox import FakeProvider, FakeSandbox, Faults
from tests.fakes.tasks import script_task

BOX = SandboxSpec(image="fake:latest")


async def left_by(provider: FakeProvider, command: str) -> Sandbox:
    box = await provider.acquire(BOX)
    await box.exec(command)
    return box


async def test_declared_artifacts_reach_a_fresh_box(tmp_path: Path) -> None:
    provider = FakeProvider()
    box = await left_by(provider, "echo 42 > /app/total.txt")
    verdict = await verify(script_task(tmp_path), EndState(sandbox=box), provider)
    assert (verdict.status, verdict.reward) == ("scored", 1.0)
    verifier_box = provider.handed_out[1]
    assert verifier_box.closed
    assert not box.closed  # type: ignore[attr-defined]
    await provider.close()


@pytest.mark.parametrize(("left_mib", "limit_mib"), [(0, 40), (19, 40), (60, 100)])
async def test_a_verifiers_disk_limit_is_its_own_beside_what_is_carried_in(
    tmp_path: Path, left_mib: int, limit_mib: int
) -> None:
    provider = FakeProvider()
    box = await left_by(provider, f"echo 42 > /app/total.txt; truncate -s {left_mib}M /app/filling")
    task = script_task(tmp_path, artifacts=("/app",))
    container = ContainerSpec(image="fake:latest", limits=Limits(disk_mib=40))
    task = task.model_copy(update={"spec": task.spec.model_copy(update={"container": container})})
    assert (await verify(task, EndState(sandbox=box), provider)).reward == 1.0
    assert provider.handed_out[1].spec.limits.disk_mib == limit_mib
    await provider.close()


async def test_nothing_else_reaches_it(tmp_path: Path) -> None:
    provider = FakeProvider()
    box = await left_by(provider, "echo 42 > /app/total.txt; echo x > /app/other.txt")
    task = script_task(
        tmp_path,
        test="#!/bin/sh\nls /app > /logs/verifier/listing\necho 0 > /logs/verifier/reward.txt\ncat /logs/verifier/listing\n",
    )
    verdict = await verify(task, EndState(sandbox=box), provider)
    assert verdict.evidence.stdout_tail.split() == ["total.txt"]
    await provider.close()


async def test_a_file_that_the_agent_deleted_is_missing_in_the_fresh_box(tmp_path: Path) -> None:
    def image(box: FakeSandbox) -> None:
        (box.root / "app/total.txt").write_text("42")

    provider = FakeProvider(image=image)
    box = await left_by(provider, "rm /app/total.txt")
    verdict = await verify(script_task(tmp_path), EndState(sandbox=box), provider)
    assert verdict.reward == 0.0
    await provider.close()


async def test_a_folder_artifact_replaces_what_the_image_has_there(tmp_path: Path) -> None:
    def image(box: FakeSandbox) -> None:
        (box.root / "app/old.txt").write_text("old")
        (box.root / "app/total.txt").write_text("1")

    provider = FakeProvider(image=image)
    box = await left_by(provider, "rm /app/old.txt; echo 42 > /app/total.txt; touch /app/.hidden")
    test = "#!/bin/sh\nls -A /app\ntest ! -e /app/old.txt && echo 1 > /logs/verifier/reward.txt\n"
    task = script_task(tmp_path, test=test, artifacts=("/app",))
    verdict = await verify(task, EndState(sandbox=box), provider)
    assert verdict.reward == 1.0
    assert verdict.evidence.stdout_tail.split() == [".hidden", "total.txt"]
    await provider.close()


async def test_an_answer_that_is_a_link_to_the_expected_file_is_not_carried(tmp_path: Path) -> None:
    provider = FakeProvider()
    box = await left_by(provider, "ln -s /tests/expected.txt /app/total.txt")
    task = script_task(
        tmp_path,
        test="#!/bin/sh\necho 42 > /tests/expected.txt\ncmp -s /app/total.txt /tests/expected.txt && r=1 || r=0\necho $r > /logs/verifier/reward.txt\n",
    )
    assert (await verify(task, EndState(sandbox=box), provider)).reward == 0.0
    await provider.close()


async def test_a_planted_reward_is_gone_before_the_verifier_starts(tmp_path: Path) -> None:
    provider = FakeProvider()
    box = await left_by(provider, "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt")
    task = script_task(tmp_path, test="#!/bin/sh\nexit 0\n", mode="shared")
    verdict = await verify(task, EndState(sandbox=box), provider)
    assert (verdict.status, verdict.code) == ("error", "missing_reward")
    await provider.close()


async def test_a_planted_link_in_place_of_the_results_folder_is_not_entered(tmp_path: Path) -> None:
    provider = FakeProvider()
    box = await left_by(
        provider,
        "mkdir /app/mine; echo 1 > /app/mine/reward.txt; rm -rf /logs/verifier; ln -s /app/mine /logs/verifier",
    )
    task = script_task(tmp_path, test="#!/bin/sh\nexit 0\n", mode="shared")
    verdict = await verify(task, EndState(sandbox=box), provider)
    assert verdict.code == "missing_reward"
    assert (await box.read("/app/mine/reward.txt")) == b"1\n"
    await provider.close()


async def test_tests_planted_by_the_agent_are_replaced(tmp_path: Path) -> None:
    provider = FakeProvider()
    box = await left_by(provider, "mkdir -p /tests; echo '#!/bin/sh' > /tests/helper.py")
    task = script_task(
        tmp_path, test="#!/bin/sh\ntest ! -e /tests/helper.py && echo 1 > /logs/verifier/reward.txt\n", mode="shared"
    )
    assert (await verify(task, EndState(sandbox=box), provider)).reward == 1.0
    await provider.close()


async def test_left_over_processes_are_gone_in_a_shared_box(tmp_path: Path) -> None:
    provider = FakeProvider()
    box = await left_by(
        provider, "(while :; do echo 1 > /logs/verifier/reward.txt; sleep 0.01; done) >/dev/null 2>&1 &"
    )
    task = script_task(tmp_path, test="#!/bin/sh\nsleep 0.1\n", mode="shared")
    assert (await verify(task, EndState(sandbox=box), provider)).code == "missing_reward"
    await provider.close()


async def test_the_hook_runs_after_the_clearing_and_before_the_script(tmp_path: Path) -> None:
    provider = FakeProvider()

    async def plant(box: Sandbox) -> None:
        await box.write("/logs/verifier/reward.txt", b"1")

    verdict = await verify(script_task(tmp_path, test="#!/bin/sh\nexit 0\n"), EndState(), provider, before_start=plant)
    assert verdict.reward == 1.0
    await provider.close()


async def test_the_script_is_started_by_its_path_in_the_work_directory_with_its_environment(tmp_path: Path) -> None:
    provider = FakeProvider()
    task = script_task(
        tmp_path, test="#!/bin/sh\necho $0 $(pwd) $A $B\necho 0 > /logs/verifier/reward.txt\n", env={"A": "1", "B": "1"}
    )
    verdict = await verify(task, EndState(), provider, env={"B": "2"})
    assert verdict.evidence.stdout_tail.split() == ["/tests/test.sh", "/app", "1", "2"]
    await provider.close()


async def test_a_script_without_run_bit_is_made_executable(tmp_path: Path) -> None:
    provider = FakeProvider()
    task = script_task(tmp_path)
    (tmp_path / "tests/test.sh").chmod(0o644)
    assert (await verify(task, EndState(), provider)).status == "scored"
    await provider.close()


async def test_a_verifier_that_never_ends_is_stopped_at_its_budget(tmp_path: Path) -> None:
    provider = FakeProvider()
    task = script_task(tmp_path, test="#!/bin/sh\nsleep 60\n", budget=Budget(verify_s=0.2))
    verdict = await verify(task, EndState(), provider)
    assert (verdict.status, verdict.code, verdict.reward) == ("timeout", "verifier_timeout", None)
    assert provider.open_count == 0


async def test_a_verifier_that_prints_forever_leaves_a_bounded_tail(tmp_path: Path) -> None:
    provider = FakeProvider()
    task = script_task(
        tmp_path, test="#!/bin/sh\nwhile :; do echo aaaaaaaaaaaaaaaa; done\n", budget=Budget(verify_s=0.3)
    )
    verdict = await verify(task, EndState(), provider)
    assert verdict.status == "timeout"
    assert len(verdict.evidence.stdout_tail) <= 17 << 10


async def test_native_mode_refuses_a_reward_beside_a_bad_exit_and_harbor_takes_it(tmp_path: Path) -> None:
    provider = FakeProvider()
    test = "#!/bin/sh\necho 1 > /logs/verifier/reward.txt\nexit 3\n"
    harbor = await verify(script_task(tmp_path / "a", test=test), EndState(), provider)
    native = await verify(script_task(tmp_path / "b", test=test, exit_status="native"), EndState(), provider)
    assert (harbor.reward, native.reward, native.code) == (1.0, None, "verifier_exit")
    assert native.facts["exit_code"] == 3


@pytest.mark.parametrize(
    ("write", "code"),
    [
        ("ln -s /app/one /logs/verifier/reward.txt", "malformed_reward"),
        ("mkfifo /logs/verifier/reward.txt", "malformed_reward"),
        ("mkdir /logs/verifier/reward.json", "malformed_reward"),
        ("head -c 1048577 /dev/zero > /logs/verifier/reward.json", "oversize_reward"),
        ("touch /logs/verifier/reward.json", "empty_reward"),
        ("echo 1 > /logs/verifier/Reward.txt", "missing_reward"),
    ],
)
async def test_what_lies_in_the_sandbox_is_read_by_the_same_contract(tmp_path: Path, write: str, code: str) -> None:
    provider = FakeProvider()
    task = script_task(tmp_path, test=f"#!/bin/sh\necho 1 > /app/one\n{write}\n")
    assert (await verify(task, EndState(), provider)).code == code


async def test_evidence_shows_the_reward_file_and_the_error(tmp_path: Path) -> None:
    task = script_task(tmp_path, test="#!/bin/sh\necho failing >&2\necho high > /logs/verifier/reward.txt\n")
    evidence = (await verify(task, EndState(), FakeProvider())).evidence
    assert "high" in evidence.reward_file
    assert evidence.error_code == "malformed_reward"
    assert "failing" in evidence.stdout_tail


async def test_an_answer_that_was_never_in_a_box_becomes_the_first_artifact(tmp_path: Path) -> None:
    task = script_task(tmp_path, protocol="answer")
    assert (await verify(task, EndState(answer=b"42\n"), FakeProvider())).reward == 1.0


async def test_a_box_that_cannot_be_started_is_a_verdict_not_an_exception(tmp_path: Path) -> None:
    provider = FakeProvider(faults=Faults(acquire=[SandboxError("pool exhausted")]))
    verdict = await verify(script_task(tmp_path), EndState(), provider)
    assert (verdict.status, verdict.code) == ("error", "upload_failed")
    assert "pool exhausted" in verdict.evidence.message


async def test_no_provider_is_the_callers_mistake(tmp_path: Path) -> None:
    with pytest.raises(VerifierError) as caught:
        await verify(script_task(tmp_path), EndState(), None)
    assert caught.value.code == "no_provider"


async def test_environment_values_are_taken_from_the_machine_where_the_task_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIVEN", "1")
    test = "#!/bin/sh\necho $A $B\necho 0 > /logs/verifier/reward.txt\n"
    task = script_task(tmp_path, test=test, env={"A": "${GIVEN}", "B": "${ABSENT:-2}"})
    assert (await verify(task, EndState(), FakeProvider())).evidence.stdout_tail.split() == ["1", "2"]


async def test_a_name_that_is_not_set_is_no_word_of_the_verifiers(tmp_path: Path) -> None:
    task = script_task(tmp_path, env={"A": "${NOBODY_SETS_THIS}"})
    provider = FakeProvider()
    verdict = await verify(task, EndState(), provider)
    assert (verdict.status, verdict.code) == ("error", "upload_failed")
    assert "NOBODY_SETS_THIS" in verdict.evidence.message
    assert provider.open_count == 0
