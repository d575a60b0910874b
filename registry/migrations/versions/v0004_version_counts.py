"""Weight versions of several runs on one count for each lineage.

Runs that are here already keep their versions as they are, as they were folded; a rebuild puts them on the count, too.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_FILL = """
INSERT INTO version_count (lineage_id, run_id, shift, newest)
SELECT lineage_id, coalesce(run_id, 0), 0, max(weight_version)
FROM outcome WHERE lineage_id IS NOT NULL GROUP BY lineage_id, coalesce(run_id, 0)
"""


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "version_count",
        sa.Column("lineage_id", _BIG, nullable=False),
        sa.Column("run_id", _BIG, autoincrement=False, nullable=False),
        sa.Column("shift", sa.Integer(), nullable=False),
        sa.Column("newest", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["lineage_id"], ["lineage.id"], name=op.f("fk_version_count_lineage_id_lineage")),
        sa.PrimaryKeyConstraint("lineage_id", "run_id", name=op.f("pk_version_count")),
    )
    op.get_bind().execute(sa.text(_FILL))


def downgrade() -> None:
    """Undo."""
    op.drop_table("version_count")
