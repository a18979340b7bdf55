"""Demands of every role against supplies of its node: refuses by label, before a byte is built."""
