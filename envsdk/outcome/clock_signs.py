"""Signs of time: whether the host served anybody, whether the clock was right, and who held it.

As all signs, each is true only where it was observed. None compares a time with what a task usually takes: only clocks,
budgets and probes that the model cannot write.
"""

from __future__ import annotations

from envsdk.outcome.facts import Facts, HeldFact
from envsdk.outcome.signs import sign

IDLE_PROBE_S = 0.05
OVERLOADED_PROBE_S = 20 * IDLE_PROBE_S
"""A sibling that needs this long for ``true`` is not being served; a model's busy loop leaves it at the idle value."""
OVERLOADED_PRESSURE = 0.5
"""Only asked where no sibling was probed: a task's own busy threads can raise the host's pressure too."""
CLOCK_JUMP_SHARE = 0.05


@sign
def overloaded(facts: Facts) -> bool:
    """Nothing on the host got a CPU: a sibling's trivial command was not served."""
    if facts.host.probe_s is not None:
        return facts.host.probe_s >= OVERLOADED_PROBE_S
    return facts.host.cpu_pressure is not None and facts.host.cpu_pressure >= OVERLOADED_PRESSURE


@sign
def host_idle(facts: Facts) -> bool:
    """The host's load was observed, and siblings were served."""
    return (facts.host.probe_s is not None or facts.host.cpu_pressure is not None) and not overloaded(facts)


def _budget_s(facts: Facts) -> float | None:
    """The budget of the clock that ran out: the verifier's, a step's or the episode's."""
    clocks, command, verifier = facts.clocks.budget_s, facts.command.budget_s, facts.verifier.budget_s
    if facts.verifier.status == "timeout":
        return verifier or clocks
    return command or clocks if facts.ended_by == "step_deadline" else clocks or command


@sign
def clock_jumped(facts: Facts) -> bool:
    """The wall clock ran away from the monotonic one, and by the latter the deadline had not come."""
    clocks = facts.clocks
    if clocks.wall_s is None or clocks.monotonic_s is None:
        return False
    budget = _budget_s(facts)
    apart = abs(clocks.wall_s - clocks.monotonic_s)
    if budget is None:
        return apart > max(1.0, CLOCK_JUMP_SHARE * max(abs(clocks.wall_s), abs(clocks.monotonic_s)))
    return apart > max(1.0, CLOCK_JUMP_SHARE * budget) and clocks.monotonic_s < budget * (1 - CLOCK_JUMP_SHARE)


@sign
def queue_counted(facts: Facts) -> bool:
    """The deadline counted time in the harness's queue: what ran alone was within the budget."""
    clocks, budget = facts.clocks, _budget_s(facts)
    if clocks.queued_s is None or clocks.ran_s is None or budget is None:
        return False
    return clocks.ran_s < budget * (1 - CLOCK_JUMP_SHARE) and clocks.queued_s > 0


def _held(facts: Facts) -> tuple[float, float, float, float]:
    held = facts.clocks.held_s or HeldFact()
    return held.model or 0.0, held.tool or 0.0, held.inference or 0.0, held.harness or 0.0


@sign
def holder_known(facts: Facts) -> bool:
    """Who held the clock was recorded."""
    return sum(_held(facts)) > 0


@sign
def held_by_inference(facts: Facts) -> bool:
    """Waiting for the inference engine took more than the model and its tools did."""
    model, tool, inference, harness = _held(facts)
    return inference + harness > model + tool and inference >= harness


@sign
def held_by_harness(facts: Facts) -> bool:
    """The harness's own work took more than the model and its tools did."""
    model, tool, inference, harness = _held(facts)
    return inference + harness > model + tool and harness > inference


@sign
def held_by_thinking(facts: Facts) -> bool:
    """Most of the clock went into generating tokens, which no sandbox host slows down."""
    model, tool, inference, harness = _held(facts)
    return model > 0 and model >= tool and model + tool >= inference + harness
