"""What checks see and do inside real boxes: the image's own files, what a verifier asks, where an agent may write."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from envsdk.checks.attacks.ground import survey
from envsdk.checks.attacks.reading import readable_tests
from envsdk.checks.engine import check_task
from envsdk.checks.git_future import future_commits
from envsdk.checks.image_files import image_view
from envsdk.checks.mutation.behaviour import calls, same_behaviour
from envsdk.checks.mutation.recording import record
from envsdk.checks.stage import Stage
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxProvider
from envsdk.spec.load import load_task
from envsdk.spec.model import Task

pytestmark = pytest.mark.bubblewrap

TOML = """schema_version = "1.4"
artifacts = [{artifacts}]

[task]
name = "cases/mini"

[agent]
timeout_sec = 30.0
user = "agent"

[verifier]
timeout_sec = 30.0
user = "root"
environment_mode = "{mode}"

[environment]
cpus = 1
memory_mb = 256
network_mode = "no-network"
"""
DOCKERFILE = """ARG BASE=python:3.12-slim
FROM ${{BASE}}
RUN useradd --create-home agent && mkdir /app
WORKDIR /app
{lines}
RUN chown -R agent:agent /app
"""
SCORE = "if [ $? -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"


@pytest.fixture
async def provider(tmp_path: Path) -> AsyncIterator[SandboxProvider]:
    opened = open_provider("bubblewrap")
    yield opened
    await opened.close()


def mini(
    folder: Path,
    *,
    solve: str,
    test: str,
    artifacts: str,
    lines: str = "",
    mode: str = "shared",
    instruction: str = "Do it.",
) -> Task:
    files = {
        "task.toml": TOML.format(artifacts=", ".join(f'"{path}"' for path in artifacts.split()), mode=mode),
        "instruction.md": instruction,
        "environment/Dockerfile": DOCKERFILE.format(lines=lines),
        "solution/solve.sh": f"#!/bin/sh\nset -eu\n{solve}\n",
        "tests/test.sh": f"#!/bin/sh\nmkdir -p /logs/verifier\n{test}",
    }
    for name, text in files.items():
        place = folder / "mini" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        place.chmod(0o755 if name.endswith(".sh") else 0o644)
    return load_task(folder / "mini")


async def test_an_agent_finds_what_the_dockerfile_brought_and_not_the_distribution(
    tmp_path: Path, provider: SandboxProvider
) -> None:
    lines = "RUN mkdir -p /usr/share/quiz && echo 1366 > /usr/share/quiz/key.txt && echo secret > /root/hidden\nENV NOTE=hello"
    task = mini(tmp_path, solve="true", test="true\n", artifacts="/app/x", lines=lines)
    async with Stage(task, provider) as stage:
        view = await image_view(stage)
    assert view.files["/usr/share/quiz/key.txt"] == "1366\n"
    assert "/root/hidden" not in view.files
    assert not any(path.startswith(("/usr/bin/", "/usr/lib/python3", "/etc/passwd")) for path in view.files)
    assert view.environment["NOTE"] == "hello"
    assert view.repositories == ()


async def test_commits_beyond_the_checked_out_one_are_found(tmp_path: Path, provider: SandboxProvider) -> None:
    if shutil.which("git") is None:
        pytest.fail("git is not installed: make setup")
    repository = tmp_path / "mini" / "environment" / "repo"
    repository.mkdir(parents=True)

    def git(*words: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *identity, "-C", str(repository), *words], check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "base")
    git("branch", "later")
    git("checkout", "-q", "later")
    git("commit", "-q", "--allow-empty", "-m", "the fix")
    git("checkout", "-q", "main")
    task = mini(tmp_path, solve="true", test="true\n", artifacts="/app/x", lines="COPY repo/ /app/repo/")
    async with Stage(task, provider) as stage:
        view = await image_view(stage)
        found = await future_commits(stage, view.repositories)
    assert list(found) == ["/app/repo/.git"]
    assert "the fix" in found["/app/repo/.git"][0]


PYTHON = "cat > /app/sq.py <<'EOF'\nimport sys\nprint(int(sys.argv[1]) ** 2)\nEOF"
MODULE = "cat > /app/low.py <<'EOF'\ndef low(text):\n    return text.lower()\nEOF"
SHELL = "echo 'read x; echo \"$1-$x\"' > /app/join.sh"


async def test_what_a_verifier_asks_of_programs_and_functions_is_recorded(
    tmp_path: Path, provider: SandboxProvider
) -> None:
    test = """python3 -I /app/sq.py 3 && python3 -I /app/sq.py 4
