"""What is known of every state of a prepared model: its least expected cost and its least worst case."""
