"""The handbook of a small cabin, kept searchable."""