echo in | sh /app/join.sh 'a b'
python3 -I -c 'import sys; sys.path.insert(0, "/app"); import low; assert low.low("Ab") == "ab"'
"""
    solve = f"{PYTHON}\n{MODULE}\n{SHELL}"
    task = mini(tmp_path, solve=solve, test=test + SCORE, artifacts="/app/sq.py /app/low.py /app/join.sh")
    async with Stage(task, provider) as stage:
        run = await stage.passing_oracle()
        assert run is not None
        asked = await record(stage, run.outputs)
        seen = [(a.path, a.function, a.arguments, a.answer) for a in asked]
        assert seen == [
            ("/app/sq.py", "", ("3",), "9\n"),
            ("/app/sq.py", "", ("4",), "16\n"),
            ("/app/join.sh", "", ("a b",), "a b-in\n"),
            ("/app/low.py", "low", ("Ab",), "ab"),
        ]
        commands = calls("/app/sq.py", "python", asked[:2])
        same = run.outputs["/app/sq.py"].replace(b"** 2", b"* int(sys.argv[1])")
        other = run.outputs["/app/sq.py"].replace(b"** 2", b"* 3")
        assert await same_behaviour(stage, {"/app/sq.py": same}, commands)
        assert not await same_behaviour(stage, {"/app/sq.py": other}, commands)


TOOLS = """printf '{ print v $1 }\\n' > /app/v.awk
printf 's/a/b/\\n' > /app/b.sed
printf '#!/usr/bin/perl\\nprint "$ARGV[0]\\\\n";\\n' > /app/p.pl
chmod 755 /app/p.pl
"""


async def test_what_a_verifier_asks_of_awk_sed_and_perl_is_recorded_and_asked_again(
    tmp_path: Path, provider: SandboxProvider
) -> None:
    test = """awk '{ print }' /app/v.awk; sed -n 1p /app/b.sed
