"""Images and services on both back ends: what a Dockerfile makes is the same, whoever builds it."""

import asyncio
import io
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from envsdk.errors import SandboxError
from envsdk.home import BASE_IMAGE
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import SandboxProvider, SandboxSpec
from envsdk.sandboxes.services import start_services
from envsdk.spec.model import Budget, Digests, HealthCheck, ServiceSpec, Task, TaskSpec
from tests.fakes.back_ends import BACK_ENDS

pytestmark = pytest.mark.asyncio(loop_scope="module")
DOCKERFILE = r"""
ARG BASE=python:3.12-slim
FROM ${BASE}
ENV GREETING=hello \
    WORDS="a b"
WORKDIR /srv/inner
COPY --chown=1234:1234 src/ ./src/
COPY one.txt two.txt ../
COPY *.md docs/
COPY one.txt renamed
ADD archive.tar unpacked/
RUN echo "$GREETING $WORDS" > greeting && \
    # a comment between
    id -u > who && mkdir -p shared
USER 1234
RUN id -u > /tmp/later
USER root
EXPOSE 80
CMD ["python3", "-V"]
"""
LISTING = "cd /srv && find . -printf '%y %m %U:%G %p %l\\n' | sort; cat inner/greeting inner/who /tmp/later inner/docs/*; echo $GREETING"
EXPECTED = """\
d 755 0:0 . \n\
d 755 0:0 ./inner \n\
d 755 0:0 ./inner/docs \n\
d 755 0:0 ./inner/shared \n\
d 755 1234:1234 ./inner/src \n\
f 644 0:0 ./inner/docs/b.md \n\
f 644 0:0 ./inner/greeting \n\
f 644 0:0 ./inner/renamed \n\
f 644 0:0 ./inner/unpacked/packed \n\
f 644 0:0 ./inner/who \n\
f 644 0:0 ./one.txt \n\
f 644 0:0 ./two.txt \n\
f 755 1234:1234 ./inner/src/run.sh \n\
l 777 1234:1234 ./inner/src/link run.sh
hello a b
0
1234
bee
hello
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=BACK_ENDS)
async def provider(request: pytest.FixtureRequest) -> AsyncIterator[SandboxProvider]:
    opened = open_provider(request.param)
    yield opened
    await opened.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "src" / "run.sh").chmod(0o755)
    (tmp_path / "src" / "link").symlink_to("run.sh")
    (tmp_path / "src" / "skipped.pyc").write_text("x")
    for name, text in {"one.txt": "1", "two.txt": "2", "b.md": "bee\n", ".dockerignore": "**/*.pyc\n"}.items():
        (tmp_path / name).write_text(text)
    with tarfile.open(tmp_path / "archive.tar", "w") as archive:
        info = tarfile.TarInfo("packed")
        info.size, info.mode = 1, 0o644
        archive.addfile(info, io.BytesIO(b"p"))
    return tmp_path


async def test_a_dockerfile_makes_the_same_files_whoever_builds_it(provider: SandboxProvider, folder: Path) -> None:
    image = await provider.ensure_image(folder, None)
    box = await provider.acquire(SandboxSpec(image=image, user="root", workdir="/"))
    seen = (await box.exec(LISTING)).stdout.decode()
    await box.close()
    assert [line for line in seen.splitlines() if "./inner/unpacked " not in line] == EXPECTED.splitlines()


HERE = r"""
FROM python:3.12-slim
ENV NAME=you
RUN cat > /srv/quoted <<'END' && \
    echo and > /srv/after
$NAME "stays"
END
RUN <<END
set -e
echo "$NAME ran" > /srv/ran
END
COPY --chown=1234:1234 <<one.txt <<'two.sh' /srv/made/
hello $NAME
one.txt
$NAME
two.sh
RUN printf '%s-%s' \
    joined \
    words > /srv/joined
