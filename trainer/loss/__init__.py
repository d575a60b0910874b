"""Policy losses: one file a mechanism, each a function of `term.LossInputs`; `policy` puts one together."""
