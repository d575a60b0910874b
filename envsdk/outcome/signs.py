"""Signs of who ended an episode: named yes-or-no questions about the facts, which the outcome table asks.

A sign is true only where it was observed; missing facts never make one true. None of them looks at what a command
printed, at its text, or at an exit status that the model's own command chose. More signs: `envsdk.outcome.clock_signs`,
`envsdk.outcome.reply_signs`, `envsdk.outcome.verifier_signs`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from envsdk.outcome.facts import Facts

LIMIT_REACHED = 0.98
_ENGINE_WORDS = ("engine", "docker", "containerd")
_HOST_GONE = re.compile(
    r"(host|node|machine|vm|instance)_?(lost|gone|down|died|dead|vanished|reboot|terminated|reclaim|preempt)|preempt|evict",
    re.IGNORECASE,
)

Sign = Callable[[Facts], bool]
SIGNS: dict[str, Sign] = {}


def sign(function: Sign) -> Sign:
    """Register a sign under its function's name."""
    SIGNS[function.__name__] = function
    return function


# --- who sent the kill ---


def _target(facts: Facts, *words: str) -> bool:
    target = (facts.kill.target or "").lower()
    return any(word in target for word in words)


@sign
def killed_by_model(facts: Facts) -> bool:
    """The recorded sender of a kill is a process of the model's."""
    return facts.kill.by == "model"


@sign
def model_killed_harness(facts: Facts) -> bool:
    """The model's process killed the harness or a part of it."""
    return killed_by_model(facts) and _target(facts, "harness", "worker", "runner")


@sign
def model_killed_verifier(facts: Facts) -> bool:
    """The model's left-over process killed the verifier."""
    return killed_by_model(facts) and _target(facts, "verifier", "test.sh")


@sign
def model_killed_shell(facts: Facts) -> bool:
    """The model killed its own shell and the sandbox may live on."""
    return killed_by_model(facts) and _target(facts, "shell") and facts.sandbox.alive is not False


@sign
def killed_by_engine(facts: Facts) -> bool:
    """The container engine sent the kill."""
    return facts.kill.by == "container_engine"


@sign
def killed_by_operator(facts: Facts) -> bool:
    """A person or scheduler outside stopped it."""
    return facts.kill.by == "operator"


@sign
def given_up(facts: Facts) -> bool:
    """Its own scheduler cancelled it, or closed it after its run was killed."""
    return facts.cancelled_by in {"scheduler", "restart"}


@sign
def killed_by_harness(facts: Facts) -> bool:
    """The harness itself sent the kill."""
    return facts.kill.by == "harness"


@sign
def sandbox_expired(facts: Facts) -> bool:
    """The provider ended the sandbox: its lifetime was over."""
    return facts.kill.by == "provider" and not host_lost(facts)


@sign
def host_lost(facts: Facts) -> bool:
    """The whole machine went away."""
    by_provider = facts.kill.by == "provider" and _target(facts, "host", "node", "machine", "instance", "vm")
    return by_provider or (facts.exception is not None and _HOST_GONE.search(facts.exception.kind or "") is not None)


# --- whose limit was hit ---


def _oom(facts: Facts, *cgroups: str) -> bool:
    return facts.memory.cgroup in cgroups and (facts.memory.oom_kills or 0) > 0


@sign
def own_memory_limit(facts: Facts) -> bool:
    """The kernel killed in the task's cgroup and the task's own limit had been reached."""
    if not _oom(facts, "task"):
        return False
    memory = facts.memory
    if memory.limit_hits is not None:
        return memory.limit_hits > 0
    return (
        memory.peak_mib is not None
        and memory.limit_mib is not None
        and memory.peak_mib >= LIMIT_REACHED * memory.limit_mib
    )


@sign
def host_memory(facts: Facts) -> bool:
    """The host or a parent cgroup ran out; a kill in the task's cgroup with no hit of its own limit says the same."""
    return _oom(facts, "host", "parent") or (_oom(facts, "task") and facts.memory.limit_hits == 0)


@sign
def harness_memory(facts: Facts) -> bool:
    """The worker that ran the episode was killed in its own cgroup."""
    return _oom(facts, "harness")


@sign
def verifier_memory(facts: Facts) -> bool:
    """The verifier's own sandbox hit its limit."""
    return _oom(facts, "verifier")


@sign
def own_pids_limit(facts: Facts) -> bool:
    """The sandbox's process limit was hit."""
    pids = facts.pids
    below = pids.peak is not None and pids.limit is not None and pids.peak < LIMIT_REACHED * pids.limit
    return (pids.limit_hits or 0) > 0 and not below


