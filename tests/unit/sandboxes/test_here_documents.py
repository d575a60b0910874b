"""Here-documents become scripts and files; everything else keeps its text and its line."""

import json
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.errors import SandboxError
from envsdk.sandboxes.dockerfile import parse
from envsdk.sandboxes.here_documents import FOLDER, plain


def script(dockerfile: str) -> list[str]:
    """The words of the only RUN."""
    [line] = [line for line in plain(dockerfile).text.splitlines() if line.startswith("RUN")]
    return json.loads(line.removeprefix("RUN "))


def printed(dockerfile: str) -> str:
    return subprocess.run(script(dockerfile), capture_output=True, text=True, check=True).stdout


def test_a_document_alone_is_the_script() -> None:
    assert script("FROM a\nRUN <<EOF\nset -e\necho $X\nEOF\n") == ["/bin/sh", "-c", "set -e\necho $X\n"]


def test_a_document_of_a_command_stays_one() -> None:
    text = "FROM a\nRUN cat <<'END' && \\\n    echo $((1 + 1))\n$X \"quoted\"\n\tEND\nEND\n"
    assert printed(text) == '$X "quoted"\n\tEND\n2\n'


def test_two_documents_of_one_command() -> None:
    assert printed("RUN cat <<A - 3<<B <&3\na\nA\nb\nB\n") == "b\n"


def test_tabs_are_dropped_where_asked_for() -> None:
    assert printed("RUN <<-E\n\techo one\n\tE\n") == "one\n"
    assert printed("RUN cat <<-E\n\tone\n\tE\n") == "one\n"


def test_a_script_that_names_its_interpreter_is_run_by_it() -> None:
    assert printed("RUN <<'E'\n#!/bin/cat\nit's $me\nE\n") == "#!/bin/cat\nit's $me\n"


def test_a_script_that_names_its_interpreter_keeps_its_end() -> None:
    assert subprocess.run(script("RUN <<E\n#!/bin/sh\nexit 7\nE\n"), check=False).returncode == 7


def test_the_shell_is_the_one_that_was_declared() -> None:
    text = 'FROM a\nSHELL ["/bin/bash", "-o", "pipefail", "-c"]\nRUN <<E\ntrue\nE\n'
    assert script(text) == ["/bin/bash", "-o", "pipefail", "-c", "true\n"]
    assert script(f"{text.replace('RUN', 'FROM b' + chr(10) + 'RUN')}")[0] == "/bin/sh"


def test_flags_of_run_stay_before_the_script() -> None:
    assert plain("RUN --network=none <<E\ntrue\nE\n").text.startswith('RUN --network=none ["/bin/sh"')


def test_a_copied_document_is_a_file_of_the_context_with_its_variables_filled_in() -> None:
    found = plain(
        "FROM a\nENV NAME=you\nCOPY --chown=1:1 <<a.txt <<'b.txt' /d/\nhello $NAME\na.txt\n$NAME\nb.txt\nUSER u\n"
    )
    assert found.files == {f"{FOLDER}/3/a.txt": b"hello you\n", f"{FOLDER}/3/b.txt": b"$NAME\n"}
    assert f"COPY --chown=1:1 {FOLDER}/3/a.txt {FOLDER}/3/b.txt /d/" in found.text.splitlines()


def test_lines_keep_their_numbers() -> None:
    text = "FROM a\nRUN cat \\\n  <<E > /x\none\ntwo\nE\nUSER u\n"
    assert [(step.word, step.line) for step in parse(plain(text).text)] == [("FROM", 1), ("RUN", 2), ("USER", 7)]


@pytest.mark.parametrize(
    "text",
    [
        "FROM a\nRUN echo 'a <<E b' \"x <<E\" \\<<E\n",
        "FROM a\nRUN cat <<<word\n",
        'FROM a\nENV A="<<E"\nCMD cat <<E\n',
        "FROM a\nRUN echo $((1<<2))\n",
        "FROM a\n# RUN <<E\n",
        "FROM a\r\nRUN b\r\n",
    ],
)
def test_what_is_no_document_is_left_alone(text: str) -> None:
    assert (plain(text).text, plain(text).files) == (text, {})


@given(st.text(alphabet="ab<E' \\\n\"#", max_size=60))
def test_lines_are_never_lost_or_added(text: str) -> None:
    try:
        found = plain(text)
    except SandboxError:
        return
    assert found.text.count("\n") == text.count("\n")


@given(st.lists(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=9), max_size=5))
def test_the_shell_sees_a_quoted_document_as_it_is(lines: list[str]) -> None:
    body = "".join(f"{line}\n" for line in lines if line != "END")
    assert printed(f"RUN cat <<'END'\n{body}END\n") == body


def test_windows_line_ends_belong_to_no_document() -> None:
    assert script("RUN <<E\r\necho a\r\nE\r\n") == ["/bin/sh", "-c", "echo a\n"]


def test_one_without_an_end_is_named_with_its_line() -> None:
    with pytest.raises(SandboxError, match="line 2: the here-document END has no end") as caught:
        plain("FROM a\nRUN cat <<END\nbody\n END\n")
    assert (caught.value.code, bool(caught.value.hint)) == ("dockerfile_invalid", True)


def test_an_open_quote_in_a_variable_is_the_builders_to_say() -> None:
    assert plain("FROM a\nENV A='b\nRUN <<E\ntrue\nE\n").text.startswith("FROM a\nENV A='b\nRUN [")
