"""The tables of the registry, one file a noun, and the engine that opens them."""

from registry.db.access import Job, Token
from registry.db.base import Base
from registry.db.estimates import Difficulty, Fit, Lineage, PriorRow, Standing, StandingTag, StateChange, VersionCount
from registry.db.items import CheckReportRow, Item, ItemTag, Package, Tag
from registry.db.outcomes import Episode, Outcome, OutcomeRow, Policy, Run
from registry.db.sets import Proposal, Retirement, SavedQuery, SetItem, SetRevision, TaskSet

__all__ = [
    "Base",
    "CheckReportRow",
    "Difficulty",
    "Episode",
    "Fit",
    "Item",
    "ItemTag",
    "Job",
    "Lineage",
    "Outcome",
    "OutcomeRow",
    "Package",
    "Policy",
    "PriorRow",
    "Proposal",
    "Retirement",
    "Run",
    "SavedQuery",
    "SetItem",
    "SetRevision",
    "Standing",
    "StandingTag",
    "StateChange",
    "Tag",
    "TaskSet",
    "Token",
    "VersionCount",
]
