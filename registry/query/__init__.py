"""The registry's one query language: the same string in a page, a URL, a command and a trainer's configuration.

``status:learnable tag:shell -flag:flaky p:0.2..0.8 policy:smollm2 family:arith verifier:checked sort:-learnability
limit:64 free words``. Its grammar is ``docs/reference/query.md``.
"""

from registry.query.ast import Query, Sort, Term
from registry.query.errors import QueryError
from registry.query.parser import parse

__all__ = ["Query", "QueryError", "Sort", "Term", "parse"]
