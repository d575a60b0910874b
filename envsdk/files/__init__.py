"""Files that survive: rows in JSONL, files replaced and archives unpacked whole or not at all, output as text."""
