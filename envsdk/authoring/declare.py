"""The decorators: ``task``, ``family``, ``verifier``, ``oracle``. Each registers its function and returns it unchanged.

A declaration says what all draws of a function share; the function says what one draw is. Nothing is written, drawn or
run at import: mistakes in arguments are reported there and then, everything else when a task is written out.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, ParamSpec, TypeVar, overload

from envsdk.authoring.draw import Draw, Scalar
from envsdk.errors import UsageError
from envsdk.spec.model import AgentSpec, Budget, ContainerSpec, ServiceSpec

P = ParamSpec("P")
R = TypeVar("R")
VerifierFunction = Callable[..., float | Mapping[str, float]]
VerifierKind = Literal["text", "state", "sandbox"]


@dataclass(frozen=True, slots=True)
class Script:
    """A verifier that is a shell script: the text of ``tests/test.sh``, and its declared range."""

    text: str
    low: float = 0.0
    high: float = 1.0
    pass_mark: float | None = None
    mode: Literal["separate", "shared"] = "separate"


@dataclass(frozen=True, slots=True)
class PythonVerifier:
    """A declared verifier function."""

    function: VerifierFunction
    kind: VerifierKind
    low: float
    high: float
    pass_mark: float | None


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What a decorated task or family shares among its draws. ``levels``: each knob's values, easiest first."""

    name: str
    function: Callable[..., Draw]
    verifier: PythonVerifier | Script
    is_family: bool
    levels: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)
    agent: AgentSpec
    container: ContainerSpec | None = None
    services: tuple[ServiceSpec, ...] = ()
    budget: Budget
    artifacts: tuple[str, ...] = ()
    dockerfile: str = ""
    tags: tuple[str, ...] = ()
    description: str = ""
    oracle: Callable[[Draw], str] | None = None
    predicted_pass: Callable[..., float] | None = None

    @property
    def module(self) -> str:
        """Name of the module that the function stands in."""
        return self.function.__module__


_VERIFIERS: dict[Callable[..., Any], PythonVerifier] = {}
_DECLARATIONS: dict[tuple[str, str], Declaration] = {}


def drawn(declaration: Declaration, *args: Any, **knobs: Any) -> Draw:
    """What the author's function returns.

    Raises:
        UsageError: it raises, or returns something else (code ``draw_failed``); no fault of whoever called it.
    """
    try:
        draw = declaration.function(*args, **knobs)
    except Exception as error:
        # An author's function may raise anything; it is reported as that function's fault, with the line.
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise UsageError(
            f"its function raised {type(error).__name__}: {error}",
            code="draw_failed",
            where=declaration.name,
            hint=f"see {last.filename}:{last.lineno}",
        ) from error
    if not isinstance(draw, Draw):
        raise UsageError(
            f"its function returned {type(draw).__name__}, not a Draw",
            code="draw_failed",
            where=declaration.name,
            hint="return Draw(instruction=..., ...)",
        )
    return draw


def declarations() -> list[Declaration]:
    """Everything declared by the modules imported so far, in the order of declaration."""
    return list(_DECLARATIONS.values())


