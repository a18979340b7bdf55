"""The independent reference: what a run must yield, bit for bit. Shares no code with the role programs."""
