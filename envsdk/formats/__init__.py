"""Other formats: what is read becomes task directories, what cannot be read is reported with a code and a reason."""
