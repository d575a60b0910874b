"""Task specification: records, reading, writing, validation."""
