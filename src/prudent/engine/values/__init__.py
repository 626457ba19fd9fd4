"""Values of every state of a prepared model: its least expected cost and its minimal worst-case cost."""
