"""Files that users write, read to typed, frozen values in which everything has a line and a column."""
