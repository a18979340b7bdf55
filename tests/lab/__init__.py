"""Nodes to reach over SSH, made by the tests themselves: their sshd, file system, network and faults."""
