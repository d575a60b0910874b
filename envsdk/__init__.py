"""Author tasks, run them in sandboxes, prove their verifiers."""
