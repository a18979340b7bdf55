"""Hypothesis without deadlines: what a busy machine takes says nothing about the plans."""

from hypothesis import settings

settings.register_profile("plan", deadline=None)
settings.load_profile("plan")
