"""How an episode ended: facts, the table, and the outcome that follows."""

from envsdk.outcome.classify import Explanation, classify, explain

__all__ = ["Explanation", "classify", "explain"]
