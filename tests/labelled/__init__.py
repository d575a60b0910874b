"""Labelled miniature tasks: good and bad verifiers, in many disguises, that the checks are measured on."""
