"""The command line. Each command calls public functions and shows what they return."""
