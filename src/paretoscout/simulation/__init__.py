"""Many replicates of an algorithm on a problem, and what came out of them."""
