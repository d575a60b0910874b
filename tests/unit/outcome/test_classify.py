"""The outcome table: what must hold for any facts, and the pairs that look alike."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsdk.outcome import classify, explain

PHASES = ["pull", "build", "acquire", "setup", "agent", "verify", "teardown"]
ENDS = [
    "final_answer",
    "step_deadline",
    "episode_deadline",
    "setup_deadline",
    "turn_limit",
    "token_limit",
    "tool_call_errors",
    "inference_reply",
    "channel_lost",
    "sandbox_gone",
    "exception",
    "harness_exit",
    "cancel",
    "verifier",
]
flag = st.none() | st.booleans()
count = st.none() | st.integers(0, 3)
seconds = st.none() | st.floats(0, 2000)


def record(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


control = record(
    state=st.sampled_from(["pristine", "oracle", "same", "same_after_kill", "same_fresh_sandbox"]),
    status=st.sampled_from(["scored", "error", "timeout"]),
    reward=st.none() | st.sampled_from([0.0, 0.5, 1.0]),
)
facts = record(
    phase=st.sampled_from(PHASES),
    ended_by=st.sampled_from(ENDS),
    exception=record(
        kind=st.sampled_from(["KeyError", "no_space_left", "connection_reset", "timeout", "create_failed"])
    ),
    command=record(text=st.text(max_size=20), exit_code=count, output=st.text(max_size=20), seconds=seconds),
    sandbox=record(alive=flag, oom_flag=flag, pristine_ok=flag, state_recovered=flag, main_exit_code=count),
    memory=record(
        cgroup=st.sampled_from(["task", "parent", "service", "verifier", "harness", "host"]),
        oom_kills=count,
        limit_hits=count,
    ),
    pids=record(limit_hits=count, host_free=count),
    disk=record(full=st.sampled_from(["task_quota", "host"])),
    kill=record(
        by=st.sampled_from(["model", "harness", "container_engine", "kernel", "operator", "provider"]),
        target=st.sampled_from(["own shell", "process 1", "harness", "verifier", "sandbox"]),
    ),
    engine=record(reachable=flag, restarted=flag, status=st.sampled_from([200, 500])),
    inference=record(
        status=st.sampled_from([200, 400, 500]),
        code=st.sampled_from(["context_length_exceeded", "internal"]),
        choices=count,
        completion_tokens=count,
        replica_healthy=flag,
    ),
    clocks=record(
        budget_s=seconds,
        held_s=record(model=seconds, tool=seconds, inference=seconds, harness=seconds),
        wall_s=seconds,
        monotonic_s=seconds,
    ),
    host=record(cpu_pressure=st.floats(0, 1), probe_s=seconds),
    tool_calls=record(last_valid=flag),
    tokens=record(complete=flag),
    verifier=record(
        status=st.sampled_from(["scored", "error", "timeout", "not_run"]),
        reward=st.sampled_from([0.0, 0.4, 1.0, 7.0, float("nan")]),
        code=st.sampled_from(["missing_reward", "malformed_reward", "upload_failed", "judge_unparsable"]),
        exit_code=st.sampled_from([0, 1, 127]),
        leftover_agent_processes=count,
        runs=count,
        reward_writer=st.sampled_from(["agent", "verifier"]),
    ),
    control=st.lists(control, max_size=4),
)


@given(facts)
def test_consequences_follow_from_the_class_alone(given_facts: dict[str, Any]) -> None:
    outcome = classify(given_facts)
    graded = outcome.outcome_class in {"model_success", "model_failure"}
    trainable = graded and outcome.cause != "tokens_lost"
    assert outcome.graded == outcome.counts_in_eval == graded
    assert outcome.in_gradient == outcome.in_baseline == trainable
    assert outcome.redispatch == (outcome.outcome_class == "infra_failure")


@given(facts)
def test_a_reward_is_a_number_exactly_where_the_episode_is_graded(given_facts: dict[str, Any]) -> None:
    outcome = classify(given_facts)
    assert (outcome.reward is not None) == outcome.graded
    if outcome.reward is not None:
        assert 0.0 <= outcome.reward <= 1.0
        assert (outcome.outcome_class == "model_success") == (outcome.reward >= 1.0)


@given(facts, st.text(max_size=50), st.integers(0, 255))
def test_what_the_model_can_write_never_changes_the_outcome(given_facts: dict[str, Any], text: str, code: int) -> None:
    written = {"text": text, "output": text, "exit_code": code, "signal": code % 65}
    command = {**given_facts.get("command", {}), **written}
    assert classify({**given_facts, "command": command}) == classify(given_facts)


@given(facts)
def test_an_end_of_the_machinerys_is_excluded_whatever_the_verifier_says(given_facts: dict[str, Any]) -> None:
    # Without control runs: those may agree with the one score and not with the other.
    scored = [
        {**given_facts, "control": [], "verifier": {"status": "scored", "reward": reward}} for reward in (0.0, 1.0)
    ]
    low, high = (classify(one) for one in scored)
    assert (low.outcome_class in {"infra_failure", "unknown"}) == (high.outcome_class in {"infra_failure", "unknown"})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 600) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["phase", "ended_by", "verifier", "control", "memory", "clocks", "kill", "tokens", "engine", "extra"]


@given(st.dictionaries(st.sampled_from(FIELDS), json_values))
def test_any_mapping_gets_an_outcome(given_facts: dict[str, Any]) -> None:
    assert classify(given_facts).outcome_class in {"model_success", "model_failure", "infra_failure", "unknown"}


def test_no_facts_at_all_are_unknown() -> None:
    assert classify({}).cause == "unclassified"


SCORED = {"status": "scored", "reward": 0.0}
LOST = {"phase": "agent", "ended_by": "channel_lost", "verifier": {"status": "not_run"}}
IDLE = {"cpu_pressure": 0.04, "probe_s": 0.06}
CRASH = {"status": "error", "exit_code": 1, "code": "missing_reward", "runs": 1}
QUICK = [
    {"state": "pristine", "status": "scored", "reward": 0.0},
    {"state": "oracle", "status": "scored", "reward": 1.0},
]
EXAMPLES: dict[str, tuple[dict[str, Any], str, str]] = {
    # Deadlines: the same end, told apart by who kept the others waiting.
    "a deadline with no view of the host is undecided": (
        {"phase": "agent", "ended_by": "step_deadline", "verifier": SCORED},
        "unknown",
        "unclassified",
    ),
    "a busy host whose siblings are served is the model's own load": (
        {
            "phase": "agent",
            "ended_by": "step_deadline",
            "host": {"cpu_pressure": 0.9, "probe_s": 0.07},
            "verifier": SCORED,
        },
        "model_failure",
        "step_timeout",
    ),
    "an engine that stopped answering ends a step": (
        {
            "phase": "agent",
            "ended_by": "step_deadline",
            "host": IDLE,
            "engine": {"reachable": False},
            "verifier": SCORED,
        },
        "infra_failure",
        "container_engine",
    ),
    "the harness held the clock": (
        {
            "phase": "agent",
            "ended_by": "episode_deadline",
            "clocks": {"budget_s": 900, "held_s": {"model": 20, "tool": 10, "inference": 20, "harness": 850}},
            "host": IDLE,
            "verifier": SCORED,
        },
        "infra_failure",
        "harness_error",
    ),
    "who held the episode's clock says nothing of a step's": (
        {
            "phase": "agent",
            "ended_by": "step_deadline",
            "command": {"seconds": 60, "budget_s": 60},
            "clocks": {"budget_s": 900, "held_s": {"model": 2, "tool": 60, "harness": 100}},
            "host": IDLE,
            "verifier": SCORED,
        },
        "model_failure",
        "step_timeout",
    ),
    "the wall clock jumped": (
        {
            "phase": "agent",
            "ended_by": "episode_deadline",
            "clocks": {"budget_s": 900, "held_s": {"model": 20}, "wall_s": 7300, "monotonic_s": 41},
            "verifier": SCORED,
        },
        "infra_failure",
        "clock_jump",
    ),
    "the deadline counted the queue": (
        {
            "phase": "agent",
            "ended_by": "step_deadline",
            "command": {"seconds": 4, "budget_s": 60},
            "clocks": {"budget_s": 60, "queued_s": 57, "ran_s": 3},
            "host": IDLE,
            "verifier": SCORED,
        },
        "infra_failure",
        "harness_error",
    ),
    "thinking on an overloaded sandbox host": (
        {
            "phase": "agent",
            "ended_by": "episode_deadline",
            "clocks": {"budget_s": 900, "held_s": {"model": 880, "tool": 10}},
            "host": {"cpu_pressure": 0.95, "probe_s": 40.0},
            "verifier": SCORED,
        },
        "model_failure",
        "episode_timeout",
    ),
    # Lost sandboxes: whose limit, whose kill.
    "killed in the task's cgroup with its own limit never reached": (
        {**LOST, "ended_by": "sandbox_gone", "memory": {"cgroup": "task", "limit_hits": 0, "oom_kills": 1}},
        "infra_failure",
        "host_memory",
    ),
    "a parent's limit is not the task's": (
        {**LOST, "memory": {"cgroup": "parent", "limit_hits": 2, "oom_kills": 1}},
        "infra_failure",
        "host_memory",
    ),
    "reclaim at the limit kills nobody": (
        {**LOST, "memory": {"cgroup": "task", "limit_hits": 5, "oom_kills": 0}},
        "unknown",
        "unclassified",
    ),
    "the host has no process left": (
        {**LOST, "pids": {"limit_hits": 0, "peak": 12, "limit": 512, "host_free": 0}},
        "infra_failure",
        "host_pids",
    ),
    "both the task's and the host's processes are used up": (
        {**LOST, "pids": {"limit_hits": 9, "peak": 512, "limit": 512, "host_free": 0}},
        "unknown",
        "contradictory",
    ),
    "own memory limit and an engine restart": (
        {**LOST, "memory": {"cgroup": "task", "limit_hits": 3, "oom_kills": 1}, "engine": {"restarted": True}},
        "unknown",
        "contradictory",
    ),
    "no fresh sandbox answers either": (
        {**LOST, "sandbox": {"alive": False, "pristine_ok": False}},
        "infra_failure",
        "container_engine",
    ),
    "a provider took the whole machine": (
        {**LOST, "kill": {"by": "provider", "target": "host"}},
        "infra_failure",
        "host_lost",
    ),
    "the link is lost, the engine is not known to have restarted": (
        {**LOST, "exception": {"kind": "connection_reset"}, "engine": {"reachable": False}},
        "infra_failure",
        "network",
    ),
    "the link is lost because the engine restarted": (
        {**LOST, "exception": {"kind": "connection_reset"}, "engine": {"restarted": True}},
        "infra_failure",
        "container_engine",
    ),
    "the quota and the host's disk are both full": (
        {**LOST, "disk": {"task_used_mib": 100, "task_quota_mib": 100, "host_free_mib": 0}},
        "unknown",
        "contradictory",
    ),
    "gone and yet alive": (
        {**LOST, "ended_by": "sandbox_gone", "sandbox": {"alive": True}},
        "unknown",
        "contradictory",
    ),
    "killed by the model, no state left": (
        {
            **LOST,
            "ended_by": "sandbox_gone",
            "kill": {"by": "model", "target": "process 1"},
            "sandbox": {"alive": False, "pristine_ok": True, "state_recovered": False},
        },
        "model_failure",
        "sandbox_killed",
    ),
    "killed by the model, state there and not graded": (
        {**LOST, "ended_by": "sandbox_gone", "kill": {"by": "model", "target": "process 1"}},
        "unknown",
        "unclassified",
    ),
    # The inference engine.
    "a 400 that says nothing of the context": (
        {"phase": "agent", "ended_by": "inference_reply", "inference": {"status": 400}, "verifier": SCORED},
        "unknown",
        "unclassified",
    ),
    "too many requests": (
        {"phase": "agent", "ended_by": "inference_reply", "inference": {"status": 429}, "verifier": SCORED},
        "infra_failure",
        "inference_error",
    ),
    "a choice without a token": (
        {
            "phase": "agent",
            "ended_by": "inference_reply",
            "inference": {"status": 200, "choices": 1, "completion_tokens": 0},
            "verifier": SCORED,
        },
        "infra_failure",
        "inference_empty",
    ),
    "an empty turn whose tokens were not counted": (
        {
            "phase": "agent",
            "ended_by": "inference_reply",
            "inference": {"status": 200, "choices": 1},
            "verifier": SCORED,
        },
        "unknown",
        "unclassified",
    ),
    # Tool calls.
    "unusable calls, validity not observed": (
        {"phase": "agent", "ended_by": "tool_call_errors", "tool_calls": {"unusable_in_a_row": 5}, "verifier": SCORED},
        "unknown",
        "unclassified",
    ),
    "the harness refused calls that fit": (
        {"phase": "agent", "ended_by": "tool_call_errors", "tool_calls": {"last_valid": True}, "verifier": SCORED},
        "infra_failure",
        "harness_error",
    ),
    # Before the first turn.
    "an engine that is down while acquiring": (
        {
            "phase": "acquire",
            "ended_by": "exception",
            "exception": {"kind": "create_failed"},
            "engine": {"reachable": False},
        },
        "infra_failure",
        "container_engine",
    ),
    "a full host while building": (
        {"phase": "build", "ended_by": "exception", "exception": {"kind": "build_failed"}, "disk": {"full": "host"}},
        "infra_failure",
        "host_disk",
    ),
    "set-up on an overloaded host": (
        {"phase": "setup", "ended_by": "setup_deadline", "host": {"probe_s": 30.0}},
        "infra_failure",
        "host_overload",
    ),
    "set-up that took too long": (
        {"phase": "setup", "ended_by": "setup_deadline", "host": IDLE},
        "infra_failure",
        "setup_failed",
    ),
    # The verifier.
    "an overloaded verifier": (
        {
            "phase": "verify",
            "ended_by": "final_answer",
            "host": {"cpu_pressure": 0.95, "probe_s": 40.0},
            "verifier": {"status": "timeout", "runs": 2, "leftover_agent_processes": 0},
            "control": QUICK,
        },
        "infra_failure",
        "host_overload",
    ),
    "the verifier's clock counted the queue": (
        {
            "phase": "verify",
            "ended_by": "final_answer",
            "clocks": {"budget_s": 900, "queued_s": 57, "ran_s": 3},
            "verifier": {"status": "timeout", "seconds": 60, "budget_s": 60, "runs": 2},
            "control": QUICK,
        },
        "infra_failure",
        "harness_error",
    ),
    "an engine that cannot be reached is not the network": (
        {**LOST, "ended_by": "exception", "exception": {"kind": "engine_unreachable"}, "engine": {"reachable": False}},
        "infra_failure",
        "container_engine",
    ),
    "the machine was taken back": (
        {**LOST, "ended_by": "exception", "exception": {"kind": "node_preempted"}},
        "infra_failure",
        "host_lost",
    ),
    "a host that cannot be reached is a matter of the network": (
        {**LOST, "ended_by": "exception", "exception": {"kind": "host_unreachable"}},
        "infra_failure",
        "network",
    ),
    "a call that got no answer on a busy host": (
        {**LOST, "ended_by": "exception", "exception": {"kind": "exec_timeout"}, "host": {"probe_s": 30.0}},
        "infra_failure",
        "host_overload",
    ),
    "one failure is not two": (
        {"phase": "verify", "ended_by": "final_answer", "verifier": CRASH, "control": QUICK},
        "infra_failure",
        "verifier_crash",
    ),
    "a second failure among the controls": (
        {
            "phase": "verify",
            "ended_by": "final_answer",
            "verifier": CRASH,
            "control": [*QUICK, {"state": "same", "status": "error"}],
        },
        "model_failure",
        "state_breaks_verifier",
    ),
    "only the oracle's state was tried": (
        {"phase": "verify", "ended_by": "final_answer", "verifier": {**CRASH, "runs": 2}, "control": QUICK[1:]},
        "infra_failure",
        "verifier_crash",
    ),
    "left-over processes and no control": (
        {"phase": "verify", "ended_by": "final_answer", "verifier": {**CRASH, "leftover_agent_processes": 2}},
        "unknown",
        "unclassified",
    ),
    "left-over processes, and it fails without them too": (
        {
            "phase": "verify",
            "ended_by": "final_answer",
            "verifier": {**CRASH, "leftover_agent_processes": 2},
            "control": [{"state": "same_after_kill", "status": "error"}],
        },
        "infra_failure",
        "verifier_crash",
    ),
    "a fresh sandbox scores the same state": (
        {
            "phase": "verify",
            "ended_by": "turn_limit",
            "verifier": CRASH,
            "control": [{"state": "same_fresh_sandbox", "status": "scored", "reward": 1.0}],
        },
        "model_success",
        "turn_limit",
    ),
    "a judge that could not be reached": (
        {
            "phase": "verify",
            "ended_by": "final_answer",
            "verifier": {"status": "error", "code": "judge_unavailable", "runs": 2},
            "control": QUICK,
        },
        "infra_failure",
        "judge_failed",
    ),
    "the model's process killed the verifier": (
        {
            "phase": "verify",
            "ended_by": "final_answer",
            "kill": {"by": "model", "target": "verifier"},
            "verifier": {"status": "error", "signal": 9, "code": "missing_reward"},
        },
        "model_failure",
        "attacked_harness",
    ),
    "the model signalled the harness and it looked like a cancel": (
        {
            "phase": "agent",
            "ended_by": "cancel",
            "kill": {"by": "model", "target": "harness"},
            "verifier": {"status": "not_run"},
        },
        "model_failure",
        "attacked_harness",
    ),
    "no verifier ran on a finished answer": (
        {"phase": "agent", "ended_by": "final_answer", "verifier": {"status": "not_run"}},
        "unknown",
        "unclassified",
    ),
    "the verifier's box could not be started": (
        {
            "phase": "verify",
            "ended_by": "final_answer",
            "exception": {"kind": "create_failed"},
            "verifier": {"status": "not_run"},
        },
        "infra_failure",
        "verifier_setup",
    ),
    "the engine fell over while verifying": (
        {"phase": "verify", "ended_by": "final_answer", "engine": {"reachable": False}, "verifier": CRASH},
        "infra_failure",
        "container_engine",
    ),
    "a score outside the range is none": (
        {"phase": "verify", "ended_by": "final_answer", "verifier": {"status": "scored", "reward": 5.0}},
        "infra_failure",
        "verifier_reward",
    ),
    "cancelled after the score": (
        {"phase": "teardown", "ended_by": "cancel", "verifier": {"status": "scored", "reward": 1.0}},
        "model_success",
        "finished",
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_look_alikes_are_told_apart(name: str) -> None:
    given_facts, outcome_class, cause = EXAMPLES[name]
    found = explain(given_facts)
    assert (found.outcome.outcome_class, found.outcome.cause) == (outcome_class, cause), found


def test_the_bottom_of_a_declared_range_is_what_a_wiped_state_earns() -> None:
    outcome = classify(
        {
            "phase": "agent",
            "ended_by": "sandbox_gone",
            "sandbox": {"alive": False, "pristine_ok": True, "state_recovered": False},
            "verifier": {"status": "not_run", "range": [-1, 1]},
        }
    )
    assert (outcome.reward, outcome.cause) == (-1.0, "sandbox_broken")


def test_lost_tokens_keep_the_grade_and_leave_the_gradient() -> None:
    outcome = classify({"phase": "verify", "ended_by": "turn_limit", "tokens": {"complete": False}, "verifier": SCORED})
    assert (outcome.outcome_class, outcome.cause) == ("model_failure", "tokens_lost")
    assert outcome.counts_in_eval
    assert not outcome.in_baseline


def test_named_rewards_are_kept_beside_the_headline() -> None:
    verifier = {"status": "scored", "reward": 0.5, "rewards": {"reward": 0.5, "style": 1.0}}
    outcome = classify({"phase": "verify", "ended_by": "final_answer", "verifier": verifier})
    assert outcome.rewards == {"reward": 0.5, "style": 1.0}
