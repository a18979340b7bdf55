"""Gates: what lanes that share one are held to, without a machine and with one."""
