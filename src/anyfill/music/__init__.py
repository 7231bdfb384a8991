"""Music for musicians: ``anyfill music``."""
