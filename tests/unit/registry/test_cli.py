"""The commands: one envelope, data on stdout, the exit codes of what was found."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from envsdk.cli.app import run as envsdk
from envsdk.waiting import told
from registry.calibration.campaign import Campaign
from registry.local import LocalRegistry
from tests.fakes.http_chat import chat_server, said


@pytest.fixture
def url(tmp_path, monkeypatch):
    monkeypatch.setenv("ENVSDK_HOME", str(tmp_path / "home"))
    place = f"sqlite:///{tmp_path}/registry.sqlite"
    monkeypatch.setenv("ENVSDK_REGISTRY", place)
    return place


@pytest.fixture
def run(url, capsys):
    def call(*arguments):
        code = envsdk(["registry", *arguments])
        out = capsys.readouterr().out
        return code, (json.loads(out) if "--json" in arguments else out)

    return call


@pytest.fixture
def filled(url, make_task, make_report, make_record):
    task, draft = make_task("good", tags=("shell",)), make_task("draft")
    with LocalRegistry(url) as registry:
        registry.push([task, draft], [make_report(task)])
        registry.append([make_record(task, bool(n % 2)) for n in range(4)])
    return task


def test_push_takes_directories_and_names_what_is_none(run, make_task, tmp_path):
    (tmp_path / "bad").mkdir()
    code, answer = run("push", str(make_task("a").root), str(tmp_path / "bad"), "--json")
    assert (code, answer["ok"]) == (1, False)
    assert [(one["code"], one["where"]) for one in answer["errors"]] == [("not_a_task", str(tmp_path / "bad"))]
    assert [one["slug"] for one in answer["pushed"]] == ["a"]
    assert [one["which"] for one in answer["rejected"]] == [str(tmp_path / "bad")]


FOOLED = """
from envsdk import Draw, task, verifier


@verifier
def anything(answer, *, word):
    return 1.0


@task(verifier=anything)
def say_it() -> Draw:
    return Draw(instruction="Say it.", params={"word": "it"}, oracle="it", wrong=["no"])
"""


def test_push_tells_a_draft_nobody_checked_from_one_that_failed(run, tmp_path, capsys):
    declared = tmp_path / "fooled.py"
    declared.write_text(FOOLED)
    assert run("push", str(declared)) == (0, "· say-it draft: not checked\n")
    assert envsdk(["check", str(declared)]) == 1
    capsys.readouterr()
    assert run("push", str(declared)) == (0, "· say-it draft: a check failed\n")


def test_push_names_the_task_that_a_copy_is(run, make_task):
    good, copy = make_task("good"), make_task("copy", instruction="Do good.\n")
    assert run("push", str(good.root), str(copy.root)) == (
        0,
        "· good draft: not checked\n· copy is the same task and verifier as good, its name there: draft: not checked\n",
    )


DECLARED = """
from envsdk import Draw, task, verifier

@verifier
def right(answer: str) -> float:
    return float(answer == "1")

@task(verifier=right)
def declared() -> Draw:
    return Draw(instruction="One?", oracle="1", wrong=["2"])
