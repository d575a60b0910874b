"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:  # noqa: PLR0915 - one statement a table
    """Apply."""
    op.create_table(
        "episode",
        sa.Column("episode_id", sa.String(length=128), nullable=False),
        sa.Column("record", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("episode_id", name=op.f("pk_episode")),
    )
    op.create_table(
        "fit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("summary", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fit")),
    )
    op.create_table(
        "item",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("task_digest", sa.String(length=64), nullable=False),
        sa.Column("verifier_digest", sa.String(length=64), nullable=False),
        sa.Column("slug", sa.String(length=256), nullable=False),
        sa.Column("family", sa.String(length=128), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("search_text", sa.Text(), nullable=False),
        sa.Column("package", sa.String(length=64), nullable=False),
        sa.Column("verified", sa.String(length=8), nullable=False),
        sa.Column("broken", sa.Boolean(), nullable=False),
        sa.Column("flaky", sa.Boolean(), nullable=False),
        sa.Column("ungraded_run", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_item")),
        sa.UniqueConstraint("task_digest", "verifier_digest", name=op.f("uq_item_task_digest_verifier_digest")),
    )
    with op.batch_alter_table("item", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_item_family"), ["family"], unique=False)
        batch_op.create_index(batch_op.f("ix_item_slug_id"), ["slug", "id"], unique=False)

    op.create_table(
        "job",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("idempotency_key", sa.String(length=128), nullable=True),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("progress", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.String(length=128), nullable=False),
        sa.Column("lease_until", sa.Double(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_job_idempotency_key")),
    )
    with op.batch_alter_table("job", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_job_state_id"), ["state", "id"], unique=False)

    op.create_table(
        "lineage",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=256), nullable=False),
        sa.Column("is_reference", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_lineage")),
        sa.UniqueConstraint("name", name=op.f("uq_lineage_name")),
    )
    op.create_table(
        "run",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
        sa.UniqueConstraint("name", name=op.f("uq_run_name")),
    )
    op.create_table(
        "saved_query",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_saved_query")),
        sa.UniqueConstraint("name", name=op.f("uq_saved_query_name")),
    )
    op.create_table(
        "tag",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("items", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tag")),
        sa.UniqueConstraint("kind", "name", name=op.f("uq_tag_kind_name")),
    )
    op.create_table(
        "task_set",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_task_set")),
        sa.UniqueConstraint("name", name=op.f("uq_task_set_name")),
    )
    op.create_table(
        "token",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("prefix", sa.String(length=16), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("scopes", sa.String(length=128), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=True),
        sa.Column("revoked_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_token")),
        sa.UniqueConstraint("digest", name=op.f("uq_token_digest")),
    )
    op.create_table(
        "check_report",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("verdict", sa.String(length=16), nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("report", sa.JSON(), nullable=False),
        sa.Column("received_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["item.id"], name=op.f("fk_check_report_item_id_item")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_check_report")),
        sa.UniqueConstraint("digest", name=op.f("uq_check_report_digest")),
    )
    with op.batch_alter_table("check_report", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_check_report_item_id_id"), ["item_id", "id"], unique=False)

    op.create_table(
        "difficulty",
        sa.Column("fit_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("b", sa.Float(), nullable=False),
        sa.Column("se", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["fit_id"], ["fit.id"], name=op.f("fk_difficulty_fit_id_fit")),
        sa.ForeignKeyConstraint(["item_id"], ["item.id"], name=op.f("fk_difficulty_item_id_item")),
        sa.PrimaryKeyConstraint("fit_id", "item_id", name=op.f("pk_difficulty")),
    )
    op.create_table(
        "item_tag",
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("tag_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["item.id"], name=op.f("fk_item_tag_item_id_item")),
        sa.ForeignKeyConstraint(["tag_id"], ["tag.id"], name=op.f("fk_item_tag_tag_id_tag")),
        sa.PrimaryKeyConstraint("item_id", "tag_id", name=op.f("pk_item_tag")),
    )
    with op.batch_alter_table("item_tag", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_item_tag_tag_id_item_id"), ["tag_id", "item_id"], unique=False)

    op.create_table(
        "package",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("manifest", sa.JSON(), nullable=False),
        sa.Column("bytes", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["item.id"], name=op.f("fk_package_item_id_item")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_package")),
    )
    with op.batch_alter_table("package", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_package_item_id"), ["item_id"], unique=False)

    op.create_table(
        "policy",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("lineage_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("model", sa.String(length=256), nullable=False),
        sa.Column("identity", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["lineage_id"], ["lineage.id"], name=op.f("fk_policy_lineage_id_lineage")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_policy")),
        sa.UniqueConstraint("key", name=op.f("uq_policy_key")),
    )
    op.create_table(
        "prior",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("lineage_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("alpha", sa.Float(), nullable=False),
        sa.Column("beta", sa.Float(), nullable=False),
        sa.Column("fit_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(["fit_id"], ["fit.id"], name=op.f("fk_prior_fit_id_fit")),
        sa.ForeignKeyConstraint(["item_id"], ["item.id"], name=op.f("fk_prior_item_id_item")),
        sa.ForeignKeyConstraint(["lineage_id"], ["lineage.id"], name=op.f("fk_prior_lineage_id_lineage")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_prior")),
    )
    with op.batch_alter_table("prior", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_prior_item_id_lineage_id_id"), ["item_id", "lineage_id", "id"], unique=False
        )

    op.create_table(
        "set_revision",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("set_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("lineage_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("parent_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("note", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("deleted_at", sa.Double(), nullable=True),
        sa.Column("deleted_reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["lineage_id"], ["lineage.id"], name=op.f("fk_set_revision_lineage_id_lineage")),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["set_revision.id"], name=op.f("fk_set_revision_parent_id_set_revision")
        ),
        sa.ForeignKeyConstraint(["set_id"], ["task_set.id"], name=op.f("fk_set_revision_set_id_task_set")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_set_revision")),
        sa.UniqueConstraint("set_id", "number", name=op.f("uq_set_revision_set_id_number")),
    )
    with op.batch_alter_table("set_revision", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_set_revision_digest"), ["digest"], unique=False)

    op.create_table(
        "standing",
        sa.Column("lineage_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("status", sa.String(length=12), nullable=False),
        sa.Column("phase", sa.String(length=12), nullable=False),
        sa.Column("mean", sa.Float(), nullable=False),
        sa.Column("low", sa.Float(), nullable=False),
        sa.Column("high", sa.Float(), nullable=False),
        sa.Column("learnability", sa.Float(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("k", sa.Integer(), nullable=False),
        sa.Column("ungraded", sa.Integer(), nullable=False),
        sa.Column("prior_alpha", sa.Float(), nullable=False),
        sa.Column("prior_beta", sa.Float(), nullable=False),
        sa.Column("decayed_n", sa.Float(), nullable=False),
        sa.Column("decayed_k", sa.Float(), nullable=False),
        sa.Column("weight_version", sa.Integer(), nullable=True),
        sa.Column("e_value", sa.Float(), nullable=False),
        sa.Column("cusum", sa.Float(), nullable=False),
        sa.Column("folded_to", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["item.id"], name=op.f("fk_standing_item_id_item")),
        sa.ForeignKeyConstraint(["lineage_id"], ["lineage.id"], name=op.f("fk_standing_lineage_id_lineage")),
        sa.PrimaryKeyConstraint("lineage_id", "item_id", name=op.f("pk_standing")),
    )
    with op.batch_alter_table("standing", schema=None) as batch_op:
        batch_op.create_index(
            "ix_standing_by_learnability", ["lineage_id", "learnability", "item_id", "mean"], unique=False
        )
        batch_op.create_index("ix_standing_by_mean", ["lineage_id", "mean", "item_id"], unique=False)
        batch_op.create_index(
            "ix_standing_by_status", ["lineage_id", "status", "learnability", "item_id", "mean"], unique=False
        )

    op.create_table(
        "standing_tag",
        sa.Column("lineage_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("tag_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("status", sa.String(length=12), nullable=False),
        sa.Column("learnability", sa.Float(), nullable=False),
        sa.Column("mean", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["item.id"], name=op.f("fk_standing_tag_item_id_item")),
        sa.ForeignKeyConstraint(["lineage_id"], ["lineage.id"], name=op.f("fk_standing_tag_lineage_id_lineage")),
        sa.ForeignKeyConstraint(["tag_id"], ["tag.id"], name=op.f("fk_standing_tag_tag_id_tag")),
        sa.PrimaryKeyConstraint("lineage_id", "item_id", "tag_id", name=op.f("pk_standing_tag")),
    )
    with op.batch_alter_table("standing_tag", schema=None) as batch_op:
        batch_op.create_index(
            "ix_standing_tag_by_learnability", ["lineage_id", "tag_id", "learnability", "item_id", "mean"], unique=False
        )
        batch_op.create_index(
            "ix_standing_tag_by_status",
            ["lineage_id", "tag_id", "status", "learnability", "item_id", "mean"],
            unique=False,
        )

    op.create_table(
        "state_change",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("lineage_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("before", sa.String(length=16), nullable=False),
        sa.Column("after", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(length=64), nullable=False),
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["item.id"], name=op.f("fk_state_change_item_id_item")),
        sa.ForeignKeyConstraint(["lineage_id"], ["lineage.id"], name=op.f("fk_state_change_lineage_id_lineage")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_state_change")),
    )
    with op.batch_alter_table("state_change", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_state_change_at"), ["at"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_state_change_item_id_lineage_id_id"), ["item_id", "lineage_id", "id"], unique=False
        )

    op.create_table(
        "outcome",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("episode_id", sa.String(length=128), nullable=False),
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("policy_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("lineage_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("weight_version", sa.Integer(), nullable=False),
        sa.Column("outcome_class", sa.String(length=16), nullable=False),
        sa.Column("cause", sa.String(length=32), nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=True),
        sa.Column("reward", sa.Double(), nullable=True),
        sa.Column("group_id", sa.String(length=128), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("tokens", sa.Integer(), nullable=True),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("run_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(["item_id"], ["item.id"], name=op.f("fk_outcome_item_id_item")),
        sa.ForeignKeyConstraint(["lineage_id"], ["lineage.id"], name=op.f("fk_outcome_lineage_id_lineage")),
        sa.ForeignKeyConstraint(["policy_id"], ["policy.id"], name=op.f("fk_outcome_policy_id_policy")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_outcome_run_id_run")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outcome")),
        sa.UniqueConstraint("episode_id", name=op.f("uq_outcome_episode_id")),
    )
    with op.batch_alter_table("outcome", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_outcome_item_id_lineage_id_id"), ["item_id", "lineage_id", "id"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_outcome_run_id_id"), ["run_id", "id"], unique=False)

    op.create_table(
        "proposal",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("set_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("parent_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("lineage_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("revision_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["lineage_id"], ["lineage.id"], name=op.f("fk_proposal_lineage_id_lineage")),
        sa.ForeignKeyConstraint(["parent_id"], ["set_revision.id"], name=op.f("fk_proposal_parent_id_set_revision")),
        sa.ForeignKeyConstraint(
            ["revision_id"], ["set_revision.id"], name=op.f("fk_proposal_revision_id_set_revision")
        ),
        sa.ForeignKeyConstraint(["set_id"], ["task_set.id"], name=op.f("fk_proposal_set_id_task_set")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_proposal")),
    )
    with op.batch_alter_table("proposal", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_proposal_set_id_id"), ["set_id", "id"], unique=False)

    op.create_table(
        "retirement",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("lineage_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("revision_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("e_value", sa.Double(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["item.id"], name=op.f("fk_retirement_item_id_item")),
        sa.ForeignKeyConstraint(["lineage_id"], ["lineage.id"], name=op.f("fk_retirement_lineage_id_lineage")),
        sa.ForeignKeyConstraint(
            ["revision_id"], ["set_revision.id"], name=op.f("fk_retirement_revision_id_set_revision")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_retirement")),
    )
    with op.batch_alter_table("retirement", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_retirement_item_id_lineage_id_id"), ["item_id", "lineage_id", "id"], unique=False
        )

    op.create_table(
        "set_item",
        sa.Column("revision_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["item.id"], name=op.f("fk_set_item_item_id_item")),
        sa.ForeignKeyConstraint(
            ["revision_id"], ["set_revision.id"], name=op.f("fk_set_item_revision_id_set_revision")
        ),
        sa.PrimaryKeyConstraint("revision_id", "ordinal", name=op.f("pk_set_item")),
    )
    with op.batch_alter_table("set_item", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_set_item_item_id"), ["item_id"], unique=False)


def downgrade() -> None:  # noqa: PLR0915 - one statement a table
    """Undo."""
    with op.batch_alter_table("set_item", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_set_item_item_id"))

    op.drop_table("set_item")
    with op.batch_alter_table("retirement", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_retirement_item_id_lineage_id_id"))

    op.drop_table("retirement")
    with op.batch_alter_table("proposal", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_proposal_set_id_id"))

    op.drop_table("proposal")
    with op.batch_alter_table("outcome", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_outcome_run_id_id"))
        batch_op.drop_index(batch_op.f("ix_outcome_item_id_lineage_id_id"))

    op.drop_table("outcome")
    with op.batch_alter_table("state_change", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_state_change_item_id_lineage_id_id"))
        batch_op.drop_index(batch_op.f("ix_state_change_at"))

    op.drop_table("state_change")
    with op.batch_alter_table("standing_tag", schema=None) as batch_op:
        batch_op.drop_index("ix_standing_tag_by_status")
        batch_op.drop_index("ix_standing_tag_by_learnability")

    op.drop_table("standing_tag")
    with op.batch_alter_table("standing", schema=None) as batch_op:
        batch_op.drop_index("ix_standing_by_status")
        batch_op.drop_index("ix_standing_by_mean")
        batch_op.drop_index("ix_standing_by_learnability")

    op.drop_table("standing")
    with op.batch_alter_table("set_revision", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_set_revision_digest"))

    op.drop_table("set_revision")
    with op.batch_alter_table("prior", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_prior_item_id_lineage_id_id"))

    op.drop_table("prior")
    op.drop_table("policy")
    with op.batch_alter_table("package", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_package_item_id"))

    op.drop_table("package")
    with op.batch_alter_table("item_tag", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_item_tag_tag_id_item_id"))

    op.drop_table("item_tag")
    op.drop_table("difficulty")
    with op.batch_alter_table("check_report", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_check_report_item_id_id"))

    op.drop_table("check_report")
    op.drop_table("token")
    op.drop_table("task_set")
    op.drop_table("tag")
    op.drop_table("saved_query")
    op.drop_table("run")
    op.drop_table("lineage")
    with op.batch_alter_table("job", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_job_state_id"))

    op.drop_table("job")
    with op.batch_alter_table("item", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_item_slug_id"))
        batch_op.drop_index(batch_op.f("ix_item_family"))

    op.drop_table("item")
    op.drop_table("fit")
    op.drop_table("episode")
