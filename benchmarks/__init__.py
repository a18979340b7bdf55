"""What the parts of orch cost, each beside something that a reader can judge it by."""
