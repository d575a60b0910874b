"""Names that a verifier asks of a submission and the instruction does not speak of; and names of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsdk.checks.lint.spoken_names import spoken_names
from tests.unit.checks.test_lint import files_of

SLUG = "Write `/app/slug.py` with a function `slug(text)`."
STATS = "Write `/app/stats.json` with the keys count and mean."


def asked(tmp_path: Path, instruction: str, artifact: str, test: str) -> list[str]:
    files = files_of(tmp_path, {"tests/check.py": test}, instruction=instruction, artifacts=(artifact,))
    return [fault.what.split(" for ")[1].split(",")[0] for _, fault in spoken_names(files)]


@pytest.mark.parametrize(
    "test",
    [
        "from slug import slugify\nassert slugify('A') == 'a'\n",
        "    from slug import slugify as s\n",
        "import slug\nassert slug.slugify('A') == 'a'\n",
        "code = \"import sys; from slug import slugify; print(slugify('A'))\"\n",
        "code = 'from slug import slugify'\n",
    ],
)
def test_a_function_that_the_instruction_does_not_name_is_found(tmp_path: Path, test: str) -> None:
    assert asked(tmp_path, SLUG, "/app/slug.py", test) == ["slugify"]


@pytest.mark.parametrize(
    "test",
    [
        "from slug import slug\n",
        "import slug\nslug.slug('A')\n",
        "from subprocess import run\n",
        "# from slug import what is needed, and more\n",
        "code = 'import sys; from slug import slug'\n",
        "path = 'slug.py'\nslug.other('x')\n",
    ],
)
def test_functions_that_are_named_or_not_of_the_submission_are_not(tmp_path: Path, test: str) -> None:
    assert asked(tmp_path, SLUG, "/app/slug.py", test) == []


@pytest.mark.parametrize("ask", ["data['total'] == 3", 'data.get("total") == 3'])
def test_a_key_that_the_instruction_does_not_name_is_found(tmp_path: Path, ask: str) -> None:
    test = f"import json\ndata = json.load(open('/app/stats.json'))\nassert {ask} and data['count']\n"
    assert asked(tmp_path, STATS, "/app/stats.json", test) == ["total"]


@pytest.mark.parametrize(
    "test",
    [
        "data = json.load(open('/app/stats.json'))\nassert data['mean'] == 3\n",
        "want = {'total': 3}\ndata = json.load(open('/app/stats.json'))\nassert want['total'] == data['count']\n",
        "want = json.load(open('/tests/want.json'))\nassert want['total']\nopen('/app/stats.json')\n",
    ],
)
def test_keys_that_are_named_or_the_verifiers_own_are_not(tmp_path: Path, test: str) -> None:
    assert asked(tmp_path, STATS, "/app/stats.json", test) == []


def test_a_fault_says_what_was_probably_meant(tmp_path: Path) -> None:
    files = files_of(
        tmp_path, {"tests/check.py": "from slug import slugs\n"}, instruction=SLUG, artifacts=("/app/slug.py",)
    )
    (found,) = spoken_names(files)
    assert "did you mean slug?" in found[1].what
    assert found[1].line == 1


CSV = "Write `/app/errors.csv` with the columns path and count."


@pytest.mark.parametrize(
    "test",
    [
        "rows = list(csv.DictReader(open('/app/errors.csv')))\nassert all(row['errors'] for row in rows)\n",
        "for r in csv.DictReader(open('/app/errors.csv')):\n    assert r.get('errors')\n",
        "with open('/app/errors.csv') as f:\n    assert [x['errors'] for x in csv.DictReader(f)]\n",
    ],
)
def test_a_column_that_the_instruction_does_not_name_is_found(tmp_path: Path, test: str) -> None:
    assert asked(tmp_path, CSV, "/app/errors.csv", f"import csv\n{test}") == ["errors"]


@pytest.mark.parametrize(
    "test",
    [
        "rows = list(csv.DictReader(open('/app/errors.csv')))\nassert [row['path'] for row in rows]\n",
        "want = [{'n': 1}]\nrows = list(csv.DictReader(open('/app/errors.csv')))\nassert [w['n'] for w in want]\n",
        "for r in csv.DictReader(open('/tests/errors.csv')):\n    assert r['errors']\n",
        "for r in csv.reader(open('/app/errors.csv')):\n    assert names['errors']\n",
    ],
)
def test_columns_that_are_named_or_the_verifiers_own_are_not(tmp_path: Path, test: str) -> None:
    assert asked(tmp_path, CSV, "/app/errors.csv", f"import csv\n{test}") == []


OUT = "Write a JSON object with the number of ERROR lines to `/app/out.json`."


@pytest.mark.parametrize(
    "test",
    [
        "import json\nassert json.load(open('/app/out.json')) == {'error_count': 4}\n",
        "import json\ngot = json.loads(read('/app/out.json'))\nassert {'error_count': 4} == got\n",
    ],
)
def test_a_key_of_several_words_that_nobody_named_is_found(tmp_path: Path, test: str) -> None:
    assert asked(tmp_path, OUT, "/app/out.json", test) == ["error_count"]


@pytest.mark.parametrize(
    "test",
    [
        "import json\nassert json.load(open('/app/out.json')) == {'north': 4}\n",
        "import json\nassert other(open('/app/out.json')) == {'error_count': 4}\n",
        "import json\nassert json.load(open('/app/out.json')) != {'error_count': 4}\n",
    ],
)
def test_a_key_of_one_word_may_be_data(tmp_path: Path, test: str) -> None:
    assert asked(tmp_path, OUT, "/app/out.json", test) == []


def test_a_compared_key_that_the_inputs_hold_is_data(tmp_path: Path) -> None:
    test = "import json\nassert json.load(open('/app/out.json')) == {'error_count': 4}\n"
    files = files_of(tmp_path, {"tests/check.py": test}, instruction=OUT, artifacts=("/app/out.json",))
    assert list(spoken_names(files, "error_count,4\n")) == []
