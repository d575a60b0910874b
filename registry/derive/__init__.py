"""Everything that follows from outcomes, reports, priors and retirements, and nothing that is primary."""
