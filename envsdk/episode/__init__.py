"""Episodes: one attempt at a task by a policy, and the record of it."""
