"""One JSON value against a JSON Schema (draft 2020-12, or the one that ``$schema`` names).

Needs the package jsonschema where it runs. A schema refers to itself only: nothing is fetched. Numbers keep their
decimals: 0.3 is a multiple of 0.1, and 1e400 is a number like any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from envsdk.graders.fence import without_fence
from envsdk.graders.number import read_number
from envsdk.graders.strict_json import parse
from envsdk.graders.verdict import Verdict, judged, unreadable_truth

_EXACT_DIGITS = 4000  # int() refuses more than 4,300


def json_schema(candidate: str, truth: str | Mapping[str, Any] | bool) -> Verdict:
    """Right where the candidate is valid under the schema.

    Args:
        candidate: strict JSON, possibly in one fenced code block; anything else, or a duplicate key, is ``no_answer``.
        truth: the schema, as JSON text or as the value itself. ``format`` is not checked.

    Raises:
        VerifierError: ``unreadable_truth``: no valid schema, or one that refers to another.
    """
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, extend, validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    text = truth if isinstance(truth, str) else json.dumps(truth)
    try:
        schema = parse(text, number=_number)
    except ValueError as error:
        raise unreadable_truth("json_schema", truth) from error
    base = validator_for(schema, default=Draft202012Validator) if isinstance(schema, Mapping) else Draft202012Validator
    kinds = base.TYPE_CHECKER.redefine("integer", _is_integer).redefine("number", _is_number)
    try:
        base.check_schema(schema)
        exact: Any = extend(base, {"multipleOf": _multiple_of}, type_checker=kinds)  # type: ignore[no-untyped-call]
        checker = exact(schema, registry=Registry())
        value = parse(without_fence(candidate), number=_number)
    except SchemaError as error:
        raise unreadable_truth("json_schema", truth) from error
    except ValueError:
        return "no_answer"
    try:
        return judged(checker.is_valid(value))
    except Unresolvable as error:
        raise unreadable_truth("json_schema", truth) from error
    except RecursionError:  # a value nested as deeply as the schema allows it to be
        return "no_answer"


def _number(text: str) -> int | Decimal:
    """Exactly the number that stands there."""
    if text.lstrip("-").isdigit() and len(text) <= _EXACT_DIGITS:
        return int(text)
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise ValueError(f"{text!r} is beyond any use") from error


def _is_number(_checker: Any, value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _is_integer(checker: Any, value: Any) -> bool:
    if isinstance(value, Decimal):
        return value == value.to_integral_value()
    return _is_number(checker, value)


def _multiple_of(_validator: Any, step: int | Decimal, value: Any, _schema: Any) -> Iterator[Exception]:
    from jsonschema.exceptions import ValidationError

    if _is_number(None, value) and not _divides(step, value):
        yield ValidationError(f"{value} is not a multiple of {step}")


def _divides(step: int | Decimal, value: int | Decimal) -> bool:
    """Exactly, and in time that does not grow with an exponent."""
    one, other = read_number(str(value)), read_number(str(step))
    if one is None or other is None:
        return False
    shift = one.value.exponent - other.value.exponent
    if shift < 0:
        # No factor of ten is left in the digits, so that nothing but zero is a multiple of more of them.
        return not one.value.digits
    rest = Context(prec=one.value.width + 1).remainder(one.value.digits, other.value.digits)
    unit = abs(int(other.value.digits))
    return int(rest) * pow(10, shift, unit) % unit == 0
