"""When a task wears out: posteriors, screening, evidence for saturation and against it, and the states that follow."""
