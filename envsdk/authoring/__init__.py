"""Write tasks as Python functions: decorators, families, and how they become directories."""
