"""One file per format of files with rows."""
