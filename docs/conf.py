"""How the documentation is built: Markdown by MyST, the furo theme, nothing loaded from other hosts."""

from importlib.metadata import version as installed

project = "envsdk"
author = "the envsdk authors"
version = release = installed("envsdk")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "envsdk"
html_static_path = ["pictures"]
exclude_patterns = ["_build"]
# Types come from the annotations; a page that repeats them goes stale.
autodoc_typehints = "description"
suppress_warnings = ["myst.xref_missing"]
