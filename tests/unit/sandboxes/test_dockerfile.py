import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.errors import SandboxError
from envsdk.sandboxes.dockerfile import assignments, command_words, copy_of, expand, parse


def words(text: str) -> list[tuple[str, str]]:
    return [(step.word, step.text) for step in parse(text)]


def test_instructions_are_read_in_order_whatever_their_case() -> None:
    assert words("from a\n# no\n\nrun b c\nUSER d") == [("FROM", "a"), ("RUN", "b c"), ("USER", "d")]


def test_continued_lines_are_joined_and_comments_between_them_dropped() -> None:
    (_, step) = parse("FROM a\nRUN one \\\n  # why\n  two\n")
    assert step.text == "one   two"


def test_a_continued_command_is_one_line_to_the_shell() -> None:
    (_, step) = parse("FROM a\nRUN install \\\n\n    one && \\\n    echo 'a\\\n b'\n")
    assert step.text == "install     one &&     echo 'a b'"


@pytest.mark.parametrize("line", ["EXPOSE 80", "LABEL a=b", "VOLUME /x", "HEALTHCHECK NONE", "STOPSIGNAL 9"])
def test_what_says_nothing_about_files_is_read_past(line: str) -> None:
    assert words(f"FROM a\n{line}\n") == [("FROM", "a")]


@pytest.mark.parametrize("line", ["ONBUILD RUN x", 'SHELL ["bash"]', "FROM b"])
def test_what_cannot_be_built_is_named_with_its_line(line: str) -> None:
    with pytest.raises(SandboxError, match="line 2") as caught:
        parse(f"FROM a\n{line}\n")
    assert caught.value.code == "dockerfile_unsupported"
    assert caught.value.hint


def test_a_file_without_a_base_is_invalid() -> None:
    with pytest.raises(SandboxError) as caught:
        parse("RUN x\n")
    assert caught.value.code == "dockerfile_invalid"


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("$A/${B}", "1/2"),
        ("${C:-d}", "d"),
        ("${A:-d}", "1"),
        ("${A:+x}${C:+y}", "x"),
        (r"\$A", "$A"),
        ("$C", ""),
        ("a$", "a$"),
    ],
)
def test_variables_are_filled_in_as_docker_does(text: str, filled: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == filled


@given(st.text(alphabet=st.characters(blacklist_characters="$\\")))
def test_text_without_variables_is_left_alone(text: str) -> None:
    assert expand(text, {"A": "1"}) == text


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('A=1 B="two words"', {"A": "1", "B": "two words"}),
        ("A some words", {"A": "some words"}),
        ("A=$X/b", {"A": "x/b"}),
    ],
)
def test_assignments_in_both_forms(text: str, values: dict[str, str]) -> None:
    assert assignments(text, {"X": "x"}) == values


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ('["a", "b c"]', ["a", "b c"]),
        ("a b | c", ["/bin/sh", "-c", "a b | c"]),
        ("[ -f x ] && y", ["/bin/sh", "-c", "[ -f x ] && y"]),
        ("[1, 2]", ["/bin/sh", "-c", "[1, 2]"]),
    ],
)
def test_commands_in_both_forms(text: str, command: list[str]) -> None:
    assert command_words(text) == command


def test_a_copy_has_its_sources_target_owner_and_mode() -> None:
    (_, step) = parse("FROM a\nCOPY --chown=agent:agent --chmod=755 a b* $D/\n")
    copy = copy_of(step, {"D": "/app"})
    assert (copy.sources, copy.target, copy.owner, copy.mode) == (("a", "b*"), "/app/", "agent:agent", 0o755)


@pytest.mark.parametrize("line", ["COPY --from=x a b", "ADD https://x/y z", "COPY --exclude=x a b"])
def test_copies_that_need_more_are_refused(line: str) -> None:
    (_, step) = parse(f"FROM a\n{line}\n")
    with pytest.raises(SandboxError) as caught:
        copy_of(step, {})
    assert caught.value.code == "dockerfile_unsupported"


def test_a_word_that_no_engine_knows_is_invalid_and_the_nearest_is_named() -> None:
    with pytest.raises(SandboxError, match="line 2: RUNN is no") as caught:
        parse("FROM a\nRUNN true\n")
    assert caught.value.code == "dockerfile_invalid"
    assert "RUN" in caught.value.hint


def test_a_copy_without_a_target_is_invalid() -> None:
    (_, step) = parse("FROM a\nCOPY a\n")
    with pytest.raises(SandboxError) as caught:
        copy_of(step, {})
    assert caught.value.code == "dockerfile_invalid"
