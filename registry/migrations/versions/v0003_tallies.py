"""How many outcomes each lineage and run has, kept as they arrive; and who decided on a proposal, when.

Pages that list policies and runs counted every outcome at each view, which takes seconds at ten million.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_LINEAGE = ("episodes", "graded")
_RUN = ("successes", "failures", "infra_failures", "unknown", "graded")
_COUNT_LINEAGES = """
UPDATE lineage SET episodes = counted.episodes, graded = counted.graded, newest_version = counted.newest,
                   last_at = counted.last_at
FROM (SELECT lineage_id, count(*) AS episodes, count(passed) AS graded, max(weight_version) AS newest,
             max(started_at) AS last_at
      FROM outcome GROUP BY lineage_id) AS counted
WHERE lineage.id = counted.lineage_id
"""
_COUNT_RUNS = """
UPDATE run SET successes = counted.successes, failures = counted.failures, infra_failures = counted.infra_failures,
               unknown = counted.unknown, graded = counted.graded, reward_sum = counted.reward_sum
FROM (SELECT run_id,
             sum(CASE WHEN outcome_class = 'model_success' THEN 1 ELSE 0 END) AS successes,
             sum(CASE WHEN outcome_class = 'model_failure' THEN 1 ELSE 0 END) AS failures,
             sum(CASE WHEN outcome_class = 'infra_failure' THEN 1 ELSE 0 END) AS infra_failures,
             sum(CASE WHEN outcome_class = 'unknown' THEN 1 ELSE 0 END) AS unknown,
             count(passed) AS graded,
             sum(CASE WHEN passed IS NULL THEN 0.0 ELSE coalesce(reward, 0.0) END) AS reward_sum
      FROM outcome WHERE run_id IS NOT NULL GROUP BY run_id) AS counted
WHERE run.id = counted.run_id
"""


def upgrade() -> None:
    """Apply."""
    for name in _LINEAGE:
        op.add_column("lineage", sa.Column(name, _BIG, nullable=False, server_default="0"))
    op.add_column("lineage", sa.Column("newest_version", sa.Integer(), nullable=True))
    op.add_column("lineage", sa.Column("last_at", sa.Double(), nullable=True))
    for name in _RUN:
        op.add_column("run", sa.Column(name, _BIG, nullable=False, server_default="0"))
    op.add_column("run", sa.Column("reward_sum", sa.Double(), nullable=False, server_default="0"))
    op.add_column("proposal", sa.Column("decided_by", sa.String(length=200), nullable=False, server_default=""))
    op.add_column("proposal", sa.Column("decided_at", sa.Double(), nullable=True))
    for statement in (_COUNT_LINEAGES, _COUNT_RUNS):
        op.get_bind().execute(sa.text(statement))


def downgrade() -> None:
    """Undo."""
    columns = {
        "lineage": (*_LINEAGE, "newest_version", "last_at"),
        "run": (*_RUN, "reward_sum"),
        "proposal": ("decided_by", "decided_at"),
    }
    for table, names in columns.items():
        for name in names:
            op.drop_column(table, name)
