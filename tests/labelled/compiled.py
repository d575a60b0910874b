"""Verifiers in compiled languages, JavaScript and make that hide tests or lose failures in ways of their own."""

from __future__ import annotations

from dataclasses import replace

from tests.labelled.mini import Labelled
from tests.labelled.toolchains import _CASES, _CPP, _JS, _RUST, _RUST_TEST, _case, _rust_tests

_BUILD = "build=$(mktemp -d)\ng++ -std=c++17 {flags} -I/app -o $build/tests /tests/{test} /app/roman.cpp {more} && $build/tests {words}"
_TAGGED = '#include "roman.h"\n#include <catch2/catch.hpp>\n' + "".join(
    f'TEST_CASE("{n} is {word}", "[{"full" if number else "smoke"}]") {{\n    REQUIRE("{word}" == roman::convert({n}));\n}}\n'
    for number, (n, word) in enumerate(_CASES)
)
_ASSERTS = (
    '#include "roman.h"\n#include <cassert>\nint main() {\n'
    + "".join(f'    assert(roman::convert({n}) == "{word}");\n' for n, word in _CASES)
    + "    return 0;\n}\n"
)
_FEATURE = _rust_tests().replace("#[ignore]", '#[cfg(feature = "full")]')
_JS_HEAD = (
    'import assert from "node:assert"\nimport test from "node:test"\nimport { convert } from "/app/roman.mjs"\n\n'
)
_JS_SKIPS = _JS_HEAD + "\n".join(
    f'test("{n} is {word}", {{ skip: {"!process.env.FULL" if number else "false"} }}, () => {{\n'
    f'  assert.strictEqual(convert({n}), "{word}")\n}})\n'
    for number, (n, word) in enumerate(_CASES)
)
_JS_CAUGHT = (
    'import assert from "node:assert"\n\ntry {\n  const { convert } = await import("/app/roman.mjs")\n'
    + "".join(f'  assert.strictEqual(convert({n}), "{word}")\n' for n, word in _CASES)
    + '  console.log("all right")\n} catch (error) {\n  console.error(error.message)\n}\n'
)
_JS_PLATFORM = (
    _JS_HEAD
    + "\n".join(
        f'test("{n} is {word}", () => {{\n  assert.strictEqual(convert({n}), "{word}")\n}})\n' for n, word in _CASES
    )
    + '\ntest("on windows", { skip: process.platform !== "win32" }, () => {\n  assert.strictEqual(convert(2), "II")\n})\n'
)
_MAKE = "test:\n\tnode --test /tests/roman.test.mjs\n"
_JS_ALL = _JS_HEAD + "\n".join(
    f'test("{n} is {word}", () => {{\n  assert.strictEqual(convert({n}), "{word}")\n}})\n' for n, word in _CASES
)


def _cpp(case_id: str, build: str, test: str, *caught_by: str, why: str) -> Labelled:
    case = _case(case_id, "/app/roman.cpp", _CPP, build, why, roman_test__cpp=test)
    asked = case.instruction.replace("Write", "Write `/app/roman.h`, which declares it in the namespace `roman`, and")
    return replace(case, instruction=asked, artifacts="/app/roman.cpp /app/roman.h", caught_by=caught_by)


def _js(case_id: str, run: str, *caught_by: str, why: str, **tests: str) -> Labelled:
    named = {f"tests/{name.replace('__', '.')}": text for name, text in tests.items()}
    return replace(_case(case_id, "/app/roman.mjs", _JS, run, why), files=named, caught_by=caught_by)


_CATCH = "/opt/catch_main.o"
CASES = (
    _cpp(
        "cpp-by-tag",
        _BUILD.format(flags="-Wall", test="roman_test.cpp", more=_CATCH, words="'[smoke]'"),
        _TAGGED,
        "mutants",
        "skip_ratio",
        why="the runner is told to run one tag, which one test of four carries",
    ),
    _cpp(
        "good-cpp-tags",
        _BUILD.format(flags="-Wall", test="roman_test.cpp", more=_CATCH, words=""),
        _TAGGED,
        why="the good twin: every tag is run",
    ),
    _cpp(
        "cpp-asserts-compiled-away",
        _BUILD.format(flags="-O2 -DNDEBUG", test="roman_test.cpp", more="", words=""),
        _ASSERTS,
        "mutants",
        why="NDEBUG leaves nothing of assert",
    ),
    replace(
        _case(
            "rust-behind-a-feature",
            "/app/roman/src/lib.rs",
            _RUST,
            _RUST_TEST.format(flag=""),
            "tests behind a feature that nothing turns on are not compiled",
            roman__rs=_FEATURE,
        ),
        artifacts="/app/roman",
        caught_by=("mutants", "skip_ratio"),
    ),
    _js(
        "js-skip-option",
        "node --test /tests/roman.test.mjs",
        "skip_ratio",
        "mutants",
        why="three of four tests wait for a variable that nothing sets",
        roman__test__mjs=_JS_SKIPS,
    ),
    _js(
        "js-caught-error",
        "node /tests/roman_check.mjs",
        "noop",
        why="the error that would fail is printed and forgotten",
        roman_check__mjs=_JS_CAUGHT,
    ),
    _js(
        "make-ignores-errors",
        "make -i -f /tests/Makefile test",
        "noop",
        why="make -i takes no notice of a command that fails",
        Makefile=_MAKE,
        roman__test__mjs=_JS_ALL,
    ),
    _js(
        "good-js-one-platform-skip",
        "node --test /tests/roman.test.mjs",
        why="one test of five is for another platform, and skipped rightly",
        roman__test__mjs=_JS_PLATFORM,
    ),
)
