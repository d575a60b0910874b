"""Fixtures and markers for ordinary tests, seen from a project that uses them."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

BOX_TASK = """schema_version = "1.4"
artifacts = ["/app/x"]

[task]
name = "mine/boxed"

[environment]
network_mode = "no-network"
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("ENVSDK_HOME", str(pytester.path / "home"))
    monkeypatch.setenv("PYTEST_ADDOPTS", "-o asyncio_default_fixture_loop_scope=function")
    return pytester


def test_a_fake_box_answers_without_a_container(project: pytest.Pytester) -> None:
    project.makepyfile(
        """
        import pytest
        from envsdk.errors import SandboxError


        async def count(sandbox):
            return int((await sandbox.exec("wc -l < /app/x")).stdout)


        def test_files_and_commands(fake_sandbox):
            box = fake_sandbox(files={"/app/x": b"a\\n"}, replies={"wc -l < /app/x": "1\\n"})
            assert box.read("/app/x") == b"a\\n"
            assert box.exec("wc -l < /app/x").stdout == b"1\\n"
            box.write("/app/y", b"b")
            assert box.sandbox.files["/app/y"] == b"b"
            with pytest.raises(SandboxError):
                box.exec("rm -rf /")


        def test_code_that_is_written_for_the_protocol(fake_sandbox):
            import asyncio

            box = fake_sandbox(replies={"wc -l < /app/x": "7\\n"})
            assert asyncio.run(count(box.sandbox)) == 7
            assert box.sandbox.commands == ["wc -l < /app/x"]
        """
    )
    project.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


@pytest.mark.parametrize(("sandbox", "chosen"), [("docker", 0), ("bubblewrap", 1)])
def test_checks_that_may_need_an_engine_are_left_out_by_their_marker(
    project: pytest.Pytester, sandbox: str, chosen: int
) -> None:
    for name, text in {
        "task.toml": BOX_TASK,
        "instruction.md": "Write /app/x.\n",
        "environment/Dockerfile": "FROM python:3.12-slim\n",
        "tests/test.sh": "#!/bin/sh\necho 0 > /logs/verifier/reward.txt\n",
    }.items():
        place = project.path / "boxed" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    result = project.runpytest_inprocess(
        "--collect-only",
        "-q",
        "--strict-markers",
        "--task-checks",
        "noop",
        "--task-sandbox",
        sandbox,
        "-m",
        "task_check and not docker",
    )
    assert len([line for line in result.outlines if "[noop]" in line]) == chosen
