"""Train a model on what a registry query finds: asynchronous GRPO that treats the engine as a part of the optimizer.

Promises: only episodes whose outcome allows it touch the gradient; every token knows the weight version that made it; a
weight version counts only when every replica has it and a probe of its numbers agrees; a killed run goes on from what
was acknowledged. Not promised: more than one machine.

`trainer.loop` is the one place that knows all the rooms, and draws who waits for whom; `trainer.assemble` puts them
together. Decisions (admission, pool policy, advantages, corrections, losses) are pure functions that the simulation and
the conformance cases use too. Importing the package loads nothing.
"""