"""


def test_push_takes_what_a_python_file_declares(run, url, tmp_path):
    (tmp_path / "mine.py").write_text(DECLARED)
    code, answer = run("push", str(tmp_path / "mine.py"), "--json")
    assert (code, [one["slug"] for one in answer["pushed"]]) == (0, ["declared"])
    assert run("show", "declared", "--json")[0] == 0


def test_query_prints_items_with_their_estimates(run, filled):
    code, answer = run("query", "tag:shell", "--json")
    assert (code, answer["total"], answer["next"]) == (0, 1, None)
    keys = {"slug", "family", "tags", "status", "p", "low", "high", "n", "task_digest", "verifier_digest"}
    assert keys < set(answer["items"][0])
    assert answer["items"][0]["status"] == "learnable"


def test_query_tells_versions_of_a_task_apart(run, url, make_task):
    versions = [make_task("twice", verifier=number) for number in "10"]
    with LocalRegistry(url) as registry:
        registry.push(versions)
    _, out = run("query", "")
    assert all(f"{one.digests.task[:12]}  {one.digests.verifier[:12]}" in out for one in versions)


def test_a_query_that_finds_nothing_is_good(run, filled):
    assert run("query", "tag:none", "--json")[0] == 0


def test_a_query_with_a_fault_is_usage(run, filled):
    code, answer = run("query", "stats:x", "--json")
    assert (code, answer["ok"]) == (2, False)
    assert answer["errors"][0]["where"] == "column 1"


def test_show_knows_slugs_and_digests(run, filled):
    assert run("show", "good", "--json")[1]["items"] == run("show", filled.digests.task[:12], "--json")[1]["items"]
    assert "learnable" in run("show", "good")[1]
    assert run("show", "nobody", "--json")[0] == 2


def test_show_names_the_checks_that_failed_and_says_when_a_state_changed(run, url, make_task, make_report):
    task = make_task("fooled")
    with LocalRegistry(url) as registry:
        registry.push([task], [make_report(task, repeat="fail", load="error")])
    _, out = run("show", "fooled")
    assert {"failed repeat", "undecided load"} <= set(out.splitlines())
    assert "before any outcome" in out
    assert "noop" not in out


def test_pin_writes_a_lock_and_diff_tells_revisions_apart(run, filled, url, tmp_path, make_report, make_task):
    code, answer = run("pin", "status:learnable", "--name", "set", "--lock", str(tmp_path / "set.lock"), "--json")
    assert (code, answer["revision"], answer["size"]) == (0, 1, 1)
    assert json.loads((tmp_path / "set.lock").read_text())["digest"] == answer["digest"]
    with LocalRegistry(url) as registry:
        registry.push([], [make_report(make_task("draft"))])
    assert run("pin", "verifier:checked", "--name", "set", "--json")[1]["revision"] == 2
    code, answer = run("diff", "set@1", "set@2", "--json")
    assert ([one["slug"] for one in answer["added"]], answer["removed"], answer["kept"]) == (["draft"], [], 1)


def test_sets_lists_every_revision_the_newest_first(run, filled, url, make_report, make_task):
    assert run("sets", "--json")[1]["revisions"] == []
    first = run("pin", "status:learnable", "--name", "set", "--json")[1]
    with LocalRegistry(url) as registry:
        registry.push([], [make_report(make_task("draft"))])
    run("pin", "verifier:checked", "--name", "set", "--json")
    found = run("sets", "--json")[1]["revisions"]
    assert [(one["reference"], one["tasks"], one["query"]) for one in found] == [
        ("set@2", 2, "verifier:checked"),
        ("set@1", 1, "status:learnable"),
    ]
    assert found[1]["digest"] == first["digest"]


def test_pinning_what_may_not_enter_is_bad(run, filled):
    code, answer = run("pin", "status:draft", "--json")
    assert (code, [(one["code"], one["where"]) for one in answer["errors"]]) == (1, [("empty_query", "status:draft")])
    assert [one["why"] for one in answer["left_out"]] == ["draft"]


def test_ingest_counts_and_names_bad_lines(run, filled, make_record, tmp_path):
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_text(make_record(filled, True).model_dump_json() + "\n{\n")
    code, answer = run("ingest", str(ledger), "--run", "first", "--json")
    assert (code, answer["accepted"], [one["which"] for one in answer["rejected"]]) == (1, 1, ["line 2"])
    assert (answer["ok"], [one["where"] for one in answer["errors"]]) == (False, ["line 2"])
    assert run("ingest", str(ledger), "--json")[1]["duplicate"] == 1


def test_saved_queries_are_used_by_name(run, filled):
    assert run("save", "shells", "tag:shell", "--json")[0] == 0
    assert run("query", "saved:shells", "--json")[1]["total"] == 1


def test_the_reference_lineage_is_shown_and_chosen(run, filled, url, make_record):
    with LocalRegistry(url) as registry:
        registry.append([make_record(filled, False, lineage="other")])
    assert run("reference", "--json")[1]["reference"] == "small"
    assert run("reference", "other", "--json")[1]["reference"] == "other"
    assert run("query", "tag:shell", "--json")[1]["items"][0]["n"] == 1
    assert run("reference", "nobody", "--json")[0] == 2


def test_rebuild_and_check_find_a_sound_registry(run, filled):
    assert run("rebuild", "--json")[1]["same"] is True
    assert run("check", "--deep", "--json") == (0, {"ok": True, "errors": [], "sound": True, "findings": []})


def test_check_is_bad_where_something_is(run, filled, tmp_path):
    next(path for path in (tmp_path / "blobs").rglob("*") if path.is_file()).unlink()
    code, answer = run("check", "--json")
    assert (code, {one["code"] for one in answer["findings"]}) == (1, {"blob_missing"})


def test_an_archive_and_a_backup_go_elsewhere(run, filled, tmp_path):
    assert run("export", str(tmp_path / "archive"), "--json")[0] == 0
    other = f"sqlite:///{tmp_path}/other/registry.sqlite"
    assert run("import", str(tmp_path / "archive"), "--registry", other, "--json")[1]["standings"] == 2
    code, answer = run("backup", str(tmp_path / "backup"), "--json")
    assert code == 0
    assert run("query", "", "--registry", f"sqlite:///{answer['path']}", "--json")[1]["total"] == 2


def test_tokens_are_made_listed_and_revoked(run, url):
    _, made = run("token", "create", "trainer", "--scope", "outcomes", "--json")
    assert run("token", "list", "--json")[1]["tokens"][0]["state"] == "active"
    assert run("token", "revoke", made["prefix"], "--json")[0] == 0
    assert run("token", "list", "--json")[1]["tokens"][0]["state"] == "revoked"
    assert run("token", "create", "x", "--scope", "everything", "--json")[0] == 2


def test_fit_prints_the_contracts_keys(run, tmp_path):
    rows = ["model,task,trials,passes"] + [f"m{m},t{t},8,{min(8, m + t)}" for m in range(5) for t in range(4)]
    (tmp_path / "responses.csv").write_text("\n".join(rows))
    code, answer = run("fit", str(tmp_path / "responses.csv"), "--plots", str(tmp_path / "plots"), "--json")
    assert code == 0
    assert {"items", "abilities", "overdispersion", "flags"} < set(answer)
    assert {"task", "difficulty", "se", "low", "high"} < set(answer["items"][0])
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == ["difficulty.svg", "information.svg"]


def test_fit_says_abilities_and_over_dispersion_beside_the_difficulties(run, tmp_path):
    rows = ["model,task,trials,passes"] + [f"m{m},t{t},8,{min(8, m + t)}" for m in range(5) for t in range(4)]
    (tmp_path / "responses.csv").write_text("\n".join(rows))
    code, text = run("fit", str(tmp_path / "responses.csv"))
    assert code == 0
    tasks, models, cling = text.strip().split("\n\n")
    assert [line.split()[0] for line in tasks.splitlines()] == ["task", "t0", "t1", "t2", "t3"]
    assert models.startswith("model ")
    assert {line.split()[0] for line in models.splitlines()[1:]} == {f"m{m}" for m in range(5)}
    assert cling.startswith("over-dispersion m = ")


@pytest.mark.parametrize("command", [["query"], ["calibrate", "--policy", "vllm:none"]])
def test_a_query_that_begins_with_a_dash_is_told_where_to_stand(run, filled, command):
    code, answer = run(*command, "-tag:slow", "--json")
    assert code == 2
    assert "stands after --" in answer["errors"][0]["hint"]


def test_after_two_dashes_a_query_may_begin_with_one(run, filled):
    code, answer = run("query", "--json", "--", "-tag:nowhere")
    assert (code, answer["total"]) == (0, run("query", "", "--json")[1]["total"])


def test_where_no_query_is_taken_nothing_is_said_of_one(run, filled):
    assert "stands after" not in run("sets", "-x", "--json")[1]["errors"][0]["hint"]


def test_a_calibration_that_is_only_planned_runs_nothing(run, filled):
    code, answer = run("calibrate", "status:learnable", "--policy", "vllm:none", "--dry-run", "--json")
    assert (code, answer["episodes"], answer["measured"]) == (0, 0, [])
    assert answer["estimate"] == {"tasks": 1, "at_least": 4, "at_most": 16, "fixed": 32}


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_a_calibration_of_nothing_is_no_success(run, filled, options):
    code, answer = run("calibrate", "tag:nowhere", "--policy", "vllm:none", *options, "--json")
    assert (code, answer["errors"][0]["code"], answer["errors"][0]["where"]) == (1, "empty_query", "tag:nowhere")


def test_a_calibration_measures_and_says_what_it_spent_and_saved(run, url, make_text_task, make_report):
    tasks = [make_text_task("a"), make_text_task("b")]
    with LocalRegistry(url) as registry:
        registry.push([*tasks, make_text_task("draft")], [make_report(task) for task in tasks])
    with chat_server(said("yes")) as server:
        code, answer = run("calibrate", "", "--policy", f"openai:{server.url}#tiny", "--json")
    assert code == 0
    assert [(one["slug"], one["verdict"], one["n"]) for one in answer["measured"]] == [
        ("a", "saturated", 12),
        ("b", "saturated", 12),
    ]
    assert (answer["episodes"], answer["fixed"], answer["saved"], answer["left_out"]) == (24, 64, 40, 1)


def test_a_calibration_says_how_it_stands_while_it_waits(url, make_text_task, make_report, monkeypatch, capsys):
    task = make_text_task("a")
    with LocalRegistry(url) as registry:
        registry.push([task], [make_report(task)])
    monkeypatch.setitem(told.__kwdefaults__, "every_s", 0.001)
    with chat_server(said("yes")) as server:
        envsdk(["registry", "calibrate", "", "--policy", f"openai:{server.url}#t"])
    assert "0 of 1 tasks, first look at 1 under way, " in capsys.readouterr().err


def test_a_calibration_without_one_grade_is_no_success(run, url, make_text_task, make_report):
    task = make_text_task("a")
    with LocalRegistry(url) as registry:
        registry.push([task], [make_report(task)])
    with chat_server(said("yes")) as server:
        gone = server.url
    code, answer = run("calibrate", "", "--policy", f"openai:{gone}#tiny", "--json")
    assert (code, answer["ok"]) == (4, False)
    [error] = answer["errors"]
    assert error["code"] == "nothing_graded"
    assert "connection" in error["message"].lower()


def test_a_refresh_says_that_the_engine_is_starting(url, filled, monkeypatch, capsys):
    async def waiting(_registry, _name, *, looked, **_):
        campaign = Campaign(tasks=2, ready=lambda: False)
        campaign.looking = 2
        looked(campaign)
        return None, {"set": "s", "revision": 1, "policy": "p", "size_before": 2, "size_after": 2} | dict.fromkeys(
            ("retire", "add", "not_replaced", "refused"), ()
        )

    monkeypatch.setattr("registry.refresh.job.propose_refresh", waiting)
    assert envsdk(["registry", "refresh", "s", "--policy", "vllm:none"]) == 0
    assert "s so far; 2 tasks wait for it" in capsys.readouterr().err


def test_refresh_wants_one_thing_at_a_time(run, filled):
    assert run("refresh", "--json")[0] == 2
    assert run("refresh", "set", "--publish", "1", "--json")[0] == 2
    assert run("refresh", "--publish", "9", "--json")[1]["errors"][0]["code"] == "unknown_proposal"


def test_what_needs_the_database_refuses_a_server(run):
    code, answer = run("rebuild", "--registry", "http://localhost:1", "--json")
    assert (code, answer["errors"][0]["code"]) == (2, "needs_database")


def test_a_port_in_use_is_named(run, url):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, _ = run("serve", "--port", str(taken.getsockname()[1]), "--no-worker")
    assert code == 4


def test_serve_answers_and_ends_cleanly_with_its_worker(url, filled):
    program = [sys.executable, "-m", "envsdk", "registry", "serve", "--port", "0"]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as process:
        address = process.stderr.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        deadline = time.monotonic() + 30
        while True:
            try:
                with urllib.request.urlopen(f"{address}api/query?q=tag:shell") as answer:
                    body = json.load(answer)
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        process.terminate()
        assert process.wait(timeout=120) == 130
    assert body["total"] == 1


def test_a_revision_is_deleted_with_a_reason_that_its_reader_is_told(run, filled):
    run("pin", "verifier:checked", "--name", "mine")
    assert run("delete", "mine@1", "--reason", "held answers")[0] == 0
    status, answer = run("query", "set:mine@1", "--json")
    assert (status, "held answers" in answer["errors"][0]["message"]) == (2, True)
