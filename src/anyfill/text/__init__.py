"""Text for everyone: ``anyfill text``."""
