"""Missing files, empty folders, checksums of themselves; servers that say nothing; programs that do nothing."""

from __future__ import annotations

import hashlib

import pytest

from envsdk.checks.mutation import constant_programs, sets_of_files, silent_servers
from envsdk.checks.mutation.mutant import Mutant

TWO = {"/app/a.txt": b"1\n", "/app/b.txt": b"2\n"}


def made(outputs: dict[str, bytes], instruction: str = "", **given: tuple[str, ...]) -> list[Mutant]:
    before, folders = given.get("before", ()), given.get("folders", ())
    return list(sets_of_files.mutants(outputs, before, given.get("asked", tuple(outputs)), folders, instruction))


def test_each_file_that_was_asked_for_is_missing_once() -> None:
    assert [mutant.removed for mutant in made(TWO)] == [("/app/a.txt",), ("/app/b.txt",)]


@pytest.mark.parametrize(
    ("given", "instruction"),
    [
        ({"asked": ()}, ""),
        ({"before": tuple(TWO)}, ""),
        ({}, "You may also write `/app/b.txt`."),
        ({}, "`/app/b.txt` is optional."),
    ],
)
def test_files_that_nobody_must_write_may_be_missing(given: dict[str, tuple[str, ...]], instruction: str) -> None:
    assert made(TWO, instruction, **given) == []


def test_the_only_file_is_not_taken_away_since_noop_does_so() -> None:
    assert made({"/app/a.txt": b"1\n"}) == []


def test_a_folder_is_emptied() -> None:
    assert [mutant.removed for mutant in made({}, folders=("/app/keys",))] == [("/app/keys",)]


def test_a_file_is_another_together_with_its_checksum() -> None:
    digest = hashlib.sha256(b"right\n").hexdigest()
    outputs = {"/app/out": b"right\n", "/app/out.sha256": f"{digest}  out\n".encode()}
    other = made(outputs, asked=())[0].files
    assert other["/app/out.sha256"] == f"{hashlib.sha256(other['/app/out']).hexdigest()}  out\n".encode()


def test_every_write_to_a_connection_is_emptied() -> None:
    program = b"import http.server\nclass H:\n    def do_GET(self):\n        self.wfile.write(body())\n"
    (mutant,) = silent_servers.mutants({"/app/s.py": program})
    assert b'wfile.write(b"" and body())' in mutant.files["/app/s.py"]


@pytest.mark.parametrize("program", [b"print(1)\n", b"open('x').write('y')\n", b"plot(data=rows)\n"])
def test_a_program_without_a_connection_is_no_server(program: bytes) -> None:
    assert list(silent_servers.mutants({"/app/s.py": program})) == []


@pytest.mark.parametrize(
    ("path", "source", "idle"),
    [
        ("/app/s.c", b"int main(void) { return f(); }\n", b"int main(void) { return 0; }\n"),
        ("/app/s.rs", b"fn main() { f(); }\n", b"fn main() {}\n"),
        ("/app/S.java", b"class S { public static void main(String[] a) { f(); } }\n", b"public class S {"),
        ("/app/s.go", b"package main\nfunc main() { f() }\n", b"package main\n"),
    ],
)
def test_a_compiled_program_does_nothing(path: str, source: bytes, idle: bytes) -> None:
    (mutant,) = constant_programs.mutants({path: source})
    assert mutant.files[path].startswith(idle)


def test_a_library_without_main_is_left_alone() -> None:
    assert list(constant_programs.mutants({"/app/s.c": b"int f(void) { return 1; }\n"})) == []


def test_two_functions_give_back_what_they_are_given() -> None:
    outputs = {"/app/c.py": b"def encode(t):\n    return t[::-1]\n\n\ndef decode(t):\n    return t[::-1]\n"}
    mutants = {mutant.name: mutant for mutant in constant_programs.mutants(outputs)}
    space: dict[str, object] = {}
    exec(mutants["functions that give back what they are given"].files["/app/c.py"], space)
    assert space["encode"]("x") == space["decode"]("x") == "x"  # type: ignore[operator]
