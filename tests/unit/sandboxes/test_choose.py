from importlib.metadata import EntryPoint

import pytest

from envsdk.errors import PrerequisiteError, UsageError
from envsdk.sandboxes import choose


class Works:
    def __init__(self, **options: object) -> None:
        self.name = "works"
        self.options = options

    async def ensure_image(self) -> None: ...
    async def acquire(self) -> None: ...
    async def start_from(self) -> None: ...
    async def prewarm(self) -> None: ...
    async def close(self) -> None: ...


class Refuses:
    def __init__(self, **_options: object) -> None:
        raise PrerequisiteError("no engine answers")


class IsNone: ...


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, type]:
    table: dict[str, type] = {"docker": Works, "bubblewrap": Works, "remote": Works}

    def entries(*, group: str) -> list[EntryPoint]:
        assert group == choose.GROUP
        found = []
        for name, kind in table.items():
            found.append(EntryPoint(name, f"{__name__}:{kind.__name__}", group))
            object.__setattr__(found[-1], "load", lambda kind=kind: kind)
        return found

    monkeypatch.setattr(choose, "entry_points", entries)
    return table


def test_a_name_opens_that_back_end_with_its_options(installed: dict[str, type]) -> None:
    provider = choose.open_provider("remote", url="x")
    assert provider.options == {"url": "x"}  # type: ignore[attr-defined]


def test_an_unknown_name_is_refused_with_those_there_are(installed: dict[str, type]) -> None:
    with pytest.raises(UsageError) as caught:
        choose.open_provider("podman")
    assert caught.value.code == "unknown_sandbox"
    assert "bubblewrap, docker, remote" in caught.value.hint


def test_a_wrong_name_is_refused_where_nothing_is_opened_and_the_near_one_named(installed: dict[str, type]) -> None:
    installed.update(dict.fromkeys(installed, Refuses))  # nothing is opened
    with pytest.raises(UsageError) as caught:
        choose.wanted("dokcer")
    assert caught.value.hint == "did you mean 'docker'?"
    assert choose.wanted("docker") == "docker"


def test_a_wrong_name_of_the_setting_is_refused_with_its_place(
    installed: dict[str, type], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVSDK_SANDBOX", "foo")
    with pytest.raises(UsageError) as caught:
        choose.wanted(None)
    assert (caught.value.code, caught.value.where) == ("unknown_sandbox", "ENVSDK_SANDBOX")
    assert choose.wanted("docker") == "docker", "a name goes before the setting"


def test_without_a_name_the_setting_names_it(installed: dict[str, type], monkeypatch: pytest.MonkeyPatch) -> None:
    installed["docker"] = Refuses
    monkeypatch.setenv("ENVSDK_SANDBOX", "docker")
    with pytest.raises(PrerequisiteError):
        choose.open_provider()
    assert choose.open_provider("remote").name == "works"


def test_without_a_name_docker_comes_first(installed: dict[str, type]) -> None:
    installed["bubblewrap"] = Refuses
    assert choose.open_provider().name == "works"


def test_without_an_engine_bubblewrap_is_taken(installed: dict[str, type]) -> None:
    installed["docker"] = Refuses
    assert choose.open_provider().name == "works"


def test_with_neither_both_reasons_are_told(installed: dict[str, type]) -> None:
    installed["docker"] = installed["bubblewrap"] = Refuses
    with pytest.raises(PrerequisiteError) as caught:
        choose.open_provider()
    assert caught.value.code == "no_sandbox"
    assert caught.value.message.count("no engine answers") == 2


def test_a_named_back_end_that_cannot_run_is_not_replaced_by_another(installed: dict[str, type]) -> None:
    installed["docker"] = Refuses
    with pytest.raises(PrerequisiteError):
        choose.open_provider("docker")


def test_something_else_under_the_name_is_refused(installed: dict[str, type]) -> None:
    installed["remote"] = type("IsNone", (), {"__init__": lambda self, **_: None})
    with pytest.raises(UsageError):
        choose.open_provider("remote")


def test_the_bundled_back_ends_are_registered() -> None:
    assert {"docker", "bubblewrap"} <= set(choose.provider_names())
