"""What Storm reads, and its models."""
