"""Basics for all packages: errors, alerts, progress, safe writing of files, threads and checks of options."""
