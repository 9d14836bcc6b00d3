"""What the site has besides its pages: what is generated from the data and the code of the project."""