@sign
def host_pids(facts: Facts) -> bool:
    """The host has no process left to give."""
    return facts.pids.host_free is not None and facts.pids.host_free <= 0


@sign
def own_disk_quota(facts: Facts) -> bool:
    """The sandbox filled its own quota."""
    disk = facts.disk
    if disk.full is not None:
        return disk.full == "task_quota"
    return (
        disk.task_used_mib is not None and disk.task_quota_mib is not None and disk.task_used_mib >= disk.task_quota_mib
    )


@sign
def host_disk(facts: Facts) -> bool:
    """The host's disk is full."""
    if facts.disk.full is not None:
        return facts.disk.full == "host"
    return facts.disk.host_free_mib is not None and facts.disk.host_free_mib <= 0


# --- the machinery ---


def _kind(facts: Facts, *words: str) -> bool:
    kind = (facts.exception.kind or "").lower() if facts.exception else ""
    return any(word in kind for word in words)


@sign
def engine_down(facts: Facts) -> bool:
    """The container engine restarted or does not answer."""
    return facts.engine.restarted is True or facts.engine.reachable is False


@sign
def engine_restarted(facts: Facts) -> bool:
    """The container engine restarted and took its children along."""
    return facts.engine.restarted is True


@sign
def engine_refused(facts: Facts) -> bool:
    """The container engine's own reply is an error."""
    status = facts.engine.status
    return (isinstance(status, int) and status >= 500) or _kind(facts, *_ENGINE_WORDS)


@sign
def link_lost(facts: Facts) -> bool:
    """The harness lost its way over the network: a typed connection error, not the engine's refusal."""
    if _kind(facts, *_ENGINE_WORDS):
        return False
    return _kind(
        facts, "connection", "network", "broken_pipe", "brokenpipe", "dns", "resolution", "unreachable", "ssh", "tls"
    )


@sign
def any_exception(facts: Facts) -> bool:
    """The harness recorded a typed exception."""
    return facts.exception is not None and bool(facts.exception.kind)


@sign
def programming_error(facts: Facts) -> bool:
    """The exception is a class of the harness's language, not a typed trouble of the sandbox."""
    kind = (facts.exception.kind or "") if facts.exception else ""
    return kind[:1].isupper() and kind.endswith(("Error", "Exception", "Failure", "Panic", "Exit"))


@sign
def sandbox_trouble(facts: Facts) -> bool:
    """The exception names a trouble inside the sandbox, whose owner other facts must tell."""
    return _kind(
        facts, "space", "quota", "fork", "spawn", "resource", "exec_", "memory", "oom", "sandbox", "channel", "pids"
    )


@sign
def timed_out_exception(facts: Facts) -> bool:
    """The exception is a deadline of the harness's own."""
    return _kind(facts, "timeout", "timed_out", "deadline")


@sign
def inference_exception(facts: Facts) -> bool:
    """The exception came from the inference engine, or from a connection to a replica that is down."""
    return _kind(facts, "inference", "replica", "model_server") or (
        link_lost(facts) and facts.inference.replica_healthy is False and facts.engine.reachable is not False
    )


@sign
def cancel_exception(facts: Facts) -> bool:
    """The exception is a cancel."""
    return _kind(facts, "cancel", "keyboardinterrupt")


# --- the sandbox and the state ---


@sign
def model_broke_sandbox(facts: Facts) -> bool:
    """A fresh sandbox of the image answers, this one's state cannot be started or read again."""
    return facts.sandbox.state_recovered is False and facts.sandbox.pristine_ok is True


@sign
def only_this_state_is_mute(facts: Facts) -> bool:
    """Its processes live and no shell starts in it, while a fresh sandbox of the image answers."""
    box = facts.sandbox
    return box.alive is False and box.pristine_ok is True and box.main_exit_code is None


@sign
def pristine_fails(facts: Facts) -> bool:
    """A fresh sandbox of the same image does not answer either."""
    return facts.sandbox.pristine_ok is False


@sign
def nothing_to_grade(facts: Facts) -> bool:
    """The sandbox's file system could not be started or read again."""
    return facts.sandbox.state_recovered is False


@sign
def still_alive(facts: Facts) -> bool:
    """The probe after the event was answered."""
    return facts.sandbox.alive is True


@sign
def dead(facts: Facts) -> bool:
    """The probe after the event was not answered."""
    return facts.sandbox.alive is False
