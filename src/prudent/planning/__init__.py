"""The verbs: from a model to an answer."""