"""


async def test_here_documents_make_the_same_files_whoever_builds_them(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    (tmp_path / "Dockerfile").write_text(HERE)
    image = await provider.ensure_image(tmp_path, None)
    box = await provider.acquire(SandboxSpec(image=image, user="root", workdir="/srv"))
    seen = (
        await box.exec("cat quoted after ran made/one.txt made/two.sh joined; stat -c ' %u %a' made/*")
    ).stdout.decode()
    await box.close()
    assert seen == '$NAME "stays"\nand\nyou ran\nhello you\n$NAME\njoined-words 1234 644\n 1234 644\n'


MODES = """
FROM python:3.12-slim
COPY . /srv/all/
COPY --link --chmod=750 one.txt /srv/made/program
COPY --chmod=0604 --chown=1234:1234 <<made.txt /srv/made/
hello
made.txt
"""


async def test_modes_of_copies_are_the_same_whoever_builds_them_and_nothing_else_is_copied(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    for name, text in (("Dockerfile", MODES), ("one.txt", "1")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o644)
    image = await provider.ensure_image(tmp_path, None)
    box = await provider.acquire(SandboxSpec(image=image, user="root", workdir="/srv"))
    seen = (await box.exec("find . -type f -printf '%m %U:%G %p\\n' | sort -k3")).stdout.decode()
    await box.close()
    assert seen.splitlines() == [
        "644 0:0 ./all/Dockerfile",
        "644 0:0 ./all/one.txt",
        "604 1234:1234 ./made/made.txt",
        "750 0:0 ./made/program",
    ]


async def test_what_only_buildkit_does_is_refused_before_anything_is_built(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    (tmp_path / "Dockerfile").write_text("FROM python:3.12-slim\nRUN --mount=type=cache,target=/x touch /x/y\n")
    with pytest.raises(SandboxError) as caught:
        await provider.ensure_image(tmp_path, None)
    assert caught.value.code == "needs_buildkit"
    assert "line 2" in caught.value.message


async def test_what_stood_in_for_the_base_is_told(provider: SandboxProvider, folder: Path) -> None:
    image = await provider.ensure_image(folder, None)
    told = provider.describe(image)  # type: ignore[attr-defined]
    assert told["provider"] == provider.name
    assert "disk_limit" in told
    assert any("bookworm" in value for value in told.values())
    assert any(value.startswith(("sha256:", "bubblewrap:")) for value in told.values())


async def test_an_edit_makes_another_image_and_undoing_it_the_first_again(
    provider: SandboxProvider, folder: Path
) -> None:
    first = await provider.ensure_image(folder, None)
    (folder / "one.txt").write_text("changed")
    second = await provider.ensure_image(folder, None)
    (folder / "one.txt").write_text("1")
    assert second != first
    assert await provider.ensure_image(folder, None) == first


async def test_a_missing_source_is_the_builds_failure(provider: SandboxProvider, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {BASE_IMAGE}\nCOPY nothing.txt /\n")
    with pytest.raises(SandboxError) as caught:
        await provider.ensure_image(tmp_path, None)
    assert caught.value.code == "build_failed"
    assert "nothing.txt" in caught.value.message


def task(*services: ServiceSpec) -> Task:
    spec = TaskSpec(slug="served", instruction="x", services=services, budget=Budget(setup_s=30))
    return Task(spec=spec, digests=Digests(task="", verifier="", package=""), root=Path("/nowhere"))


FETCH = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=5).read().decode().strip())"
WEB = ServiceSpec(
    name="web",
    image=BASE_IMAGE,
    command="cd /srv; echo from $PLACE > index.html; echo started; exec python3 -m http.server 8000",
    env={"PLACE": "web"},
    healthcheck=HealthCheck(command="python3 -c \"import urllib.request as u; u.urlopen('http://127.0.0.1:8000')\""),
)
API = ServiceSpec(
    name="api", image=BASE_IMAGE, command="cd /srv; echo api > index.html; exec python3 -m http.server 8001", port=8001
)


async def test_services_are_healthy_reached_by_name_and_logged(provider: SandboxProvider) -> None:
    image = await provider.ensure_image(None, BASE_IMAGE)
    async with start_services(task(WEB, API), provider) as group:
        box = await provider.acquire(SandboxSpec(image=image, network="internal", join=group.network))
        for address, text in (("http://web:8000", b"from web\n"), ("http://api:8001", b"api\n")):
            assert (await box.exec(["python3", "-c", FETCH, address])).stdout == text
        files = await box.exec("ls /srv")
        await box.close()
    assert files.stdout == b""  # the agent does not see a service's files
    assert group.logs()["web"].startswith(b"started\n")
    assert b"GET / " in group.logs()["web"]


async def test_services_may_use_the_same_port_and_do_not_share_a_loopback(provider: SandboxProvider) -> None:
    image = await provider.ensure_image(None, BASE_IMAGE)
    twin = WEB.model_copy(update={"name": "twin", "env": {"PLACE": "twin"}})
    async with start_services(task(WEB, twin), provider) as group:
        boxes = [
            await provider.acquire(SandboxSpec(image=image, network="internal", join=group.network)) for _ in range(2)
        ]
        for box in boxes:
            for name in ("web", "twin"):
                said = await box.exec(["python3", "-c", FETCH, f"http://{name}:8000"])
                assert said.stdout == f"from {name}\n".encode()
            assert not (await box.exec(["python3", "-c", FETCH, "http://127.0.0.1:8000"])).ok
        routes = await boxes[0].exec("grep -c 00000000.*0003 /proc/net/route")
        assert routes.stdout == (b"0\n" if provider.name == "bubblewrap" else routes.stdout)
        between = await group.sandbox("web").exec(["python3", "-c", FETCH, "http://twin:8000"])
        assert between.stdout == b"from twin\n"
        await asyncio.gather(*(box.close() for box in boxes))


async def test_a_sandbox_off_the_network_reaches_no_service(provider: SandboxProvider) -> None:
    image = await provider.ensure_image(None, BASE_IMAGE)
    async with start_services(task(WEB), provider):
        box = await provider.acquire(SandboxSpec(image=image))
        result = await box.exec(["python3", "-c", FETCH, "http://web:8000"], timeout_s=20)
        await box.close()
    assert result.exit_code == 1


async def test_each_group_of_services_is_fresh(provider: SandboxProvider) -> None:
    writes = "test ! -e /srv/used || exit 9; touch /srv/used; exec sleep 100"
    service = ServiceSpec(
        name="db", image=BASE_IMAGE, command=writes, healthcheck=HealthCheck(command="test -e /srv/used")
    )
    for _ in range(2):
        async with start_services(task(service), provider) as group:
            assert (await group.sandbox("db").exec("test -e /srv/used")).ok


async def test_a_service_that_never_gets_healthy_is_given_up(provider: SandboxProvider) -> None:
    check = HealthCheck(command="exit 1", interval_s=0.05, retries=3)
    sick = ServiceSpec(name="sick", image=BASE_IMAGE, command="echo alive; exec sleep 100", healthcheck=check)
    with pytest.raises(SandboxError, match="alive") as caught:
        async with start_services(task(sick), provider):
            pytest.fail("it was taken for healthy")
    assert caught.value.code == "service_unhealthy"


async def test_a_task_without_services_has_no_network(provider: SandboxProvider) -> None:
    async with start_services(task(), provider) as group:
        assert group.network == ""
        assert group.logs() == {}
