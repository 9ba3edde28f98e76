"""A canary in every secret, through every kind of failure, sought in everything that leaves."""
