"""Unified Markov Binary, the exchange format of PRISM, Storm and Modest."""
