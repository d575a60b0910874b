"""The record of an ended episode: what a ledger line, a registry upload and a trained sample are made of.

One episode is one attempt at a task by a policy. A record is written once, when the episode has ended, and never
changed; what is derived from its ``facts`` (class, cause) can be derived again by `envsdk.outcome`. Legend: N =
tokens of the whole episode (prompt, replies, observations), in the order the engine saw them.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from envsdk.frozen import Frozen

OutcomeClass = Literal["model_success", "model_failure", "infra_failure", "unknown"]


class PolicyId(Frozen):
    """Who acted: model + revision + engine + precision + sampling.

    ``lineage`` names the model that training started from; it stays the same across weight versions.
    """

    model: str
    revision: str = ""
    lineage: str = ""
    engine: str = ""
    precision: str = ""
    sampling: dict[str, float | int | str] = Field(default_factory=dict)


class VersionSpan(Frozen):
    """Tokens ``start <= t < end`` (positions in the episode's N) were generated with weight version ``version``."""

    version: int
    start: int
    end: int


class TokenTrace(Frozen):
    """Every token of an episode as the engine saw it; nothing is ever re-tokenised.

    Attributes:
        ids: [N] token ids.
        loss_mask: [N] 1 where the model generated the token, else 0.
        logprobs: [N] logprob the engine recorded for a generated token; 0.0 where loss_mask is 0.
        versions: spans that cover exactly the generated tokens.
        prompt_len: length of the first prompt (shared by a group's episodes).
        complete: every generated token and logprob is at hand.
    """

    ids: tuple[int, ...]
    loss_mask: tuple[int, ...]
    logprobs: tuple[float, ...]
    versions: tuple[VersionSpan, ...]
    prompt_len: int
    complete: bool = True

    @model_validator(mode="after")
    def _same_length(self) -> TokenTrace:
        if not len(self.ids) == len(self.loss_mask) == len(self.logprobs):
            raise ValueError(
                f"token trace is ragged: {len(self.ids)} ids, {len(self.loss_mask)} mask, {len(self.logprobs)} logprobs"
            )
        return self


class Turn(Frozen):
    """One exchange: what the model said, what the sandbox answered.

    ``observation`` is empty on the last turn of an answer; output is decoded with replacement and capped.
    """

    reply: str
    observation: str = ""
    finish: str = ""
    exit_code: int | None = None
    generated_tokens: int = 0
    weight_version: int | None = None
    generate_s: float = 0.0
    act_s: float = 0.0


class PhaseTimes(Frozen):
    """Seconds per phase; a phase's clock starts when the phase starts. ``None``: the phase did not happen."""

    queue_s: float | None = None
    build_s: float | None = None
    acquire_s: float | None = None
    setup_s: float | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    tool_s: float | None = None
    verify_s: float | None = None
    total_s: float | None = None


class Outcome(Frozen):
    """How an episode ended and what follows. ``reward`` is a number or absent (`None`), never 0 for absent."""

    outcome_class: OutcomeClass
    cause: str
    reward: float | None = None
    rewards: dict[str, float] = Field(default_factory=dict)
    graded: bool
    in_gradient: bool
    in_baseline: bool
    redispatch: bool
    counts_in_eval: bool


class VerifierEvidence(Frozen):
    """What the verifier left: enough to understand a verdict without running it again."""

    exit_code: int | None = None
    seconds: float | None = None
    stdout_tail: str = ""
    reward_file: str = ""
    error_code: str = ""
    message: str = ""


class EpisodeRecord(Frozen):
    """One ended episode. ``episode_id`` is the idempotency key everywhere.

    ``started_at`` is Unix time in seconds; ``stamps`` are seconds after it on the monotonic clock (dispatched,
    acquired, first_token, last_token, verify_start, verified), the raw material of time to trainable batch.
    """

    episode_id: str
    slug: str
    task_digest: str
    verifier_digest: str
    family: str = ""
    level: dict[str, str | int | float | bool] = Field(default_factory=dict)
    group_id: str = ""
    index_in_group: int = 0
    attempt: int = 0
    policy: PolicyId
    weight_version_oldest: int | None = None
    weight_version_newest: int | None = None
    outcome: Outcome
    facts: dict[str, Any] = Field(default_factory=dict)
    turns: tuple[Turn, ...] = ()
    tokens: TokenTrace | None = None
    times: PhaseTimes = PhaseTimes()
    stamps: dict[str, float] = Field(default_factory=dict)
    evidence: VerifierEvidence = VerifierEvidence()
    sandbox: dict[str, str] = Field(default_factory=dict)
    service_logs: dict[str, str] = Field(default_factory=dict)
    started_at: float = 0.0
