"""Hypothesis without deadlines: what a busy machine takes says nothing about the oracle."""

from hypothesis import settings

settings.register_profile("oracle", deadline=None)
settings.load_profile("oracle")
