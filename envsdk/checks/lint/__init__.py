"""Reading a task's files for faults that need no run: one file a rule, a fault always with its file and line."""
