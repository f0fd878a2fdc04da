"""A lane is one provider and one partition, with its lease, its window and its parked keys."""
