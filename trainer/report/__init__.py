"""The report of a run: one HTML page that needs nothing else, made from what the run's directory holds."""
