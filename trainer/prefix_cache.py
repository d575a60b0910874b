"""A model of replicas' prefix caches: how many prompt tokens a turn finds already computed.

For planning and for comparing routers without an engine. Optimistic in one way: nothing is ever evicted. Conservative
in another: new weights empty every cache, where a real engine salts a turn's cache by version and keeps running ones.
Source: block prefix caching, arXiv 2309.06180.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class FamilyPrefix:
    """A prefix of ``tokens`` tokens that all sessions of ``family`` share."""

    family: str
    tokens: int


@dataclass(slots=True)
class _Replica:
    contexts: dict[str, int] = field(default_factory=dict)
    families: dict[str, int] = field(default_factory=dict)


class PrefixCaches:
    """The caches of ``replicas`` replicas, in blocks of ``block`` tokens; only whole blocks are found again."""

    def __init__(self, replicas: int, *, block: int) -> None:
        self._replicas = [_Replica() for _ in range(replicas)]
        self._block = block

    def start_turn(self, replica: int, session: str, prompt_tokens: int, prefix: FamilyPrefix | None = None) -> int:
        """Tokens of the prompt that are found; from now on the prompt and its family's prefix are cached there.

        At least one token is always computed, since a prompt that is found whole gives no logits.
        """
        held = self._replicas[replica]
        reusable = held.contexts.get(session, 0)
        if prefix is not None:
            reusable = max(reusable, min(held.families.get(prefix.family, 0), prefix.tokens))
        found = min(prompt_tokens - 1, reusable)
        self._keep(replica, session, prompt_tokens, prefix)
        return found // self._block * self._block

    def end_turn(self, replica: int, session: str, context_tokens: int, prefix: FamilyPrefix | None = None) -> None:
        """The turn's context (prompt + generated) is cached, but for the last sampled token."""
        self._keep(replica, session, context_tokens - 1, prefix)

    def reset(self) -> None:
        """New weights: every cache is emptied."""
        self._replicas = [_Replica() for _ in self._replicas]

    def _keep(self, replica: int, session: str, tokens: int, prefix: FamilyPrefix | None) -> None:
        held = self._replicas[replica]
        held.contexts[session] = max(held.contexts.get(session, 0), tokens)
        if prefix is not None:
            held.families[prefix.family] = max(held.families.get(prefix.family, 0), prefix.tokens)
