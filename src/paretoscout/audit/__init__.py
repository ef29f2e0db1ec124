"""The audit: is delta delta? Every algorithm on many instances, measured failure beside what was promised."""