@overload
def verifier(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def verifier(
    *, kind: VerifierKind = "text", low: float = 0.0, high: float = 1.0, pass_mark: float | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def verifier(
    function: Any = None,
    /,
    *,
    kind: VerifierKind = "text",
    low: float = 0.0,
    high: float = 1.0,
    pass_mark: float | None = None,
) -> Any:
    """Declare a function as a verifier: of the answer (``text``) or of a read handle on the end state (``state``).

    A ``sandbox`` verifier is given the same handle, but runs in a sandbox of its own with the task's image, as root, so
    that it can run what the agent wrote; that image needs Python 3.10.

    Its first argument is the answer, a string, or the `envsdk.authoring.state.State`; the others are the task's params,
    by keyword. It returns a number in the declared range, a bool, or numbers by name.

    Raises:
        UsageError: the range is empty, or the function takes no first argument.
    """

    def register(target: VerifierFunction) -> VerifierFunction:
        if not low < high:
            raise UsageError(f"range [{low}, {high}] is empty", where=target.__name__, hint="low must be below high")
        if not any(p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD} for p in _parameters(target)):
            raise UsageError("takes no first argument", where=target.__name__, hint="def name(answer, *, ...)")
        _VERIFIERS[target] = PythonVerifier(target, kind, low, high, pass_mark)
        return target

    return register if function is None else register(function)


def task(
    *,
    verifier: VerifierFunction | Script,
    name: str | None = None,
    agent: AgentSpec | None = None,
    container: ContainerSpec | None = None,
    services: Sequence[ServiceSpec] = (),
    budget: Budget | None = None,
    artifacts: Sequence[str] = (),
    dockerfile: str = "",
    tags: Sequence[str] = (),
) -> Callable[[Callable[[], Draw]], Callable[[], Draw]]:
    """Declare a function without arguments, which returns a `Draw`, as one task.

    ``verifier`` is a function decorated with ``@verifier``, or a `Script`. By default the name is the function's with
    dashes; the agent gives one reply where the verifier is of a text, else has a shell; and there is a container
    without network, except where one reply is judged as a text. ``dockerfile`` is the text of
    ``environment/Dockerfile`` in place of the default one. The rest is as in `envsdk.spec.model`.

    Raises:
        UsageError: the verifier was not declared as one.
    """

    def register(function: Callable[[], Draw]) -> Callable[[], Draw]:
        _declare(
            function,
            is_family=False,
            name=name,
            verifier=verifier,
            agent=agent,
            container=container,
            services=tuple(services),
            budget=budget,
            artifacts=tuple(artifacts),
            dockerfile=dockerfile,
            tags=tuple(tags),
        )
        return function

    return register


def family(
    *,
    verifier: VerifierFunction | Script,
    levels: Mapping[str, Sequence[Scalar]],
    name: str | None = None,
    agent: AgentSpec | None = None,
    container: ContainerSpec | None = None,
    services: Sequence[ServiceSpec] = (),
    budget: Budget | None = None,
    artifacts: Sequence[str] = (),
    dockerfile: str = "",
    tags: Sequence[str] = (),
    predicted_pass: Callable[..., float] | None = None,
) -> Callable[[Callable[P, Draw]], Callable[P, Draw]]:
    """Declare a function of a `random.Random` and of typed levels, which returns a `Draw`, as a family.

    The same seed and level draw the same task on every machine, as long as the function takes all chance from its
    generator and iterates over nothing unordered. ``levels`` gives for each keyword of the function its values, from
    the easiest to the hardest; ``predicted_pass`` guesses the pass rate at a level, by keyword, until it is measured.
    The rest is as for `task`.

    Raises:
        UsageError: the verifier was not declared as one, or levels and the function's keywords differ.
    """

    def register(function: Callable[P, Draw]) -> Callable[P, Draw]:
        keywords = {p.name for p in _parameters(function)[1:]}
        if keywords != set(levels) or not all(levels.values()):
            raise UsageError(
                f"levels {sorted(levels)} are not the function's keywords {sorted(keywords)}, each with a value",
                where=function.__name__,
                hint="def name(rng, *, one keyword for each level)",
            )
        _declare(
            function,
            is_family=True,
            name=name,
            verifier=verifier,
            levels={key: tuple(values) for key, values in levels.items()},
            agent=agent,
            container=container,
            services=tuple(services),
            budget=budget,
            artifacts=tuple(artifacts),
            dockerfile=dockerfile,
            tags=tuple(tags),
            predicted_pass=predicted_pass,
        )
        return function

    return register


def oracle(target: Callable[..., Draw], /) -> Callable[[Callable[[Draw], str]], Callable[[Draw], str]]:
    """Declare a function of the draw as the oracle of a task or family, where the draw does not carry its own.

    Raises:
        UsageError: ``target`` is neither.
    """

    def register(function: Callable[[Draw], str]) -> Callable[[Draw], str]:
        for key, declaration in _DECLARATIONS.items():
            if declaration.function is target:
                _DECLARATIONS[key] = replace(declaration, oracle=function)
                return function
        where = getattr(target, "__name__", str(target))
        raise UsageError("is no task or family", where=where, hint="decorate it first")

    return register


def _declare(
    function: Callable[..., Draw],
    *,
    name: str | None,
    verifier: VerifierFunction | Script,
    agent: AgentSpec | None,
    container: ContainerSpec | None,
    budget: Budget | None,
    **rest: Any,
) -> None:
    declared = verifier if isinstance(verifier, Script) else _VERIFIERS.get(verifier)
    if declared is None:
        where = getattr(verifier, "__name__", repr(verifier))
        raise UsageError("is no verifier", where=where, hint="decorate it with @verifier, or give a Script")
    is_text = isinstance(declared, PythonVerifier) and declared.kind == "text"
    agent = agent or AgentSpec(protocol="answer" if is_text else "shell")
    if container is None and not (is_text and agent.protocol == "answer"):
        container = ContainerSpec()
    slug = name or function.__name__.replace("_", "-")
    _DECLARATIONS[(function.__module__, slug)] = Declaration(
        name=slug,
        function=function,
        verifier=declared,
        agent=agent,
        container=container,
        budget=budget or Budget(),
        description=inspect.cleandoc(function.__doc__ or "").partition("\n\n")[0].replace("\n", " "),
        **rest,
    )


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())
