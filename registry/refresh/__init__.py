"""When a model has outgrown a task set: propose a new revision with reasons, publish it on confirmation."""
