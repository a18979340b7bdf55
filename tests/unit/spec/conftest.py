"""Hypothesis without deadlines: what a busy machine takes says nothing about the readers."""

from hypothesis import settings

settings.register_profile("spec", deadline=None)
settings.load_profile("spec")
