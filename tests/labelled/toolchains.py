"""Miniatures of published tasks in C++ (Catch2), Rust and JavaScript whose verifiers run one test of many."""

from __future__ import annotations

from dataclasses import replace

from tests.labelled.mini import REWARD, Labelled
from tests.labelled.statuses import FRESH

IMAGE = "envsdk-toolchains:bookworm"
_ASK = "Write `{path}` with a function `convert` that returns the Roman numeral of an integer from 1 to 3999."
_CASES = ((1, "I"), (4, "IV"), (9, "IX"), (1994, "MCMXCIV"))

_CPP = """cat > /app/roman.h <<'EOF'
#pragma once
#include <string>
namespace roman { std::string convert(int n); }
EOF
cat > /app/roman.cpp <<'EOF'
#include "roman.h"
#include <utility>
#include <vector>
namespace roman {
static const std::vector<std::pair<int, std::string>> parts{{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"},
    {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}};
std::string convert(int n) {
    std::string out;
    for (const auto& part : parts)
        for (; n >= part.first; n -= part.first) out += part.second;
    return out;
}
}
EOF"""
_CPP_TEST = """build=$(mktemp -d)
g++ -std=c++17 -Wall -Wextra -Werror {flag} -I/app -o $build/tests /tests/roman_test.cpp /app/roman.cpp /opt/catch_main.o &&
    $build/tests"""


def _catch2() -> str:
    first, *later = (
        f'TEST_CASE("{n} is {word}", "[{n:04x}]") {{\n    REQUIRE("{word}" == roman::convert({n}));\n}}\n'
        for n, word in _CASES
    )
    head = '#include "roman.h"\n#include <catch2/catch.hpp>\n'
    return head + first + "#if defined(ROMAN_RUN_ALL_TESTS)\n" + "".join(later) + "#endif\n"


_RUST = """mkdir -p /app/roman/src
cat > /app/roman/Cargo.toml <<'EOF'
[package]
name = "roman"
version = "0.1.0"
edition = "2021"
EOF
cat > /app/roman/src/lib.rs <<'EOF'
const PARTS: [(u32, &str); 13] = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
    (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")];

pub fn convert(mut n: u32) -> String {
    let mut out = String::new();
    for (value, part) in PARTS {
        while n >= value {
            out.push_str(part);
            n -= value;
        }
    }
    out
}
EOF"""
_RUST_TEST = """build=$(mktemp -d)
cp -r /app/roman $build/ && mkdir -p $build/roman/tests && cp /tests/roman.rs $build/roman/tests/ && cd $build/roman &&
    CARGO_HOME=$build/home cargo test --offline {flag}"""


def _rust_tests() -> str:
    return "\n".join(
        f'#[test]\n{"#[ignore]" if number else ""}\nfn n{n}() {{\n    assert_eq!(roman::convert({n}), "{word}");\n}}\n'
        for number, (n, word) in enumerate(_CASES)
    )


_JS = """cat > /app/roman.mjs <<'EOF'
const parts = [[1000, "M"], [900, "CM"], [500, "D"], [400, "CD"], [100, "C"], [90, "XC"], [50, "L"], [40, "XL"], [10, "X"],
  [9, "IX"], [5, "V"], [4, "IV"], [1, "I"]]

export function convert(n) {
  let out = ""
  for (const [value, part] of parts) while (n >= value) { out += part; n -= value }
  return out
}
EOF"""


def _js_tests(later: str) -> str:
    head = (
        'import assert from "node:assert"\nimport test from "node:test"\nimport { convert } from "/app/roman.mjs"\n\n'
    )
    return head + "\n".join(
        f'{later if number else "test"}("{n} is {word}", () => {{\n  assert.strictEqual(convert({n}), "{word}")\n}})\n'
        for number, (n, word) in enumerate(_CASES)
    )


def _case(case_id: str, path: str, solve: str, test: str, why: str, **tests: str) -> Labelled:
    return Labelled(
        case_id,
        _ASK.format(path=path),
        solve,
        FRESH + test + REWARD,
        path,
        () if case_id.startswith("good") else ("skip_ratio", "mutants"),
        why,
        files={f"tests/{name.replace('__', '.')}": text for name, text in tests.items()},
        base=IMAGE,
    )


def _cpp(case_id: str, flag: str, why: str) -> Labelled:
    case = _case(case_id, "/app/roman.cpp", _CPP, _CPP_TEST.format(flag=flag), why, roman_test__cpp=_catch2())
    return replace(case, artifacts="/app/roman.cpp /app/roman.h")


def _rust(case_id: str, flag: str, why: str) -> Labelled:
    path = "/app/roman/src/lib.rs"
    case = _case(case_id, path, _RUST, _RUST_TEST.format(flag=flag), why, roman__rs=_rust_tests())
    return replace(case, artifacts="/app/roman")


def _js(case_id: str, later: str, why: str) -> Labelled:
    tests = {"roman.test__mjs": _js_tests(later)}
    return _case(case_id, "/app/roman.mjs", _JS, "node --test /tests/roman.test.mjs", why, **tests)


CASES = (
    _cpp("cpp-one-of-four", "", "a macro that nothing defines hides all tests but the first"),
    _cpp("good-cpp-all-four", "-DROMAN_RUN_ALL_TESTS", "the good twin: the macro is defined"),
    _rust("rust-one-of-four", "", "ignored tests are not run"),
    _rust("good-rust-all-four", "-- --include-ignored", "the good twin: ignored tests run as well"),
    _js("js-one-of-four", "test.skip", "skipped tests are not run"),
    _js("good-js-all-four", "test", "the good twin: none is skipped"),
)
