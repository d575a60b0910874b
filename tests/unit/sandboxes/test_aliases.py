import pytest

from envsdk.errors import UsageError
from envsdk.home import BASE_IMAGE
from envsdk.sandboxes import aliases


def test_the_variable_maps_wanted_to_local() -> None:
    assert aliases.from_environment("python:3.12-slim=base:1, x=y") == {"python:3.12-slim": "base:1", "x": "y"}


def test_an_empty_variable_maps_nothing() -> None:
    assert aliases.from_environment("") == {}


@pytest.mark.parametrize("value", ["python", "=local", "wanted=", "a=b,c"])
def test_an_entry_without_both_sides_is_refused(value: str) -> None:
    with pytest.raises(UsageError) as caught:
        aliases.from_environment(value)
    assert caught.value.code == "bad_alias"


def test_an_exact_entry_wins_over_a_pattern() -> None:
    table = {"python:*": "any", "python:3.12-slim": "exact"}
    assert aliases.look_up("python:3.12-slim", table) == "exact"


def test_the_longest_pattern_wins() -> None:
    assert aliases.look_up("python:3.12-slim", {"python:*": "any", "python:3.12*": "near"}) == "near"


@pytest.mark.parametrize("name", ["docker.io/library/python:3.12", "docker.io/python:3.12", "python:3.12"])
def test_the_default_registry_may_be_spelled_out(name: str) -> None:
    assert aliases.look_up(name, {"python:3.12": "local"}) == "local"


def test_other_registries_are_other_images() -> None:
    assert aliases.look_up("quay.io/python:3.12", {"python:*": "local"}) is None


def test_public_pythons_fall_back_to_a_plain_base_before_ours() -> None:
    assert aliases.look_up("python:3.12-slim", aliases.FALLBACKS) == (aliases.PLAIN_IMAGE, BASE_IMAGE)


DOCKERFILE = """# comment
ARG BASE=python:3.12-slim
ARG OTHER
FROM ${BASE} AS build
RUN echo FROM nothing
from --platform=linux/amd64 debian:12 as second
FROM build
COPY --from=second /a /a
FROM scratch
FROM $BASE
FROM ${OTHER:-alpine:3}
"""


def test_bases_are_found_with_arguments_filled_in_and_stages_left_out() -> None:
    assert aliases.wanted_bases(DOCKERFILE) == ["python:3.12-slim", "debian:12", "alpine:3"]


def test_rewriting_touches_nothing_but_the_mapped_bases() -> None:
    changed = aliases.rewrite(DOCKERFILE, {"python:3.12-slim": "local:1"})
    assert changed.replace("local:1", "${BASE}", 1).replace("local:1", "$BASE") == DOCKERFILE


def test_rewriting_with_no_alias_is_the_identity() -> None:
    text = DOCKERFILE.replace("\n", "\r\n")
    assert aliases.rewrite(text, {}) == text
