"""The suite every sandbox back end passes: named checks of the protocol, ours and third parties' alike.

    from envsdk.sandboxes import conformance
    report = await conformance.run(provider, image)          # every check, one sandbox each

A check is a coroutine of a `Bench`; an `AssertionError` is a finding, `SkipCheckError` says what the back end does not
claim. Images need ``/bin/sh`` and the usual small programs (coreutils or busybox), nothing else.
"""

from envsdk.sandboxes.conformance.suite import CHECKS, Bench, Finding, SkipCheckError, run

__all__ = ["CHECKS", "Bench", "Finding", "SkipCheckError", "run"]
