"""``python -m anyfill`` is the command ``anyfill``."""

from anyfill.cli.main import main

if __name__ == "__main__":
    main()