echo 5 | awk -v v=n -f /app/v.awk
cd /app && printf 'a\\naa\\n' | sed -nf b.sed -e p
./p.pl 'x y' < /dev/null
"""
    task = mini(tmp_path, solve=TOOLS, test=test + SCORE, artifacts="/app/v.awk /app/b.sed /app/p.pl")
    async with Stage(task, provider) as stage:
        run = await stage.passing_oracle()
        assert run is not None
        asked = await record(stage, run.outputs)
        assert [(a.path, a.command[1:-1], a.arguments, a.given, a.answer) for a in asked] == [
            ("/app/v.awk", ("-v", "v=n", "-f"), (), b"5\n", "n5\n"),
            ("/app/b.sed", ("-nf",), ("-e", "p"), b"a\naa\n", "b\nba\n"),
            ("/app/p.pl", (), ("x y",), b"", "x y\n"),
        ]
        commands = calls("/app/v.awk", "awk", asked[:1])
        assert not await same_behaviour(stage, {"/app/v.awk": b'BEGIN { print "n5" }'}, commands)
        assert await same_behaviour(stage, {"/app/v.awk": b"{ $0 = v $1; print }"}, commands)


async def test_the_ground_knows_where_the_agent_may_write(tmp_path: Path, provider: SandboxProvider) -> None:
    test = "export PATH=/app/bin:$PATH\nsh /app/check.sh && cmp /opt/want /app/x && test -e /app/made\n"
    lines = "RUN mkdir /app/bin && echo true > /app/check.sh && echo 1 > /opt/want"
    task = mini(tmp_path, solve="echo 1 > /app/x; touch /app/made", test=test + SCORE, artifacts="/app/x", lines=lines)
    async with Stage(task, provider) as stage:
        run = await stage.passing_oracle()
        assert run is not None
        ground = await survey(stage, run)
    assert ground.writable == {"/app/check.sh": True, "/app/made": False}
    assert ground.path_folders == ("/app/bin",)
    assert {"/app", "/home/agent"} <= set(ground.folders)
    assert ground.targets == ("/app/x",)


@pytest.mark.parametrize(("close", "readable"), [("", True), ("chmod 700 /tests\n", False)])
async def test_a_program_that_can_read_the_tests_is_noticed(
    tmp_path: Path, provider: SandboxProvider, close: str, readable: bool
) -> None:
    run_it = "runuser -u agent -- python3 -I /app/sq.py 3 | grep -qx 9\n"
    task = mini(tmp_path, solve=PYTHON, test=close + run_it + SCORE, artifacts="/app/sq.py")
    async with Stage(task, provider) as stage:
        run = await stage.passing_oracle()
        assert run is not None
        assert await readable_tests(stage, await survey(stage, run)) is readable


async def test_a_separate_verifier_keeps_what_is_planted_in_the_workspace_out(
    tmp_path: Path, provider: SandboxProvider
) -> None:
    test = "cd /app\npython3 - <<'EOF'\nimport string\nassert open('/app/x').read().strip() == '42'\nEOF\n" + SCORE
    shared = mini(
        tmp_path / "a", solve="echo 42 > /app/x", test=test, artifacts="/app/x", instruction="Write 42 to /app/x."
    )
    apart = mini(
        tmp_path / "b",
        solve="echo 42 > /app/x",
        test=test,
        artifacts="/app/x",
        mode="separate",
        instruction="Write 42 to /app/x.",
    )
    outcomes = []
    for task in (shared, apart):
        report = await check_task(task, provider, checks=["tamper"], fresh=True)
        outcomes.append(report.checks[0].outcome)
    assert outcomes == ["fail", "pass"]


async def test_the_ground_knows_names_without_a_folder_and_module_folders_of_the_image(
    tmp_path: Path, provider: SandboxProvider
) -> None:
    test = "cd /app\nsha256sum -c --quiet x.sha256 && cmp want.csv made.csv\n"
    lines = (
        "RUN echo 1 > /app/x && cd /app && sha256sum x > x.sha256 && echo a > want.csv && rm x\n"
        "ENV PYTHONPATH=/app/lib:/usr/lib/python3"
    )
    task = mini(
        tmp_path, solve="echo 1 > /app/x; echo a > /app/made.csv", test=test + SCORE, artifacts="/app/x", lines=lines
    )
    async with Stage(task, provider) as stage:
        run = await stage.passing_oracle()
        assert run is not None
        ground = await survey(stage, run)
    assert {"/app/x.sha256", "/app/want.csv"} <= set(ground.writable)
    assert "/app/made.csv" not in ground.writable
    assert "/app/lib" in ground.folders
    assert "/usr/lib/python3" not in ground.folders


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("python3 -I -c 'import socket; socket.create_connection((\"192.0.2.7\", 443), 1)' 2>/dev/null", "fail"),
        ("python3 -I -c 'import socket; socket.create_server((\"127.0.0.1\", 0)).close()'", "pass"),
    ],
)
async def test_a_network_that_is_reached_for_is_seen_by_the_kernel(
    tmp_path: Path, provider: SandboxProvider, command: str, outcome: str
) -> None:
    test = f'{command}\n[ "$(cat /app/x 2>/dev/null)" = 1 ]\n'
    task = mini(
        tmp_path, solve="echo 1 > /app/x", test=test + SCORE, artifacts="/app/x", instruction="Write 1 to /app/x."
    )
    report = await check_task(task, provider, checks=["network"], fresh=True)
    assert report.checks[0].outcome == outcome, report.checks[0]


async def test_what_a_handed_in_program_reaches_for_is_not_the_verifiers_doing(
    tmp_path: Path, provider: SandboxProvider
) -> None:
    program = 'import socket\\ntry:\\n    socket.create_connection(("192.0.2.7", 443), 1)\\nexcept OSError:\\n    print("none")\\n'
    test = '[ "$(python3 -I /app/net.py 2>/dev/null)" = none ]\n'
    task = mini(tmp_path, solve=f"printf '{program}' > /app/net.py", test=test + SCORE, artifacts="/app/net.py")
    report = await check_task(task, provider, checks=["oracle", "network"], fresh=True)
    assert [result.outcome for result in report.checks] == ["pass", "pass"], report.checks


async def test_a_wide_limit_on_time_holds_on_a_busy_processor_and_one_that_nobody_meets_is_not_its_fault(
    tmp_path: Path, provider: SandboxProvider
) -> None:
    busy = "python3 -I -c 'import time\nt = time.monotonic()\nwhile time.process_time() < 0.2: pass\nraise SystemExit(time.monotonic() - t > {limit})'"
    outcomes = []
    for limit in ("0.0001", "1000"):
        test = f'{busy.format(limit=limit)} || exit 0\n[ "$(cat /app/x 2>/dev/null)" = 1 ]\n'
        task = mini(
            tmp_path / limit,
            solve="echo 1 > /app/x",
            test=f"echo 0 > /logs/verifier/reward.txt\n{test}{SCORE}",
            artifacts="/app/x",
        )
        report = await check_task(task, provider, checks=["oracle", "load"], fresh=True)
        outcomes.append([result.outcome for result in report.checks])
    assert outcomes[1] == ["pass", "pass"]
    assert outcomes[0][0] == "fail"  # nobody meets such a limit, and then the processor is not to blame
    assert outcomes[0][1] == "skipped"
