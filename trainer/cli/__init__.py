"""The trainer's commands: train, eval, report, bench. One file each, found through entry points."""
