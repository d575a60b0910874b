"""Sources that know the first test alone: made from its literals, in the form of each language, and only where wrong."""

from __future__ import annotations

import pytest

from envsdk.checks.mutation import first_test
from envsdk.checks.mutation.sources import cut_short, heads, source_language

CPP_TESTS = """#include "test/catch.hpp"
TEST_CASE("one digit", "[48fc]") {
    const std::vector<unsigned int> want{1};
    REQUIRE(want == base::convert(2, {1}, 10));
}
TEST_CASE("more digits") {
    const std::vector<unsigned int> want{5};
    REQUIRE(want == base::convert(2, {1, 0, 1}, 10));
}
"""
RUST_TESTS = """#[test]
fn says() {
    assert_eq!(bob::reply("Tom-ay-to."), "Whatever.");
}
#[test]
#[ignore]
fn shouts() {
    assert_eq!(bob::reply("WATCH OUT!"), "Whoa, chill out!");
}
"""
JS_TESTS = """describe('two fer', () => {
  test('no name given', () => {
    expect(twoFer()).toEqual('One for you, one for me.');
  });
  xtest('a name given', () => {
    expect(twoFer('Alice')).toEqual('One for Alice, one for me.');
  });
});
"""


def told(path: str, source: str, tests: dict[str, str]) -> list[str]:
    return [mutant.files[path].decode() for mutant in first_test.mutants({path: source.encode()}, tests)]


def test_a_function_returns_what_the_first_test_expects() -> None:
    source = "namespace base {\nstd::vector<unsigned int> convert(int b, std::vector<int> d) {\n    return d;\n}\n}\n"
    first = told("/app/base.cpp", source, {"tests/base_test.cpp": CPP_TESTS})[0]
    assert "{ if (true) return {1};\n    return d;" in first


def test_rust_and_javascript_are_cut_short_in_their_own_forms() -> None:
    rust = told(
        "/app/src/lib.rs", "pub fn reply(m: &str) -> String {\n    m.to_string()\n}\n", {"tests/bob.rs": RUST_TESTS}
    )
    assert 'if true { return "Whatever.".to_string(); }' in rust[0]
    javascript = told(
        "/app/two.js", "export const twoFer = (n = 'you') => `One for ${n}.`;\n", {"tests/two.spec.js": JS_TESTS}
    )
    assert "=> true ? 'One for you, one for me.' : `One for ${n}.`" in javascript[0]


def test_a_title_is_no_expectation() -> None:
    made = told("/app/two.js", "export function twoFer(n) {\n  return n;\n}\n", {"tests/two.spec.js": JS_TESTS})
    assert not any("'no name given'" in source for source in made)


@pytest.mark.parametrize(
    "tests",
    [
        {},
        {"tests/test.py": "def test_x():\n    assert x() == 1\n"},
        {"tests/a_test.cpp": 'TEST_CASE("only") {\n    REQUIRE(hello() == "Hello");\n}\n'},
        {"tests/a_test.cpp": 'TEST_CASE("a") { REQUIRE(f() == "x"); }\nTEST_CASE("b") { REQUIRE(f() == "x"); }\n'},
    ],
)
def test_where_the_tests_after_the_first_say_nothing_else_nothing_is_made(tests: dict[str, str]) -> None:
    assert told("/app/a.cpp", 'std::string f() {\n    return "x";\n}\n', tests) == []


def test_at_most_a_few_are_made_and_no_two_alike() -> None:
    many = CPP_TESTS.replace("{1}, 10", "{7}, 10").replace("want{1}", "want{3}")
    made = told("/app/a.cpp", "std::vector<int> f(int n) {\n    return {n};\n}\n", {"tests/a.cpp": many})
    assert 1 <= len(made) <= first_test.MAX_MUTANTS
    assert len(set(made)) == len(made)


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("/a/x.cpp", "cpp"),
        ("x.rs", "rust"),
        ("x.mjs", "javascript"),
        ("x.go", "go"),
        ("X.java", "java"),
        ("x.py", None),
    ],
)
def test_a_language_is_known_by_its_suffix(path: str, language: str | None) -> None:
    assert source_language(path) == language


@pytest.mark.parametrize(
    ("language", "source", "types"),
    [
        ("cpp", "int f(int a) {\n if (a) {\n return 1; } else {\n }\n}\nvoid g() {\n}\nstruct S {\n};\n", ["int"]),
        (
            "rust",
            "fn a() -> u32 { 1 }\nfn b() { }\nfn c(x: &str) -> Option<String> {\n None }\n",
            ["u32", "Option<String>"],
        ),
        ("go", "func Add(a, b int) int {\n\treturn a\n}\nfunc Nothing() {\n}\n", ["int"]),
        ("java", "class A {\n  public int f(int a) {\n    return a;\n  }\n  void g() {\n  }\n}\n", ["int"]),
    ],
)
def test_functions_that_return_something_are_found(language: str, source: str, types: list[str]) -> None:
    assert [head.type for head in heads(language, source)] == types  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("u32", "7"),
        ("Option<u32>", "Some(7)"),
        ("Result<String, Error>", 'Ok("x".to_string())'),
        ("Vec<u32>", "vec![1, 2]"),
        ("bool", "true"),
        ("Self", ""),
    ],
)
def test_a_value_takes_the_form_of_the_type(kind: str, value: str) -> None:
    literals = {"number": "7", "text": '"x"', "list": "[1, 2]", "truth": "true"}
    found = cut_short("rust", f"fn f() -> {kind} {{ todo!() }}", literals)  # type: ignore[arg-type]
    assert f"return {value};" in found if value else found == f"fn f() -> {kind} {{ todo!() }}"


ROMAN = '#include "roman.h"\nstd::string convert(int n) {\n    return "?";\n}\n'


@pytest.mark.parametrize(
    "call", ["assert(convert({n}) == {want});", "EXPECT({want}, convert({n}))", "assert_same({n}, {want})"]
)
def test_without_tests_the_first_assertion_counts_as_one(call: str) -> None:
    lines = [call.format(n=n, want=f'"{want}"') for n, want in ((1, "I"), (4, "IV"))]
    made = list(first_test.mutants({"/app/r.cpp": ROMAN.encode()}, {"tests/t.cpp": "\n".join(lines)}))
    assert any(b'return "I";' in mutant.files["/app/r.cpp"] for mutant in made)


@pytest.mark.parametrize("text", ["", "int main() { return 0; }\n", "assert(convert(1) == 2);\n"])
def test_a_test_source_without_several_expectations_makes_nothing(text: str) -> None:
    assert list(first_test.mutants({"/app/r.cpp": ROMAN.encode()}, {"tests/t.cpp": text})) == []
