"""The programme's database: what is planned, what ran, what is proven.

Knows bundles through `evidence` alone; knows no SSH, builds nothing, and imports nothing of the engine.
"""
