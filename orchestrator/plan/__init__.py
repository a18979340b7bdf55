"""System, topology and ownership made one typed plan: what every role computes, holds and says."""
