"""What the site has beyond its Markdown pages: docstrings as reStructuredText, and pages written when it is built."""
