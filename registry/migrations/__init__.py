"""The history of the schema, run by `registry.db.schema`."""
