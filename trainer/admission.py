"""The admission rule: how much may be generated ahead of the learner.

A pure decision, shared by the dispatcher and by the simulation. The bound on lag it gives is soft: a group that runs
across several updates can still come out older, which the pool's hard bound catches at consumption.
Source: arXiv 2505.24298.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Admission:
    """Groups may start while running + accepted + 1 <= (S + version + 1) P.

    Attributes:
        staleness_bound: S, in weight versions; 0 is on-policy, every batch generated under its own version.
        groups_per_batch: P, groups of one optimizer step.
    """

    staleness_bound: int
    groups_per_batch: int

    def limit(self, version: int) -> int:
        """Most groups that may be running or accepted under weight version ``version``."""
        return (self.staleness_bound + version + 1) * self.groups_per_batch

    def admits(self, *, running: int, accepted: int, version: int) -> bool:
        """May one more group start?

        Args:
            running: dispatched and not complete.
            accepted: all complete groups since version 0, taken ones included; a group that was rejected (no signal) or
                dropped (too old) leaves the count, so that its place is admitted again.
            version: published updates so far, those of this run alone: ``accepted`` counts none from before it.
        """
        return running + accepted + 1 <= self.limit(version)
