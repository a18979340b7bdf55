"""The only place that reaches a machine: run, put, get, start, look, stop. One Protocol, one module a way."""
