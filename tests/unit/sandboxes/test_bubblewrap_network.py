"""What a services' network says before and without a sandbox: names, addresses, and what it lacks."""

import asyncio
import shutil
import signal
import subprocess
from typing import Any

import pytest

from envsdk.errors import PrerequisiteError, SandboxError
from envsdk.sandboxes import bubblewrap_network
from envsdk.sandboxes.bubblewrap_network import Network, joined_user, open_network


def network(*names: str) -> Network:
    unused: Any = None
    return Network(names, unused, "/proc/7/ns/net")


def test_every_name_has_an_address_of_its_own() -> None:
    lines = network("web", "api").hosts_text().splitlines()
    assert lines[:2] == ["127.0.0.1 localhost", "::1 localhost"]
    assert [line.split()[1] for line in lines[2:]] == ["web", "api"]
    assert len({line.split()[0] for line in lines}) == 4


def test_a_network_is_joined_through_the_user_namespace_beside_it() -> None:
    assert joined_user("/proc/7/ns/net") == "/proc/7/ns/user"


async def test_cables_and_addresses_are_never_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(
        bubblewrap_network, "_configure", lambda _network, commands, user="": said.extend(commands.splitlines())
    )
    joined = network("web")
    await joined.plug_in(11, "web")
    for pid in (12, 13):
        await joined.plug_in(pid, "")
    cables = [line.split()[2] for line in said if line.startswith("link add")]
    addresses = [line.split()[2] for line in said if line.startswith("addr add")]
    assert len(set(cables)) == len(set(addresses)) == 3
    assert addresses[0].partition("/")[0] in joined.hosts_text()


async def test_a_network_without_an_address_left_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap_network, "_configure", lambda *_args, **_options: None)
    joined = network()
    for pid in range(155):
        await joined.plug_in(pid, "")
    with pytest.raises(SandboxError, match="no address left") as caught:
        await joined.plug_in(999, "")
    assert caught.value.code == "network_failed"


async def test_a_machine_without_ip_is_told_what_to_install_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[object] = []
    monkeypatch.setattr(shutil, "which", lambda *_args, **_options: None)
    monkeypatch.setattr(subprocess, "Popen", lambda *args, **_options: started.append(args))
    with pytest.raises(PrerequisiteError) as caught:
        await open_network(["web"])
    assert caught.value.code == "services_unsupported"
    assert "iproute2" in caught.value.hint
    assert started == []


@pytest.mark.bubblewrap
@pytest.mark.parametrize("error", [asyncio.CancelledError(), SandboxError("no bridge", code="network_failed")])
async def test_a_network_that_is_given_up_half_way_leaves_no_holder(
    monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    holders: list[subprocess.Popen[bytes]] = []

    class Followed(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            holders.append(self)

    def given_up(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(subprocess, "Popen", Followed)
    monkeypatch.setattr(bubblewrap_network, "_configure", given_up)
    with pytest.raises(type(error)):
        await open_network(["web"])
    (holder,) = holders
    assert holder.returncode == -signal.SIGKILL
    assert [pipe is not None and pipe.closed for pipe in (holder.stdin, holder.stdout)] == [True, True]
