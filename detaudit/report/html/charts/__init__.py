"""Charts as SVG, each made by a function of what it shows."""
