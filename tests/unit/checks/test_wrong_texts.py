"""Wrong answers in disguise: numbers beside numbers, other letters, other case, JSON with one value changed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.checks.mutation import json_values, numbers, right, texts
from envsdk.checks.mutation.wording import read_wording

PLAIN = read_wording("Do it.")
NEAR = read_wording("An error of up to 0.5 is accepted.")


def texts_of(text: str, instruction: str = "Do it.", *, is_reply: bool = False) -> dict[str, str]:
    wording = read_wording(instruction)
    made = texts.mutants("/a", text.encode(), wording, (), instruction=instruction, is_reply=is_reply)
    return {mutant.name.removeprefix("/a: "): mutant.files["/a"].decode() for mutant in made}


@given(st.integers(-(10**6), 10**6))
def test_no_variation_of_an_integer_reads_as_that_integer(value: int) -> None:
    for name, other in numbers.others(str(value), PLAIN):
        if name != "every number there is":
            assert other.strip() not in {str(value), f"+{value}"}, name


@given(st.decimals(-1000, 1000, places=2, allow_nan=False, allow_infinity=False))
def test_decimals_are_off_by_more_than_any_rounding(value: object) -> None:
    for name, other in numbers.others(str(value), PLAIN):
        if name == "the number rounded to a whole one":
            assert abs(float(other) - float(str(value))) >= abs(float(str(value))) / 20 - 1e-9
        elif other.strip() not in {"nan", "0"} and name not in {"every number there is", "twice the number"}:
            assert name == "the number with the other sign" or abs(float(other) - float(str(value))) >= 0.39


@pytest.mark.parametrize("nothing", ["0", "0.00", "-0.0"])
def test_nothing_in_another_form_is_still_nothing(nothing: str) -> None:
    found = dict(numbers.others(nothing, PLAIN))
    assert not {"twice the number", "the number with the other sign", "the constant 0"} & set(found)


@pytest.mark.parametrize(
    ("instruction", "named"),
    [("Write a root of the equation.", {"/a: the number plus 1", "/a: the number minus 1"}), ("Write the sum.", set())],
)
def test_a_number_close_by_may_be_another_right_answer_but_not_where_one_is_counted(
    instruction: str, named: set[str]
) -> None:
    made = texts.mutants("/a", b"3\n", read_wording(instruction), ())
    assert named == {mutant.name for mutant in made if mutant.may_be_right and "1" in mutant.name}


@pytest.mark.parametrize(
    ("path", "instruction", "grows"),
    [
        ("/app/a.txt", "Write the words.", True),
        ("/app/app.ini", "Write exactly these lines.", True),
        ("/app/app.ini", "Write the settings.", False),
        ("/app/index.html", "Write a page with exactly one heading.", False),
        ("/app/.gitignore", "Ignore logs.", False),
        ("/app/fix.sed", "Replace exactly one tab.", False),
        ("/app/a.txt", "Write a regular expression that matches exactly the times.", False),
    ],
)
def test_a_line_more_is_wrong_in_what_is_read_not_in_what_a_program_makes_something_of(
    path: str, instruction: str, grows: bool
) -> None:
    made = texts.mutants(path, b"one\ntwo\n", read_wording(instruction), (), instruction=instruction)
    assert grows == (f"{path}: one line too many" in {mutant.name for mutant in made})


def test_a_number_stands_among_others_where_it_must_stand_alone() -> None:
    found = dict(numbers.others("42", PLAIN))
    assert found["the number with a digit more in front"] == "142\n"
    assert found["the number with a digit more behind"] == "427\n"
    assert "\n42\n" in found["every number there is"]
    assert found["the text nan"] == "nan\n"


@pytest.mark.parametrize("number", ["-3", "1.5", "70000"])
def test_no_list_of_numbers_where_the_number_would_not_be_in_it(number: str) -> None:
    assert "every number there is" not in dict(numbers.others(number, PLAIN))


def test_under_a_tolerance_no_near_number_is_wrong() -> None:
    found = dict(numbers.others("42", NEAR))
    assert set(found) == {
        "the number far off",
        "the number far off below",
        "the text nan",
        "the number three times the stated tolerance off",
    }
    assert float(found["the number three times the stated tolerance off"]) == 43.5


def test_a_tolerance_may_be_a_share_of_the_value_or_not_be_stated_in_numbers() -> None:
    share = dict(numbers.others("200", read_wording("within 5 % of the true value")))
    assert float(share["the number three times the stated tolerance off"]) == 230
    assert "the number three times the stated tolerance off" not in dict(numbers.others("200", read_wording("about")))


def test_every_number_of_a_text_is_moved() -> None:
    assert numbers.every_plus_one("a 1, b 2.5 and -1\n") == "a 2, b 3.5 and 0\n"


@pytest.mark.parametrize(
    ("instruction", "name", "other"),
    [
        ("Name it.", "other letters in their places", "Cnevf\n"),
        ("Name it in capital letters.", "capital letters as small ones and the reverse", "pARIS\n"),
        ("Name it, and nothing else.", "denied", "not Paris\n"),
    ],
)
def test_a_word_is_varied(instruction: str, name: str, other: str) -> None:
    assert texts_of("Paris\n", instruction)[name] == other


def test_a_number_may_be_read_out_of_a_sentence_unless_it_must_stand_alone() -> None:
    loose = texts_of("There are 3 lines.\n", "Write how many lines there are to /app/a.")
    assert not {"denied", "one line too many", "other letters in their places"} & set(loose)
    assert "its first number off by one" in loose
    assert {"denied", "one line too many"} <= set(texts_of("3\n", "Write how many lines there are, digits only."))


def test_case_is_turned_only_where_it_was_asked_for() -> None:
    assert "capital letters as small ones and the reverse" not in texts_of("Paris\n", "What is the capital of France?")


def test_lines_of_an_input_are_data_in_which_case_counts() -> None:
    def names(instruction: str, given: str, *, is_reply: bool = False) -> set[str]:
        wording = read_wording(instruction)
        made = texts.mutants("/a", b"ada\nbo\n", wording, (given,), is_reply=is_reply)
        return {mutant.name.removeprefix("/a: ") for mutant in made}

    turned = "capital letters as small ones and the reverse"
    assert turned in names("Write the distinct lines.", "bo\nada\nbo\n")
    assert turned not in names("Write the distinct lines.", "other\n")
    assert turned not in names("Write the distinct lines; case does not matter.", "bo\nada\nbo\n")
    assert turned not in names("Write the distinct lines.", "bo\nada\nbo\n", is_reply=True)


def test_words_of_one_line_are_turned_round_where_an_order_was_asked_for() -> None:
    assert texts_of("apple fig pear\n", "sorted")["its words in reverse"] == "pear fig apple\n"
    assert "its words in reverse" not in texts_of("apple fig pear\n")


def test_what_somebody_said_may_stand_among_other_words_unless_that_was_forbidden() -> None:
    loose = texts_of("391", "What is 17 times 23?", is_reply=True)
    strict = texts_of("391", "What is 17 times 23? Answer with the number alone.", is_reply=True)
    assert {"one line too many", "denied"} <= set(strict)
    assert not {"one line too many", "denied"} & set(loose)
    assert "the number plus 1" in loose


def test_where_several_answers_are_right_only_constants_are_wrong() -> None:
    assert set(texts_of("101\n", "Write any number above a hundred.")) <= {
        "the constant 0",
        "the constant 1",
        "the constant x",
        "one line too many",
    }


VALUE = {"min": 3, "ok": True, "names": ["a", "b"], "note": "free words", "extra": 9}
ASKED = "Write min, ok, names and note."


def test_each_named_part_of_an_object_is_dropped_and_changed() -> None:
    found = dict(json_values.others(VALUE, PLAIN, ASKED))
    assert "min" not in json.loads(found["the JSON object without 'min'"])
    assert json.loads(found["the JSON object with another value of 'min'"])["min"] == 4
    assert json.loads(found["the JSON object with another value of 'ok'"])["ok"] is False
    assert json.loads(found["the JSON object with another value of 'names'"])["names"] == ["a"]


def test_free_text_and_parts_that_nobody_asked_for_are_left_alone() -> None:
    found = dict(json_values.others(VALUE, PLAIN, ASKED))
    assert "the JSON object with another value of 'note'" not in found
    assert not any("extra" in name for name in found)


def test_under_a_tolerance_a_changed_value_is_far_off() -> None:
    found = dict(json_values.others({"min": 3}, NEAR, ASKED))
    assert json.loads(found["the JSON object with another value of 'min'"])["min"] > 1000


@pytest.mark.parametrize("text", ["", "42", "null", "{}", "[]", "not json", '"word"'])
def test_what_is_no_object_and_no_list_is_not_taken_for_one(text: str) -> None:
    assert json_values.parsed(text) is None


def test_a_list_loses_its_last_member() -> None:
    found = dict(json_values.others([1, 2], PLAIN, ASKED))
    assert json.loads(found["the JSON list without its last member"]) == [1]


TABLE = "path,count\n/Pay,2\n/cart,2\n/home,1\n"
LOG = "10.0.0.1 /Pay\n10.0.0.2 /cart\n10.0.0.3 /home\n"


def table(instruction: str, given: str = LOG) -> dict[str, str]:
    made = texts.mutants("/a", TABLE.encode(), read_wording(instruction), (given,), instruction=instruction)
    return {mutant.name.removeprefix("/a: "): mutant.files["/a"].decode() for mutant in made}


@pytest.mark.parametrize("asked", ["the largest count first", "ordered by count", "in the file's order", "sorted"])
def test_where_an_order_is_asked_for_lines_below_a_head_change_places(asked: str) -> None:
    assert table(f"One row each, {asked}.")["its second and its last line exchanged"] == (
        "path,count\n/home,1\n/cart,2\n/Pay,2\n"
    )


@pytest.mark.parametrize("asked", ["One row each.", "One row each, sorted, or in any order."])
def test_where_none_is_they_stay(asked: str) -> None:
    assert not [name for name in table(asked) if "line exchanged" in name or "reverse" in name]


def test_cells_that_come_from_the_inputs_are_another_and_free_text_is_left_alone() -> None:
    assert table("Count.")["another cell in column 1 of its last row"] == "path,count\n/Pay,2\n/cart,2\nx,1\n"
    assert not [name for name in table("Count.", given="nothing of it") if "cell" in name]


def test_letters_of_a_table_count_where_every_word_is_given_or_quoted() -> None:
    name = "capital letters as small ones and the reverse"
    assert name in table("The header is `path,count`.")
    assert name not in table("The header is of your making.")
    assert name not in table("The header is `path,count`. Case does not matter.")


@pytest.mark.parametrize(
    ("text", "made"), [("a b\nc d\n", True), ('{\n"a": 1\n}\n', False), ("a {\n}\n", False), ("a b\n", False)]
)
def test_lines_run_together_are_wrong_where_lines_mean_something(text: str, made: bool) -> None:
    assert ("its lines run together" in texts_of(text)) == made


@pytest.mark.parametrize(
    ("text", "made"), [("Canberra\n", "arrebnaC\n"), ("Anna", "annA\n"), ("ab\n", None), ("two words", None)]
)
def test_a_word_is_read_backwards(text: str, made: str | None) -> None:
    assert texts_of(text, is_reply=True).get("its letters in reverse") == made


@pytest.mark.parametrize(
    ("number", "name", "other"),
    [
        ("401", "the next prime", "409\n"),
        ("144", "the next square", "169\n"),
        ("144", "a number with the same remainders", "354\n"),
        ("401", "its digits in reverse", "104\n"),
    ],
)
def test_a_number_may_have_been_taken_for_its_kind(number: str, name: str, other: str) -> None:
    assert dict(numbers.others(number, PLAIN))[name] == other


@pytest.mark.parametrize(
    ("number", "name"), [("400", "the next prime"), ("145", "the next square"), ("1221", "its digits in reverse")]
)
def test_a_number_that_is_not_of_a_kind_has_no_next_of_it(number: str, name: str) -> None:
    assert name not in dict(numbers.others(number, PLAIN))


@pytest.mark.parametrize(
    ("asked", "wrong"),
    [
        ("rounded to one decimal", 11.0),
        ("rounded to 2 decimal places", 10.1),
        ("rounded to the nearest integer", 20.0),
        ("within 0.5, rounded to one decimal", 11.5),
    ],
)
def test_rounding_says_how_far_is_wrong_where_no_tolerance_does(asked: str, wrong: float) -> None:
    found = dict(numbers.others("10.0", read_wording(asked)))
    [other] = [text for name, text in found.items() if "off" in name and "far" not in name]
    assert float(other) == wrong


def test_two_values_of_an_object_change_places() -> None:
    found = dict(json_values.others({"red": 3, "blue": 2}, PLAIN, "Count.", "red blue red red blue"))
    assert json.loads(found["the JSON object with two values exchanged"]) == {"red": 2, "blue": 3}
    assert json.loads(found["the JSON object with another value of 'blue'"]) == {"red": 3, "blue": 3}


def test_keys_that_nobody_names_are_left_alone() -> None:
    assert set(dict(json_values.others({"red": 3, "blue": 2}, PLAIN, "Count.", ""))) == {
        "an empty JSON object",
        "an empty JSON list",
    }


def test_the_last_object_of_a_list_is_changed_like_any() -> None:
    found = dict(json_values.others([{"name": "Ada", "age": 3}], PLAIN, "With `name` and `age`.", "Ada"))
    assert json.loads(found["the JSON list with its last object with another value of 'name'"]) == [
        {"name": "x", "age": 3}
    ]
    assert json.loads(found["the JSON list with its last object with another value of 'age'"]) == [
        {"name": "Ada", "age": 4}
    ]


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [("In any order.", "c\nb\na\n"), ("A header, then names in any order.", "a\nc\nb\n"), ("Sorted.", None)],
)
def test_right_lines_in_another_order_keep_a_head(instruction: str, expected: str | None) -> None:
    made = right.variants({"/a": b"a\nb\nc\n"}, {}, read_wording(instruction), "")
    found = {mutant.name: mutant.files["/a"].decode() for mutant in made}
    assert found.get("/a: its lines in another order") == expected


@pytest.mark.parametrize(
    ("text", "made"),
    [("3\n7\n7\n", "3\n7\n"), ("3\n7\n", None), ("one\n\ntwo\n\nthree\n", None), ("{\n}\n}\n", None)],
)
def test_lines_that_stand_twice_stand_once(text: str, made: str | None) -> None:
    assert texts_of(text).get("its lines without those that stood before") == made


def around(text: str, inputs: tuple[str, ...] = (), instruction: str = "Do it.") -> dict[str, str]:
    made = texts.mutants("/a", text.encode(), read_wording(instruction), inputs, instruction=instruction)
    return {mutant.name.removeprefix("/a: "): mutant.files["/a"].decode() for mutant in made}


@pytest.mark.parametrize(
    ("answer", "other"), [("10.0.0.1", "10.0.0.17\n"), ("Marta", "Martas\n"), ("a/b.txt", "a/b.txts\n")]
)
def test_an_answer_of_one_word_gets_a_sign_more(answer: str, other: str) -> None:
    assert around(answer)["a sign more behind it"] == other


@pytest.mark.parametrize("answer", ["42", "4.5", "12 %", "2024-03-01", "two words"])
def test_what_may_be_read_out_of_more_gets_none(answer: str) -> None:
    assert "a sign more behind it" not in around(answer)


def test_the_input_is_handed_back() -> None:
    assert around("1 4\n2 5\n", ("1 2\n4 5\n",))["the input as it was given"] == "1 2\n4 5\n"


@pytest.mark.parametrize(
    ("text", "given", "instruction"),
    [
        ("a\nb\n", "b\na\n", "Do it."),
        ("a\nb\n", "b\na\nc\n", "One a line, in any order."),
        ("42\n", "42\n7\n", "Do it."),
        ("x y\n", "nothing of it\nat all\n", "Do it."),
    ],
)
def test_an_input_that_may_be_right_or_has_nothing_to_do_with_it_is_not(
    text: str, given: str, instruction: str
) -> None:
    assert "the input as it was given" not in around(text, (given,), instruction)


def test_first_and_last_number_change_places_where_places_tell() -> None:
    assert around("a 3\nb 5\n")["its first and its last number exchanged"] == "a 5\nb 3\n"
    assert "its first and its last number exchanged" not in around("3\n5\n")
    assert "its first and its last number exchanged" not in around("3 5\n")


def test_opaque_words_of_an_input_are_not_like_others_in_other_letters() -> None:
    name = "capital letters as small ones and the reverse"
    assert name in around("Qx7Lm\nzzTop9\n", ("a\tQx7Lm\nb\tzzTop9\n",))
    assert name not in around("Oslo\nRome\n", ("a Oslo\nb Rome\n",))
    assert name not in around("NO\n", ("NO x\n",), "Write it in upper or lower case.")


def test_a_list_has_a_member_too_many() -> None:
    assert json.loads(around('["Ann", "Bo"]')["the JSON list with a member too many"]) == ["Ann", "Bo", "xxxx"]
    assert json.loads(around("[3, 1]")["the JSON list with a member too many"]) == [3, 1, 4]
    assert "the JSON list with a member too many" not in around('["Ann"]', (), "At least these.")


def right_of(text: str, instruction: str, known: str = "") -> dict[str, str]:
    wording = read_wording(instruction)
    made = right.variants({"/a": text.encode()}, {}, wording, instruction + known, instruction=instruction)
    return {mutant.name.removeprefix("/a: "): mutant.files["/a"].decode() for mutant in made}


MEAN = "Write the mean of the numbers."
NOUGHT = "the number with a nought more behind its decimals"


@pytest.mark.parametrize(
    ("text", "instruction", "known"),
    [
        ("6.1", f"{MEAN[:-1]} with one decimal.", ""),
        ("6.1", f"{MEAN} Round it.", ""),
        ("6", MEAN, ""),
        ("6.1", MEAN, "6.1 is in the input"),
        ("3.11", "Write the version.", ""),
    ],
)
def test_a_number_whose_form_is_stated_or_copied_stays(text: str, instruction: str, known: str) -> None:
    assert NOUGHT not in right_of(text, instruction, known)


def test_a_number_of_which_no_form_is_stated_may_have_more_decimals() -> None:
    assert right_of("6.1", MEAN)[NOUGHT] == "6.10\n"


def test_a_list_may_be_spaced_otherwise_unless_one_line_is_asked_for() -> None:
    name = "the same JSON in another spacing"
    assert json.loads(right_of('["b", "a"]', "Write a JSON list.")[name]) == ["b", "a"]
    assert name not in right_of('["b", "a"]', "Write a JSON list on one line.")


def test_a_file_that_was_moved_is_not_written_otherwise() -> None:
    wording = read_wording("Rename it.")
    assert list(right.variants({"/b.txt": b"one\n"}, {}, wording, "", given=["one\n"])) == []
    assert list(right.variants({"/b.txt": b"one\n"}, {}, wording, "", given=["two\n"])) != []
