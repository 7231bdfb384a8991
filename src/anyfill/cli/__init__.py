"""The command ``anyfill`` and the demo: what stands above all applications."""
