"""The command line: one command a file, found and mounted by `envsdk.cli.app`."""
