"""Reports as one HTML page that needs nothing else: every finding with its evidence, readable on any machine."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from envsdk.checks.evidence import Part, parts
from envsdk.checks.render import MARKS, standing
from envsdk.checks.report import CheckReport, CheckResult

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; --line: #8884; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; padding: .3rem .6rem; vertical-align: top; }
tr { border-top: 1px solid var(--line); }
code, pre { font: .85rem/1.4 ui-monospace, monospace; }
details p, details ul { margin: .2rem 0; } details { margin-top: .3rem; }
pre { overflow-x: auto; background: #8881; padding: .6rem; margin: .3rem 0; white-space: pre-wrap; }
.fail { color: #c22; } .pass { color: #181; } .error, .incomplete { color: #a60; } .skipped { opacity: .65; }
@media (prefers-color-scheme: dark) {
  .fail { color: #f77; } .pass { color: #6d6; } .error, .incomplete { color: #fb5; }
}
@media (max-width: 40rem) { td, th { padding: .3rem .2rem; } td:last-child, th:last-child { display: none; } }
"""
_LINES = 30


def page(reports: Iterable[CheckReport]) -> str:
    """The document."""
    found = list(reports)
    good = sum(standing(report.verdict, report.checks)[0] == "pass" for report in found)
    body = "\n".join(_task(report) for report in found)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Checks: {good} of {len(found)} pass</title>
<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>
<body><h1>{good} of {len(found)} tasks pass their checks</h1>
{body}
</body></html>
"""


def _task(report: CheckReport) -> str:
    rows = "\n".join(map(_check, report.checks))
    digests = f"task {report.task_digest[:16]} · verifier {report.verifier_digest[:16]}"
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("check", "outcome", "finding", "seconds"))
    told, lacks = standing(report.verdict, report.checks)
    title = f"{MARKS[told]} {escape(report.slug)}: {told}{f': {escape(lacks)}' if lacks else ''}"
    return f"""<section><h2 class="{told}">{title}</h2>
<p><code>{digests}</code> {escape(report.sandbox)}</p>
<table><thead><tr>{heads}</tr></thead><tbody>
{rows}
</tbody></table></section>"""


def _check(result: CheckResult) -> str:
    fix = f'<p class="fix">Fix: {escape(result.fix)}</p>' if result.fix else ""
    is_open = " open" if result.outcome in {"fail", "error"} else ""
    shown = "".join(map(_part, parts(result.evidence)))
    evidence = f"<details{is_open}><summary>evidence</summary>{shown}</details>" if shown else ""
    return (
        f'<tr><th scope="row"><code>{escape(result.check)}</code></th>'
        f'<td class="{result.outcome}">{MARKS[result.outcome]} {result.outcome}</td>'
        f"<td>{escape(result.why)}{fix}{evidence}</td><td>{result.seconds:.2f}</td></tr>"
    )


def _part(part: Part) -> str:
    name = f"<b>{escape(part.name)}</b>"
    if part.kind == "fact":
        return f"<p>{name}: <code>{escape(part.lines[0])}</code></p>"
    if part.kind == "rows":
        items = "".join(f"<li>{escape(line)}</li>" for line in part.lines)
        return f"<p>{name}</p><ul>{items}</ul>"
    lines = part.lines[:_LINES]
    marked = [_diff_line(line) for line in lines] if part.kind == "diff" else list(map(escape, lines))
    more = f"\n... {len(part.lines) - _LINES} lines more" if len(part.lines) > _LINES else ""
    return f"<p>{name}</p><pre>{chr(10).join(marked)}{more}</pre>"


def _diff_line(line: str) -> str:
    kind = {"+": "pass", "-": "fail"}.get(line[:1], "")
    return f'<span class="{kind}">{escape(line)}</span>' if kind else escape(line)
