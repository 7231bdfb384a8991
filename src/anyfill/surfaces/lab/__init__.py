"""The command line of the exact lab: ``anyfill lab ising``."""
