"""One line of a ledger as an ended episode, or why it is none.

`envsdk.episode.record.EpisodeRecord` says what a record is. Its own validator makes a model of every part, which is
most of reading a line; so a line is first read by a twin: msgspec structs with the model's fields, derived from it. The
twin takes less than the model does (no conversions, no number beyond a double), and gives equal values for what it
takes. The rest goes to the model, which has the last word and the words for what is wrong. What cannot be mirrored
(constraints on a field, validators before or around it) has no twin, and leaves its lines to the model.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, Union, cast, get_args, get_origin

import msgspec
from pydantic import BaseModel, ValidationError

from envsdk.episode.record import EpisodeRecord
from registry.acceptance import Rejected

_DEEP = 200
"""Nested lists and objects that the model's parser refuses; the twin's goes deeper."""
_BLANK = b" \t\r\n"


def read_line(line: bytes | str, *, which: str) -> tuple[EpisodeRecord, bytes] | Rejected:
    """One ledger line as a record and its JSON, or why it is none (``invalid_record``, ``not_a_number``).

    The record has the model's attributes and not always its methods.
    """
    try:
        plain = (line if isinstance(line, bytes) else line.encode()).strip(_BLANK)
        read = _twin_of_record()
        if read is not None and plain.count(b"{") + plain.count(b"[") < _DEEP:
            return read(plain), plain
    except (msgspec.MsgspecError, ValueError):
        pass  # the model says what is wrong with it, if anything is
    return _read_by_model(line, which=which)


def _read_by_model(line: bytes | str, *, which: str) -> tuple[EpisodeRecord, bytes] | Rejected:
    try:
        # The validator's own parser is fast and reads these words as numbers; only a line that holds one is read twice.
        plain = line if isinstance(line, bytes) else line.encode(errors="replace")
        if b"NaN" in plain or b"Infinity" in plain:
            json.loads(line, parse_constant=_no_constant)
        record = EpisodeRecord.model_validate_json(line)
    except _NotANumberError as error:
        return Rejected(which, "not_a_number", f"holds {error}, which is no JSON number")
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        return Rejected(which, "invalid_record", f"{where}: {first['msg']}" if where else f"is no JSON: {first['msg']}")
    except (ValueError, RecursionError) as error:
        return Rejected(which, "invalid_record", f"is no JSON: {error}")
    return record, record.model_dump_json().encode()


class _NotANumberError(ValueError):
    pass


def _no_constant(name: str) -> Any:
    raise _NotANumberError(name)


class _NoTwinError(Exception):
    pass


@cache
def _twin_of_record() -> Callable[[bytes], EpisodeRecord] | None:
    try:
        twin = _twin(EpisodeRecord)
    except _NoTwinError:
        return None
    return cast("Callable[[bytes], EpisodeRecord]", msgspec.json.Decoder(twin).decode)


@cache
def _twin(model: type[BaseModel]) -> Any:
    """The struct with a model's fields, defaults and validators."""
    decorators = model.__pydantic_decorators__
    after = list(decorators.model_validators.values())
    others = (decorators.validators, decorators.field_validators, decorators.root_validators)
    if any(others) or any(one.info.mode != "after" for one in after):
        raise _NoTwinError
    fields: list[Any] = []
    for name, field in model.model_fields.items():
        if field.metadata or field.alias or field.validation_alias:
            raise _NoTwinError
        kind = _mirrored(field.annotation)
        if field.is_required():
            fields.append((name, kind))
        elif isinstance(field.default, BaseModel):
            fields.append((name, kind, msgspec.field(default_factory=_twin(type(field.default)))))
        elif field.default_factory is not None:
            fields.append((name, kind, msgspec.field(default_factory=cast("Callable[[], Any]", field.default_factory))))
        else:
            fields.append((name, kind, field.default))

    def validated(self: Any) -> None:
        for one in after:
            one.func(self)

    return msgspec.defstruct(
        model.__name__,
        fields,
        namespace={"__post_init__": validated} if after else {},
        forbid_unknown_fields=True,
        kw_only=True,
        gc=False,
    )


def _mirrored(kind: Any) -> Any:
    """A field's type for msgspec; a member of a union that has no twin is left out."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        members = []
        for member in arguments:
            try:
                members.append(_mirrored(member))
            except _NoTwinError:
                continue
        if not members:
            raise _NoTwinError
        return Union[tuple(members)]  # noqa: UP007 - made at run time
    if origin in (dict, tuple, list):
        return origin[tuple(_mirrored(one) for one in arguments)]
    if origin is Literal or kind in (str, int, float, bool, type(None), Any, ...):
        return kind
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return _twin(kind)
    raise _NoTwinError
