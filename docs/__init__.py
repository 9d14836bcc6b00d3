"""The documentation: pages in Markdown, and what ``make docs`` generates for their site."""
