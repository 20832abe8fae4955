"""`python -m difflie.cli`."""

from . import main

if __name__ == "__main__":
    main()
