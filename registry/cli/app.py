"""The registry's commands under one name. Each command's file imports what it needs only when it is called."""

from __future__ import annotations

import typer

from registry.cli import (
    backup,
    calibrate,
    check,
    delete,
    diff,
    drift,
    export,
    fit,
    import_,
    ingest,
    pin,
    push,
    query,
    rebuild,
    reference,
    refresh,
    save,
    serve,
    sets,
    show,
    token,
    work,
)

app = typer.Typer(no_args_is_help=True, help="Keep, query, calibrate and serve tasks.")
app.command()(push.push)
app.command()(query.query)
app.command()(show.show)
app.command()(save.save)
app.command()(pin.pin)
app.command()(sets.sets)
app.command()(diff.diff)
app.command()(delete.delete)
app.command()(drift.drift)
app.command()(ingest.ingest)
app.command()(calibrate.calibrate)
app.command()(fit.fit)
app.command()(refresh.refresh)
app.command()(reference.reference)
app.command()(rebuild.rebuild)
app.command()(check.check)
app.command()(backup.backup)
app.command()(export.export)
app.command("import")(import_.import_)
app.command()(serve.serve)
app.command()(work.work)
app.add_typer(token.app, name="token")
