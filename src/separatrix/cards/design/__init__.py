"""The inverse problem: given tasks, a context and a cache, which layouts can, which provably."""
