"""A matrix: a bundle whose cells are bundles of lanes, each run and judged as a lane is, then compared."""
