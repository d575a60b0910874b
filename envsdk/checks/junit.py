"""Reports as JUnit XML: one suite a task, one case a check."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from envsdk.checks.render import evidence_lines
from envsdk.checks.report import CheckReport, CheckResult
from envsdk.files.output import plain


def junit(reports: Iterable[CheckReport]) -> bytes:
    """The document, UTF-8."""
    root = Element("testsuites", name="envsdk")
    for report in reports:
        outcomes = [result.outcome for result in report.checks]
        suite = SubElement(
            root,
            "testsuite",
            name=report.slug,
            tests=str(len(outcomes)),
            failures=str(outcomes.count("fail")),
            errors=str(outcomes.count("error")),
            skipped=str(outcomes.count("skipped")),
            time=f"{sum(result.seconds for result in report.checks):.3f}",
        )
        properties = SubElement(suite, "properties")
        for name in ("task_digest", "verifier_digest", "verdict", "sandbox"):
            SubElement(properties, "property", name=name, value=str(getattr(report, name)))
        for result in report.checks:
            _case(suite, report.slug, result)
    indent(root)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _case(suite: Element, slug: str, result: CheckResult) -> None:
    case = SubElement(suite, "testcase", classname=slug, name=result.check, time=f"{result.seconds:.3f}")
    kind = {"fail": "failure", "error": "error", "skipped": "skipped"}.get(result.outcome)
    if kind is None:
        return
    entry = SubElement(case, kind, message=_clean(result.why))
    if kind != "skipped":
        fix = [f"fix: {result.fix}"] if result.fix else []
        entry.text = _clean("\n".join([result.why, *evidence_lines(result, limit=50), *fix]))


def _clean(text: str) -> str:
    """Without characters that XML has no form for."""
    return "".join(character for character in plain(text) if _has_a_form(character))


def _has_a_form(character: str) -> bool:
    if character < " ":
        return character in "\t\n\r"
    return not "\ud800" <= character <= "\udfff" and character not in "\ufffe\uffff"
