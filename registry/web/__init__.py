"""The registry's pages: server-rendered, readable without scripts, each with a JSON twin of the same content."""
