"""``python -m envsdk`` is ``envsdk``."""

from envsdk.cli.entry import main

main()
