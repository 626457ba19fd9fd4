"""What a plan tells an agent to do, and the truth about it."""
