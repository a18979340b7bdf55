"""The engine: spec -> plan -> admit -> build -> qualify, one package per stage."""

__version__ = "0.1.0"
