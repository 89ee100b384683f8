"""`python -m nearid`."""

from nearid.cli.app import main

if __name__ == "__main__":
    main()
