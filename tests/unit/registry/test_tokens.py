"""Tokens: a secret is shown once, says what it may do, and stops when it is revoked or its time is over."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from envsdk.errors import UsageError
from registry.db import Token
from registry.tokens import SCOPES, Holder, create_token, holder_of, list_tokens, revoke_token


@pytest.fixture
def session(registry):
    with registry.database.writing() as opened:
        yield opened


def test_a_token_may_do_what_it_was_made_for(session):
    made = create_token(session, "ci", scopes=["push", "outcomes", "push"])
    assert holder_of(session, made.secret) == Holder("ci", made.prefix, ("outcomes", "push"))
    assert made.scopes == ("outcomes", "push")


def test_the_secret_is_kept_nowhere(session):
    made = create_token(session, "ci", scopes=["push"])
    session.flush()
    kept = " ".join(str(value) for value in session.execute(select(*Token.__table__.c)).one())
    assert made.secret not in kept
    assert made.secret[12:] not in kept


@pytest.mark.parametrize(
    "change", [lambda secret: secret[:-1], lambda secret: secret + "0", lambda secret: secret[:-1] + "x"]
)
def test_nearly_the_secret_is_not_the_secret(session, change):
    made = create_token(session, "ci", scopes=["push"])
    assert holder_of(session, change(made.secret)) is None


def test_a_revoked_token_stops_and_the_other_goes_on(session):
    first, second = (create_token(session, name, scopes=["push"]) for name in "ab")
    session.flush()
    revoke_token(session, first.prefix)
    session.flush()
    assert holder_of(session, first.secret) is None
    assert holder_of(session, second.secret) == Holder("b", second.prefix, ("push",))
    assert [(one.name, one.state) for one in list_tokens(session)] == [("a", "revoked"), ("b", "active")]


def test_an_expired_token_stops(session):
    made = create_token(session, "ci", scopes=["push"], days=0.0)
    session.flush()
    assert holder_of(session, made.secret) is None
    assert [one.state for one in list_tokens(session)] == ["expired"]


def test_a_token_for_days_to_come_goes_on(session):
    made = create_token(session, "ci", scopes=["push"], days=1.0)
    session.flush()
    assert holder_of(session, made.secret) == Holder("ci", made.prefix, ("push",))


def test_a_scope_that_is_none_is_refused_with_the_nearest(session):
    with pytest.raises(UsageError) as caught:
        create_token(session, "ci", scopes=["outcome"])
    assert (caught.value.code, "outcomes" in caught.value.hint) == ("bad_scope", True)


def test_revoking_what_is_not_there_is_named(session):
    with pytest.raises(UsageError) as caught:
        revoke_token(session, "reg_nothing")
    assert caught.value.code == "unknown_token"


def test_secrets_are_long_and_never_the_same(session):
    secrets = {create_token(session, "x", scopes=SCOPES).secret for _ in range(50)}
    assert len(secrets) == 50
    assert all(len(secret) == 68 for secret in secrets)
