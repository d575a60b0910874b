"""Files that survive: rows in JSONL, archives unpacked whole or not at all, bytes of commands as text."""
