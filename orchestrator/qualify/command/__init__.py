"""The user's own program as the eight steps ask for it, run and judge it. What it computes is not known."""
