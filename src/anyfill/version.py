"""The version of anyfill, as packages, saved models and the command line say it."""

__version__ = "0.2.0.dev0"
