"""Planning problems in PPDDL, read through plado (extra ``pddl``)."""
