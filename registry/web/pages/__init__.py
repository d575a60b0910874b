"""One file a page: the view (plain data) and the routes that serve it."""
