"""``python -m anyfill`` is the command ``anyfill``."""

from anyfill.surfaces.cli import main

if __name__ == "__main__":
    main()
